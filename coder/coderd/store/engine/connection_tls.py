"""TLS of a database connection: libpq's `ssl…` parameters as the driver's arguments.

The modes mean what they mean to libpq, with one exception of upstream's driver: without `sslrootcert` the verifying
modes trust the system's certificate authorities.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from coder.base.errors import CoderError
from coder.base.files.from_files import FromFiles

ConnectArgument: TypeAlias = (
    str | int | float | list[str] | list[int] | Mapping[str, str] | FromFiles[ssl.SSLContext] | Callable[[], str]
)
ConnectArguments: TypeAlias = dict[str, ConnectArgument]
"""Keyword arguments of `asyncpg.connect`, with TLS by files that may change until it is called."""
MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
FILES = frozenset(
    {
        "sslcert",
        "sslkey",
        "sslrootcert",
        "sslcrl",
        "sslpassword",
        "ssl_min_protocol_version",
        "ssl_max_protocol_version",
    }
)
"""Parameters of a TLS context."""
_NAMES_OF_FILES = ("sslcert", "sslkey", "sslrootcert", "sslcrl")
_VERSIONS = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}


def tls_arguments(given: Mapping[str, str]) -> ConnectArguments:
    """Return `ssl` and `direct_tls` of `asyncpg.connect`. Raises CoderError `bad_database_url` for unusable files."""
    mode = given.get("sslmode") or ("verify-full" if given.get("sslrootcert") == "system" else "")
    arguments: ConnectArguments = {"direct_tls": True} if given.get("sslnegotiation") == "direct" else {}
    if not mode:
        mode = "prefer" if FILES & given.keys() else ""
    if mode == "disable":
        return {**arguments, "ssl": "disable"}
    if mode in {"allow", "prefer", ""}:
        # Whether TLS is used depends on the server, so only a name says that; it comes with the files by an address
        # that contains nothing else.
        return {**arguments, **({"ssl": mode} if mode else {}), **_optional_files(given)}
    files = [str(Path(given[name]).expanduser()) for name in _NAMES_OF_FILES if given.get(name)]
    tls = FromFiles("certificates for the database", lambda: files, lambda: _context(mode, given))
    return {**arguments, "ssl": tls}


def _optional_files(given: Mapping[str, str]) -> ConnectArguments:
    from urllib.parse import urlencode

    files = {name: str(Path(given[name]).expanduser()) for name in ("sslcert", "sslkey") if given.get(name)}
    if not files:
        return {}
    if given.get("sslpassword"):
        files["sslpassword"] = given["sslpassword"]
    _load_client(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), given)  # an error of the driver does not name the file
    return {"dsn": f"postgresql://?{urlencode(files)}"}


def _context(mode: str, given: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    root = given.get("sslrootcert", "")
    # libpq: with a root certificate, `require` verifies as `verify-ca` does.
    context.check_hostname = mode == "verify-full"
    context.verify_mode = ssl.CERT_NONE if mode == "require" and not root else ssl.CERT_REQUIRED
    if context.verify_mode is ssl.CERT_REQUIRED:
        if root and root != "system":
            _load("sslrootcert", root, lambda path: context.load_verify_locations(cafile=path))
        else:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    if given.get("sslcrl"):
        _load("sslcrl", given["sslcrl"], lambda path: context.load_verify_locations(cafile=path))
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    _load_client(context, given)
    for name, end in (("ssl_min_protocol_version", "minimum_version"), ("ssl_max_protocol_version", "maximum_version")):
        if given.get(name):
            if given[name] not in _VERSIONS:
                raise _unusable(f"{name}={given[name]} is unknown", f"Use one of {', '.join(_VERSIONS)}.")
            setattr(context, end, _VERSIONS[given[name]])
    return context


def _load_client(context: ssl.SSLContext, given: Mapping[str, str]) -> None:
    if given.get("sslcert"):
        key = str(Path(given["sslkey"]).expanduser()) if given.get("sslkey") else None
        password = given.get("sslpassword") or (lambda: "")  # otherwise OpenSSL asks at the terminal
        _load("sslcert", given["sslcert"], lambda path: context.load_cert_chain(path, key, password))


def _load(name: str, path: str, load: Callable[[str], None]) -> None:
    try:
        load(str(Path(path).expanduser()))
    except (OSError, ssl.SSLError, ValueError) as error:
        way = "Name readable PEM files, in sslkey the key that belongs to sslcert."
        raise _unusable(f"{name}={path} cannot be used", way) from error


def _unusable(what: str, way: str) -> CoderError:
    return CoderError("bad_database_url", f"the Postgres URL cannot be used: {what}", way)
