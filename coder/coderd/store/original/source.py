"""Reading the original's database: one read-only transaction with one snapshot, rows by a cursor of the server."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

import trio

from coder.base.errors import CoderError
from coder.coderd.store.engine.connection_string import parse_connection_string
from coder.coderd.store.engine.database import open_database
from coder.coderd.store.original.constraints import column_type, time_columns
from coder.coderd.store.original.driver import ERRORS, Connection, Cursor, Value, Values, call, connect
from coder.coderd.store.original.known_columns import COLUMNS, UNCHECKED
from coder.coderd.store.original.step import Step, quoted, representable
from coder.coderd.store.original.steps import STEPS

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Database

VERSION = "2.34"
_NAME = "the original's database"
_LIVE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """Facts about the original's database and what happens in it."""

    identity: str
    """Deployment id of the original."""
    migration: int
    """Number of its last migration."""
    unknown: tuple[str, ...]
    """Tables and columns that Coder 2.34 does not have."""
    live_servers: tuple[str, ...]
    """Names of the original's servers that were running within the last minute."""
    running_jobs: tuple[str, ...]
    """Jobs that are queued or running, with the names of their workspaces or templates."""
    pending_messages: int
    open_restarts: int
    licenses: int


class Snapshot:
    """The open transaction."""

    def __init__(self, database: Database, connection: Connection) -> None:
        self._database, self._connection = database, connection

    async def rows(self, sql: str, *values: object) -> list[Values]:
        """Return all rows of a small result. Raises CoderError `database_failed`, as all functions here."""
        return await call(self._database, _NAME, lambda: self._connection.fetch(sql, *values))

    async def value(self, sql: str, *values: object) -> Value:
        return await call(self._database, _NAME, lambda: self._connection.fetchval(sql, *values))

    async def select(self, sql: str, *values: object) -> SelectedRows:
        """Begin a query whose rows stay at the server until they are read."""

        async def begin() -> Cursor:
            return await self._connection.cursor(sql, *values)

        return SelectedRows(self._database, await call(self._database, _NAME, begin))


class SelectedRows:
    """Rows of a query, read a few at a time."""

    def __init__(self, database: Database, cursor: Cursor) -> None:
        self._database, self._cursor = database, cursor

    async def read(self, size: int) -> list[Values]:
        """Return at most `size` further rows; none at the end."""
        return list(await call(self._database, _NAME, lambda: self._cursor.fetch(size)))


@contextlib.asynccontextmanager
async def open_snapshot(url: str) -> AsyncIterator[Snapshot]:
    """Open the original's database for reading only. Raises CoderError `bad_database_url`, `source_unreachable`,
    `source_unreadable`, `not_coder`."""
    try:
        parse_connection_string(url)
    except CoderError as error:
        raise CoderError(error.code, "the URL of --from is wrong", error.hint) from error
    async with open_database(url) as database:

        async def begin() -> Connection:
            connection = await connect(database)
            await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            await connection.execute(_SETTINGS)
            return connection

        try:
            connection = await database.call(begin)
        except ERRORS as error:
            # The chain of causes shows the text of an OSError.
            reason = "" if isinstance(error, OSError) else f": {error}"
            raise CoderError(
                "source_unreachable",
                f"{_NAME} cannot be used{reason}",
                "Check the URL of --from, and that its user may read all tables.",
            ) from error
        try:
            snapshot = Snapshot(database, connection)
            await _choose_schema(snapshot, is_named="search_path" in database.session_settings)
            yield snapshot
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 5):
                await database.call(lambda: connection.close(timeout=3))


_SETTINGS = """
SET LOCAL row_security TO off; -- an error instead of missing rows
-- Fingerprints depend on how values are written.
SET LOCAL timezone TO 'UTC';
SET LOCAL datestyle TO ISO;
SET LOCAL intervalstyle TO postgres;
SET LOCAL bytea_output TO hex;
SET LOCAL extra_float_digits TO 1;
"""


async def _choose_schema(snapshot: Snapshot, *, is_named: bool) -> None:
    """Let the names of tables mean those of one schema: of the URL's `search_path`, or the one that has Coder's
    tables. The default path of the user may name others. Raises CoderError `not_coder`, `source_unreadable`."""
    schemas = [row[0] for row in await snapshot.rows(_SCHEMAS)]
    if is_named:
        schemas = [await snapshot.value("SELECT current_schema()")]
    elif "public" in schemas or not schemas:
        schemas = ["public"]
    if schemas[0] is None:
        raise CoderError(
            "not_coder",
            "the source has no schema that the search_path of --from names",
            "Name the schema with the tables of Coder, which is public in most databases.",
        )
    if len(schemas) > 1:
        raise CoderError(
            "not_coder",
            f"the source has tables of Coder in several schemas: {_few(schemas)}",
            "Choose one with ?search_path=NAME in the URL of --from.",
        )
    may_use = await snapshot.value(
        "SELECT has_schema_privilege(oid, 'USAGE') FROM pg_namespace WHERE nspname = $1", schemas[0]
    )
    if may_use is False:
        user = await snapshot.value("SELECT current_user")
        raise CoderError(
            "source_unreadable",
            f"the user {user} may not use the schema {schemas[0]} of the source",
            f"As its owner: GRANT USAGE ON SCHEMA {schemas[0]} TO {user}.",
        )
    await snapshot.value("SELECT set_config('search_path', quote_ident($1) || ', pg_catalog', true)", schemas[0])


_SCHEMAS = """SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = 'schema_migrations' AND c.relkind = 'r' AND EXISTS (
    SELECT FROM pg_class o WHERE o.relnamespace = c.relnamespace AND o.relname = 'site_configs' AND o.relkind = 'r')
ORDER BY 1"""


async def read_facts(snapshot: Snapshot) -> SourceFacts:
    """Check the schema and return the facts. Raises CoderError `not_coder`, `schema_older`, `schema_dirty`,
    `source_unreadable`."""
    present: dict[str, set[str]] = {}
    unreadable = set()
    for table, column, is_readable in await snapshot.rows(_COLUMNS):
        present.setdefault(table, set()).add(column)
        if not is_readable and (table in COLUMNS or table in UNCHECKED):
            unreadable.add(table)
    if unreadable:
        user, schema = (await snapshot.rows("SELECT current_user, current_schema()"))[0]
        raise CoderError(
            "source_unreadable",
            f"the user {user} may not read tables of the source: {_few(sorted(unreadable))}",
            f"As their owner: GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {user}.",
        )
    migration = await _require_version(snapshot, present)
    identity = await snapshot.value("SELECT value FROM site_configs WHERE key = 'deployment_id'")
    if not identity:
        raise CoderError(
            "not_coder",
            "the source has no deployment id: its server was never started",
            "Check the URL of --from; a new deployment needs no import.",
        )
    if not _is_uuid(identity):
        raise CoderError(
            "not_coder",
            f"the source's deployment id is not a UUID: {identity}",
            "Set the deployment_id in its table site_configs to the id that the original had, or to a new UUID.",
        )
    return SourceFacts(
        identity=identity,
        migration=migration,
        unknown=tuple(_unknown(present)),
        live_servers=tuple(row[0] for row in await snapshot.rows(_LIVE, _LIVE_SECONDS)),
        running_jobs=tuple(row[0] for row in await snapshot.rows(_RUNNING)),
        pending_messages=await snapshot.value(
            "SELECT count(*) FROM notification_messages WHERE status IN ('pending', 'leased', 'temporary_failure')"
        ),
        open_restarts=await snapshot.value(
            "SELECT count(*) FROM workspace_build_orchestrations WHERE child_build_id IS NULL AND error IS NULL"
        ),
        licenses=await snapshot.value("SELECT count(*) FROM licenses"),
    )


# Without the right to read a table, information_schema does not show it.
_COLUMNS = """SELECT c.relname, a.attname, has_table_privilege(c.oid, 'SELECT')
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relkind IN ('r', 'p') AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())"""


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


_LIVE = (
    "SELECT hostname FROM replicas WHERE stopped_at IS NULL AND updated_at > now() - make_interval(secs => $1) "
    "ORDER BY hostname"
)
_RUNNING = """SELECT CASE j.type WHEN 'workspace_build' THEN 'build of workspace ' || COALESCE(
        (SELECT u.username || '/' || w.name FROM workspace_builds b JOIN workspaces w ON w.id = b.workspace_id
         JOIN users u ON u.id = w.owner_id WHERE b.job_id = j.id), '?')
    ELSE replace(j.type::text, '_', ' ') || ' ' || COALESCE(
        (SELECT v.name FROM template_versions v WHERE v.job_id = j.id), j.id::text) END
    FROM provisioner_jobs j WHERE j.completed_at IS NULL ORDER BY j.created_at LIMIT 100"""


async def _require_version(snapshot: Snapshot, present: dict[str, set[str]]) -> int:
    if "schema_migrations" not in present or "users" not in present:
        raise CoderError(
            "not_coder",
            "the source is not a database of Coder: the schema "
            f"{await snapshot.value('SELECT current_schema()')} has no tables schema_migrations and users",
            "Check the URL of --from: the name of the database, and that its user may use the schema.",
        )
    rows = await snapshot.rows("SELECT version, dirty FROM schema_migrations") or [(0, True)]
    number, is_dirty = int(rows[0][0]), bool(rows[0][1])
    if is_dirty:
        raise CoderError(
            "schema_dirty",
            f"the source's migration {number} was interrupted",
            f"Start the original ({VERSION}) until it has finished its migrations, then stop it and try again.",
        )
    missing = [
        f"{table}.{column}"
        for table in sorted({name for step in STEPS for name in step.tables})
        for column in sorted(COLUMNS.get(table, frozenset()) - present.get(table, set()))
    ]
    missing += [name for name in sorted(UNCHECKED) if name not in present and any(name in s.tables for s in STEPS)]
    if missing:
        raise CoderError(
            "schema_older",
            f"the source's schema (migration {number}) is older than Coder {VERSION}: it lacks {_few(missing)}",
            f"Upgrade the original to {VERSION} first, start it once, and stop it.",
        )
    return number


def require_known(facts: SourceFacts) -> None:
    """Refuse a newer schema. Raises CoderError `schema_newer`."""
    if facts.unknown:
        raise CoderError(
            "schema_newer",
            f"the source's schema (migration {facts.migration}) is newer than Coder {VERSION}: "
            f"this release does not know {_few(facts.unknown)}",
            "Import with a release that knows them, or leave them out with --ignore-unknown.",
        )


def _unknown(present: dict[str, set[str]]) -> list[str]:
    unknown = []
    for table, columns in sorted(present.items()):
        if table in UNCHECKED:
            continue
        if table not in COLUMNS:
            unknown.append(table)
        else:
            unknown += [f"{table}.{column}" for column in sorted(columns - COLUMNS[table])]
    return unknown


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


async def read_settings(snapshot: Snapshot) -> dict[str, str]:
    """Return the original's settings of the site by key."""
    return {row[0]: row[1] for row in await snapshot.rows("SELECT key, value FROM site_configs")}


async def remaining(snapshot: Snapshot, step: Step, after: str) -> SelectedRows:
    """Begin the query of the step's rows after a value of its cursor; an empty value means all rows."""
    times = time_columns(step)
    columns = [representable(f"q.{quoted(name)}") if name in times else f"q.{quoted(name)}" for name in step.columns]
    columns += [f"q.{quoted(f'key_of_{name}')}" for name in step.sealed]
    sql = f"SELECT {', '.join(columns)} FROM ({step.select(with_keys=True)}) q"  # noqa: S608
    if not step.cursor:
        return await snapshot.select(sql)
    column = f"q.{quoted(step.cursor)}"
    if not after:
        return await snapshot.select(f"{sql} ORDER BY {column}")
    typed = f"$1::text::{column_type(step, step.cursor)}"
    return await snapshot.select(f"{sql} WHERE {column} > {typed} ORDER BY {column}", after)
