"""Schema upgrades: Alembic under an advisory lock, so that several replicas may start together.

Revisions are the first four digits of each file in `migrations/versions`. A database with an unknown revision is newer
than this program and is refused. Without pending migrations Alembic is not even imported (0.3 s).
"""

from __future__ import annotations

import socket
import ssl
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import trio
from sqlalchemy import text

from coder.base.errors import DATABASE_OUTAGES, CoderError, explain_error
from coder.base.log import get_logger
from coder.base.retry import Backoff
from coder.coderd.store.engine.availability import DRIVER_ERRORS, DatabaseAwayError, means_temporary, shortage_of
from coder.coderd.store.engine.sessions import require_own_sessions

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from coder.coderd.store.engine.connection_tls import ConnectArgument
    from coder.coderd.store.engine.database import Database, Tx

MIGRATION_LOCK = 0x636F646572  # any constant: "coder"
_FOLDER = Path(__file__).parents[1] / "migrations"
PATIENCE = 30.0
"""Seconds that a starting server waits for its database, as upstream."""
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

    Refusals, such as a wrong password, end the wait. So does a connection pooler in transaction mode. Raises CoderError
    `database_unreachable`, `database_pooled`.
    """
    backoff, until = Backoff(0.1, 1.0), trio.current_time() + patience
    is_logged = False
    while True:
        try:
            await database.call(lambda: require_own_sessions(database.connect_arguments))
        except DRIVER_ERRORS as error:
            rest = backoff.next_delay()
            is_final = isinstance(error, ssl.SSLError) or not means_temporary(error)
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
        text = f"the PostgreSQL server{server} {DATABASE_OUTAGES[shortage]}"
        return CoderError("database_unreachable", text, "Free the resource on its machine, or raise its limit.")
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
    return CoderError("database_unreachable", f"the PostgreSQL server{server} cannot be used", way)


def _as_list(value: ConnectArgument | None) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list | tuple) else [str(value)] if value else []


async def require_known_schema(database: Database) -> None:
    """Refuse a database of a newer release. Raises CoderError `schema_newer`, `database_unreachable`."""
    _is_current(await reached_revision(database))


async def migrate(database: Database) -> None:
    """Apply the missing revisions. Raises CoderError `schema_newer`, `database_unreachable`."""
    current = await reached_revision(database)
    if _is_current(current):
        return
    _log.info("updating the database", from_revision=current or "nothing", to_revision=known_revisions()[-1])
    await database.call(lambda: _upgrade(database))


def _is_current(revision: str) -> bool:
    """Return whether no migration is pending. Raises CoderError `schema_newer`."""
    known = known_revisions()
    if revision and revision not in known:
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
