"""A starting server's checks of its database, and schema upgrades: Alembic under an advisory lock, so that several
replicas may start together.

Revisions are the first four digits of each file in `migrations/versions`. A database with an unknown revision is newer
than this program and is refused. Without pending migrations Alembic is not even imported (0.3 s).

Other refusals are explained by their SQLSTATE and repeat PostgreSQL's own sentence: only that one names the account,
the schema or the table.
"""

from __future__ import annotations

import re
import socket
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import trio
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from coder.base.errors import DATABASE_DENIES, DATABASE_OUTAGES, CoderError, explain_error
from coder.base.log import get_logger
from coder.base.retry import Backoff
from coder.coderd.store.engine.availability import (
    DRIVER_ERRORS,
    READ_ONLY,
    DatabaseAwayError,
    means_temporary,
    shortage_of,
    sqlstate_of,
)
from coder.coderd.store.engine.sessions import require_own_sessions

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from coder.coderd.store.engine.connection_tls import ConnectArgument
    from coder.coderd.store.engine.database import Database, Tx

MIGRATION_LOCK = 0x636F646572  # any constant: "coder"
_FOLDER = Path(__file__).parents[1] / "migrations"
PATIENCE = 30.0
"""Seconds that a starting server waits for its database, as upstream."""
_OURS = re.compile(r"\d{4}")
"A revision of any release of ours."
_TIMEOUTS = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
"""Settings of the account that are for the work of a running server: a migration may take longer."""
_WRITABLE = (
    "Name the primary server in --postgres-url, not a standby, and check `default_transaction_read_only` of the "
    "account and the database."
)
_WAYS: Mapping[str, str] = MappingProxyType(
    {
        "28000": "Check the account in --postgres-url, and pg_hba.conf of the PostgreSQL server.",
        "28P01": "Check the account and the password in --postgres-url.",
        "3D000": "Create the database (`CREATE DATABASE … OWNER …`), or name another one in --postgres-url.",
        "42501": "Grant the account CONNECT on the database, or name another one in --postgres-url.",
        "53300": "Raise `max_connections`, or the CONNECTION LIMIT of the account or the database.",
        "55P03": "Check `lock_timeout` of the account and the database.",
        "57014": "Check `statement_timeout` of the account and the database.",
        READ_ONLY: _WRITABLE,
    }
)
"""SQLSTATE of a start -> what to do."""
_FOREIGN = (
    "the database contains objects of another program",
    "Name an empty database in --postgres-url. `coder server import` copies a database of the original.",
)
_TABLES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "42501": (
            "the account may not create tables in the database",
            "Make the account the database's owner (`ALTER DATABASE … OWNER TO …`), or grant it CREATE and USAGE on "
            "the schema.",
        ),
        "3F000": (
            "the account has no schema to create tables in",
            "Create a schema that `search_path` of the account names, or reset that setting.",
        ),
        READ_ONLY: ("the database accepts no changes", _WRITABLE),
    }
)
"""SQLSTATE of a refused migration -> what is wrong, and what to do."""
_EXISTS = frozenset({"42P07", "42710", "42723"})
"""SQLSTATEs of a table, type or function that is there already."""
_log = get_logger("migrate")


def known_revisions() -> list[str]:
    """Return the revisions of this program, oldest first."""
    return sorted(path.name[:4] for path in (_FOLDER / "versions").glob("[0-9][0-9][0-9][0-9]_*.py"))


async def require_deployment(database: Database) -> None:
    """Require our tables. Raises CoderError `no_database` without them, since only a server creates them;
    `database_unreachable`."""
    if not await reached_revision(database):
        raise CoderError(
            "no_database",
            "the database has no tables of a deployment; the server creates them at its first start",
            "Check that --postgres-url or --global-config name the database you mean.",
        )


async def wait_for_database(database: Database, patience: float = PATIENCE) -> None:
    """Wait until the database answers, as upstream's server does: after a power cut it starts later than its clients.

    Refusals, such as a wrong password, end the wait. So do a connection pooler in transaction mode and a PostgreSQL
    that is too old. Raises CoderError `database_unreachable`, `database_pooled`, `database_unsuited`.
    """
    backoff, until = Backoff(0.1, 1.0), trio.current_time() + patience
    is_logged = False
    while True:
        try:
            await database.call(lambda: require_own_sessions(database.connect_arguments))
        except DRIVER_ERRORS as error:
            rest = backoff.next_delay()
            is_denied = shortage_of(error) == DATABASE_DENIES
            is_final = isinstance(error, ssl.SSLError) or is_denied or not means_temporary(error)
            if is_final or trio.current_time() + rest > until:
                raise _unreachable(database, error) from error
            if not is_logged:
                _log.warn("waiting for the PostgreSQL server", seconds=patience, error=explain_error(error))
                is_logged = True
        else:
            return
        await trio.sleep(rest)


def _unreachable(database: Database, error: Exception) -> CoderError:
    hosts, port = _as_list(database.connect_arguments.get("host")), database.connect_arguments.get("port")
    ports = port if isinstance(port, list) else [port or 5432]
    places = [f"{host}:{ports[min(at, len(ports) - 1)]}" for at, host in enumerate(hosts) if not host.startswith("/")]
    server = f" at {', '.join(places)}" if places else ""
    if shortage := shortage_of(error):
        text = f"the PostgreSQL server{server} {DATABASE_OUTAGES[shortage]}: {_sentence_of(error)}"
        way = _WAYS.get(sqlstate_of(error), "Free the resource on its machine, or raise its limit.")
        return CoderError("database_unreachable", text, way)
    if isinstance(error, ssl.SSLCertVerificationError):
        text = f"the certificate of the PostgreSQL server{server} is not accepted: {error.verify_message}"
        return CoderError(
            "database_unreachable", text, "Renew the certificate, or name its authority by `sslrootcert`."
        )
    if isinstance(error, socket.gaierror):
        way = "Check the host name in --postgres-url and this machine's DNS."
    elif isinstance(error, ConnectionRefusedError):
        way = "Check host and port in --postgres-url, and that PostgreSQL runs and listens there."
    else:
        way = "Check --postgres-url."
    reason = f": {_sentence_of(error)}" if sqlstate_of(error) else ""
    return CoderError("database_unreachable", f"the PostgreSQL server{server} cannot be used{reason}", way)


def _as_list(value: ConnectArgument | None) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list | tuple) else [str(value)] if value else []


async def require_known_schema(database: Database) -> None:
    """Refuse a database of a newer release. Raises CoderError `schema_newer`, `database_unreachable`."""
    _is_current(await reached_revision(database))


async def migrate(database: Database) -> None:
    """Apply the missing revisions. Raises CoderError `schema_newer`, `database_unreachable`, `database_unsuited`."""
    current = await reached_revision(database)
    await _require_encoding(database, is_new=not current)
    if _is_current(current):
        return
    _log.info("updating the database", from_revision=current or "nothing", to_revision=known_revisions()[-1])
    try:
        await database.call(lambda: _upgrade(database))
    except DRIVER_ERRORS as error:
        if refused := _refused_migration(error, is_new=not current):
            raise refused from error
        if means_temporary(error):
            raise _unreachable(database, error) from error
        raise


def _is_current(revision: str) -> bool:
    """Return whether no migration is pending. Raises CoderError `schema_newer`, `database_unsuited`."""
    known = known_revisions()
    if revision and revision not in known:
        if not _OURS.fullmatch(revision):
            raise CoderError(
                "database_unsuited",
                f"the database belongs to another program (its alembic_version is {revision})",
                "Name an empty database in --postgres-url.",
            )
        raise CoderError(
            "schema_newer",
            f"the database was used by a newer release (schema {revision}, this release knows {known[-1]})",
            "Start that release again. To go back to this one, restore a backup made before the upgrade with "
            "`coder server restore FILE`.",
        )
    return revision == known[-1]


async def reached_revision(database: Database) -> str:
    """Return the revision of the database's schema, "" without one. Raises CoderError `database_unreachable`."""
    try:
        return await database.read(_current_revision)
    except (*DRIVER_ERRORS, DatabaseAwayError) as error:
        reason = error.reason if isinstance(error, DatabaseAwayError) else error
        raise _unreachable(database, reason) from reason


async def _current_revision(connection: Tx) -> str:
    exists = (await connection.execute(text("SELECT to_regclass('alembic_version')::text"))).scalar_one()
    if not exists:
        return ""
    return (await connection.execute(text("SELECT version_num FROM alembic_version"))).scalar() or ""


async def _upgrade(database: Database) -> None:
    async with database.engine.connect() as connection:
        for name in _TIMEOUTS:
            await connection.execute(text(f"SET {name} = 0"))
        await connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": MIGRATION_LOCK})
        await connection.commit()
        try:
            # Checked again: while this replica waited for the lock, another one of a newer release may have migrated.
            if not _is_current(await _current_revision(connection)):
                await connection.run_sync(_run_alembic)
                await connection.commit()
        finally:
            await connection.rollback()
            await connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": MIGRATION_LOCK})
            for name in _TIMEOUTS:
                await connection.execute(text(f"RESET {name}"))
            await connection.commit()


def _run_alembic(connection: Connection) -> None:
    # Alembic's template engine would highlight sources in its error pages, and keeps 5 MB of lexers for it in the
    # server's memory. None tells the import system that a module is absent; the engine then does without.
    sys.modules.setdefault("mako.ext.pygmentplugin", None)  # type: ignore[arg-type]
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_FOLDER))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _refused_migration(error: Exception, *, is_new: bool) -> CoderError | None:
    """Return the error of a migration that PostgreSQL refused for a reason that an administrator can change. The
    migration was undone as a whole. `is_new`: the database had no tables of ours."""
    state = sqlstate_of(error)
    what, way = _FOREIGN if is_new and state in _EXISTS else _TABLES.get(state, ("", ""))
    return CoderError("database_unsuited", f"{what}: {_sentence_of(error)}", way) if what else None


def _sentence_of(error: Exception) -> str:
    """Return PostgreSQL's own sentence for an error."""
    source = (error.orig.__cause__ or error.orig) if isinstance(error, DBAPIError) and error.orig else error
    return str(source).partition("\n")[0]


async def _require_encoding(database: Database, *, is_new: bool) -> None:
    """Refuse a new database that cannot store every text; warn of one that is in use. Raises CoderError
    `database_unsuited`."""
    encoding = await database.read(_encoding)
    if encoding == "UTF8":
        return
    way = "Create it with `ENCODING 'UTF8' TEMPLATE template0`."
    if is_new:
        raise CoderError("database_unsuited", f"the database has the encoding {encoding} instead of UTF8", way)
    _log.warn("the database cannot store every text", encoding=encoding, hint=f"{way} Then restore a backup into it.")


async def warn_of_connection_limits(database: Database, needed: int) -> None:
    """Warn of an account that may open fewer connections than the server uses: under load its requests fail."""
    limit, whose = await database.read(_connection_limit)
    if 0 <= limit < needed:
        _log.warn(
            "the database accepts fewer connections than this server uses",
            limit=limit,
            of=whose,
            needed=needed,
            hint=f"Raise it (`ALTER {whose.upper()} … CONNECTION LIMIT`), or lower --postgres-conn-max-open.",
        )


async def _encoding(tx: Tx) -> str:
    return str((await tx.execute(text("SELECT current_setting('server_encoding')"))).scalar_one())


async def _connection_limit(tx: Tx) -> tuple[int, str]:
    """Return the lowest limit and what has it; -1 without one."""
    rows = await tx.execute(
        text(
            "SELECT rolconnlimit, 'role' FROM pg_roles WHERE rolname = session_user AND NOT rolsuper "
            "UNION ALL SELECT datconnlimit, 'database' FROM pg_database WHERE datname = current_database()"
        )
    )
    return min(((int(limit), str(whose)) for limit, whose in rows if limit >= 0), default=(-1, ""))
