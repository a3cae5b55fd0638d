"""Connection strings of PostgreSQL: the URL or `key=value` form of libpq, as the driver's arguments.

Every parameter of libpq, of upstream's driver and of pgx is understood or refused by name with the alternative; all
others become session settings, as in upstream's driver. A password may contain any character, also unescaped: upstream
splits at the last @ before the host.
"""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, unquote_plus

from coder.base.errors import CoderError
from coder.base.quoted import quoted
from coder.coderd.store.engine.connection_tls import FILES, MODES, ConnectArguments, tls_arguments
from coder.coderd.store.engine.password_file import find_password
from coder.net.aws_login import PARAMETER, login_of

_WAY = "Write postgres://user:password@host:5432/name, or host=… user=… dbname=…."
_SCHEME = re.compile(r"postgres(?:ql)?://", re.IGNORECASE)
_QUERY = re.compile(r"[A-Za-z_][\w.]*=[^&]*(?:&[A-Za-z_][\w.]*=[^&]*)*")
_HOSTS = re.compile(r"(?:\[[^\]]*\]|[^\[\]/?#@:,]*)(?::\d*)?(?:,(?:\[[^\]]*\]|[^\[\]/?#@:,]*)(?::\d*)?)*")
_PAIR = re.compile(r"\s*([A-Za-z_][\w.]*)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|((?:[^\s'\\]|\\.)*))(?=\s|$)")

_LOGIN = frozenset(
    {"host", "port", "user", "password", "dbname", "database", "passfile", "service", "servicefile", PARAMETER}
)
PASSED = frozenset({"target_session_attrs", "krbsrvname", "gsslib"})
"""Parameters the driver takes under their own names."""
SOCKET = ("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout")
"""Parameters of the TCP connection (libpq's defaults where absent)."""
_STARTUP = frozenset({"application_name", "options"})
"""Session settings sent with the start of a connection: poolers know the first, and the second has no other way."""
_WITHOUT_EFFECT: Mapping[str, str] = {
    "sslcompression": "",
    "sslsni": "",
    "gssencmode": "disable|prefer",
    "gssdelegation": "0",
    "channel_binding": "disable|prefer",
    "load_balance_hosts": "disable",
    "client_encoding": "utf8|utf-8|auto",
    "binary_parameters": "",
    "disable_prepared_binary_result": "",
    "statement_cache_capacity": "",
    "description_cache_capacity": "",
    "default_query_exec_mode": "cache_statement|cache_describe|describe_exec",
    "krbspn": "",
    "sslcertmode": "allow|disable",
    "replication": "false|off|no|0",
}
"""Parameters that change nothing here, with the values for which that is true (a pattern; empty for all)."""
_REFUSED: Mapping[str, str] = {
    "hostaddr": "Put the address into host; for a certificate of another name use sslmode=verify-ca.",
    "sslinline": "Write the certificate and key to files and name them in sslcert and sslkey.",
    "requirepeer": "Remove it; permissions of the socket's folder protect a local database.",
    "require_auth": "Remove it; sslmode=verify-full keeps the password from other servers.",
    "sslcrldir": "Put the revoked certificates into one file and name it in sslcrl.",
    "pool_max_conns": "Set --postgres-conn-max-open (CODER_PG_CONN_MAX_OPEN) instead.",
    "pool_min_conns": "Set --postgres-conn-max-idle (CODER_PG_CONN_MAX_IDLE) instead.",
}
_POOL = "Remove it; the pool is set by --postgres-conn-max-open and --postgres-conn-max-idle."
_ATTRIBUTES = frozenset({"any", "primary", "standby", "read-write", "read-only", "prefer-standby"})


def _bad(what: str, way: str = _WAY) -> CoderError:
    return CoderError("bad_database_url", f"the Postgres URL cannot be used: {what}", way)


@dataclass(frozen=True)
class ConnectionString:
    """Parameters of a connection. The representation shows no password."""

    parameters: Mapping[str, str] = field(repr=False)

    def arguments(self) -> ConnectArguments:
        """Return keyword arguments of `asyncpg.connect`. Raises CoderError `bad_database_url`."""
        given = self.parameters
        arguments: ConnectArguments = {name: given[name] for name in PASSED & given.keys()}
        hosts = _list(given, "host")
        if hosts:
            arguments["host"] = hosts
        ports = [_port(text) for text in _list(given, "port")]
        if len(ports) > 1 and len(ports) != len(hosts):
            raise _bad(f"{len(hosts)} hosts and {len(ports)} ports")
        if ports:
            arguments["port"] = ports if len(ports) > 1 else ports[0]
        for name in ("user", "password"):
            if given.get(name):
                arguments[name] = given[name]
        if database := given.get("dbname") or given.get("database"):
            arguments["database"] = database
        login = login_of(given)
        if login is not None:
            arguments["password"] = login.for_driver
            given = {"sslmode": "require", **given}
        elif self._password_of_file(hosts, ports) is not None:
            # Read for each connection: programs that renew passwords rewrite the file.
            arguments["password"] = lambda: self._password_of_file(hosts, ports) or ""
        if given.get("connect_timeout", "0") != "0":
            # libpq waits at least two seconds.
            arguments["timeout"] = max(2, _number(given, "connect_timeout"))
        if startup := {name: value for name, value in self._settings().items() if name in _STARTUP}:
            arguments["server_settings"] = startup
        return arguments | tls_arguments(given)

    def socket_options(self) -> dict[str, int]:
        """Return the given parameters of the TCP connection."""
        return {name: _number(self.parameters, name) for name in SOCKET if name in self.parameters}

    def _password_of_file(self, hosts: list[str], ports: list[int]) -> str | None:
        given, environment = self.parameters, os.environ
        if given.get("password") or environment.get("PGPASSWORD"):
            return None
        path = given.get("passfile") or environment.get("PGPASSFILE") or "~/.pgpass"
        user = given.get("user") or environment.get("PGUSER", "")
        database = given.get("dbname") or given.get("database") or environment.get("PGDATABASE", user)
        places = hosts or ["localhost"]
        numbers = ports if len(ports) == len(places) else (ports or [5432]) * len(places)
        return find_password(Path(path).expanduser(), places, numbers, database, user)

    def session_settings(self) -> dict[str, str]:
        """Return the settings to make once a connection is open: poolers such as PgBouncer refuse them at its start."""
        return {name: value for name, value in self._settings().items() if name not in _STARTUP}

    def _settings(self) -> dict[str, str]:
        others = _LOGIN | PASSED | FILES | frozenset(SOCKET) | _WITHOUT_EFFECT.keys()
        others |= {"sslmode", "sslnegotiation", "connect_timeout", "fallback_application_name"}
        settings = {name: value for name, value in self.parameters.items() if name not in others}
        fallback = self.parameters.get("fallback_application_name")
        return {"application_name": fallback, **settings} if fallback else settings


def parse_connection_string(text: str, environment: Mapping[str, str] | None = None) -> ConnectionString:
    """Parse a connection string; `environment` names the file of services. Raises CoderError `bad_database_url`."""
    text = text.strip()
    if len(text) > 1 and text[0] in "\"'" and text[0] == text[-1]:
        way = "Remove them: files for `docker --env-file` and systemd take quotation marks differently than a shell."
        raise _bad("it has quotation marks around it", way)
    if _SCHEME.match(text):
        given = _from_url(text)
    elif "=" in text and "://" not in text:
        given = _from_pairs(text)
    elif scheme := re.match(r"[a-z][a-z0-9+.-]*://", text, re.IGNORECASE):
        raise _bad(f"{scheme[0]} is not PostgreSQL, the only supported database")
    else:
        raise CoderError("bad_database_url", "the Postgres URL cannot be read", _WAY)
    given = _of_service(given, os.environ if environment is None else environment) | given
    _check(given)
    login_of(given)
    return ConnectionString(given)


def _from_url(text: str) -> dict[str, str]:
    base, query = _split_query(_SCHEME.sub("", text, count=1))
    login, hosts, name = _split_login(base)
    result: dict[str, str] = {}
    if login:
        user, colon, password = login.partition(":")
        result["user"] = unquote(user)
        if colon:
            result["password"] = unquote(password)
    if not _HOSTS.fullmatch(hosts):
        raise CoderError("bad_database_url", "the Postgres URL cannot be read", _WAY)
    items = _split_hosts(hosts)
    if any(host for host, _ in items):
        result["host"] = ",".join(unquote(host) for host, _ in items)
    if any(port for _, port in items):
        result["port"] = ",".join(port or "5432" for _, port in items)
    if name:
        result["dbname"] = unquote(name)
    for pair in filter(None, query.split("&")):
        key, _, value = pair.partition("=")
        result[unquote_plus(key)] = unquote_plus(value)
    return result


def _split_query(text: str) -> tuple[str, str]:
    """Split at the question mark that begins the query; a password may contain others."""
    marks = [at for at, letter in enumerate(text) if letter == "?"]
    possible = [at for at in marks if _QUERY.fullmatch(text, at + 1) or at + 1 == len(text)]
    for at in possible:
        if "@" in text[:at] or "@" not in text[at:]:
            return text[:at], text[at + 1 :]
    for at in possible:  # no login before the query, so an @ there belongs to a value
        if _HOSTS.fullmatch(text[:at].partition("/")[0]):
            return text[:at], text[at + 1 :]
    return text, ""


def _split_login(base: str) -> tuple[str, str, str]:
    """Return login, hosts and database of the part before the query."""
    authority, _, name = base.partition("/")
    login, at, hosts = authority.rpartition("@")
    if at and not re.search(r"@[^@/]+(?:/|$)", name):
        return login, hosts, name
    if not at and "@" not in name:
        return "", authority, name
    # A slash in the password: the login ends at the last @ of all.
    login, _, rest = base.rpartition("@")
    hosts, _, name = rest.partition("/")
    return login, hosts, name


def _split_hosts(text: str) -> list[tuple[str, str]]:
    items = []
    for item in text.split(","):
        host, _, port = item.rpartition(":") if re.search(r":\d*$", item) and not item.endswith("]") else (item, "", "")
        items.append((host.removeprefix("[").removesuffix("]"), port))
    return items


def _from_pairs(text: str) -> dict[str, str]:
    result, at = dict[str, str](), 0
    while at < len(text):
        match = _PAIR.match(text, at)
        if match is None:
            raise CoderError("bad_database_url", "the Postgres URL cannot be read", _WAY)
        quoted_value, plain = match[2], match[3]
        result[match[1]] = re.sub(r"\\(.)", r"\1", plain if quoted_value is None else quoted_value)
        at = match.end()
    return result


def _of_service(given: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of the named service (libpq's connection service file)."""
    service = given.get("service") or environment.get("PGSERVICE", "")
    if not service:
        return {}
    folder = environment.get("PGSYSCONFDIR", "")
    own = given.get("servicefile") or environment.get("PGSERVICEFILE") or "~/.pg_service.conf"
    for path in (Path(own).expanduser(), *([Path(folder) / "pg_service.conf"] if folder else [])):
        parser = configparser.ConfigParser(interpolation=None, delimiters=("=",))
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError, OSError) as error:
            raise _bad(f"the service file {path} cannot be read", "Correct the file.") from error
        if parser.has_section(service):
            return dict(parser[service])
    raise _bad(f"there is no service {quoted(service)}", f"Add it to {own}, or set PGSERVICEFILE.")


def _check(given: Mapping[str, str]) -> None:
    for name, value in given.items():
        if name in _REFUSED:
            raise _bad(f"the parameter {name} is not supported", _REFUSED[name])
        if name.startswith("pool_"):
            raise _bad(f"the parameter {name} is not supported", _POOL)
        pattern = _WITHOUT_EFFECT.get(name, "")
        if pattern and not re.fullmatch(pattern, value, re.IGNORECASE):
            raise _bad(f"{name}={value} is not supported", f"Use {pattern.replace('|', ' or ')}, or remove it.")
    mode = given.get("sslmode", "")
    if mode and mode not in MODES:
        raise _bad(f"sslmode={mode} is unknown", f"Use one of {', '.join(MODES)}.")
    attributes = given.get("target_session_attrs", "any")
    if attributes not in _ATTRIBUTES:
        raise _bad(f"target_session_attrs={attributes} is unknown", f"Use one of {', '.join(sorted(_ATTRIBUTES))}.")
    for name in (*SOCKET, "connect_timeout"):
        if name in given:
            _number(given, name)


def _list(given: Mapping[str, str], name: str) -> list[str]:
    return [item.strip() for item in given[name].split(",")] if given.get(name) else []


def _port(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 0 < int(text) < 65536:
        raise _bad(f"{quoted(text)} is no port")
    return int(text)


def _number(given: Mapping[str, str], name: str) -> int:
    text = given[name]
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise _bad(f"{name}={text} is not a number", "Write a whole number.")
    return int(text)
