"""Writing into this program's database: one transaction per batch, which also stores the progress."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING

import trio
from sqlalchemy import text

from coder.base.errors import CoderError
from coder.coderd.store.engine.migrate import migrate, require_known_schema, wait_for_database
from coder.coderd.store.original import progress as records
from coder.coderd.store.original.constraints import Reference, numbered_columns, our_table, our_tables, references
from coder.coderd.store.original.driver import ERRORS, Connection, T, Value, Values, call, connect, failure
from coder.coderd.store.original.progress import Progress
from coder.coderd.store.original.step import Step, quoted
from coder.coderd.store.original.steps import STEPS

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Database, Tx

_NAME = "the database to import into"
_LOCK = 7311  # distinct from the other numbered locks
_LIVE_SECONDS = 60
_WRITE_CONFIG = (
    "INSERT INTO site_configs (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)


_CONTENT = {
    "users": ("users", "is_system"),
    "templates": ("templates", ""),
    "further organizations": ("organizations", "is_default"),
    "audit entries": ("audit_logs", ""),
}
"""What a deployment in use has: tables, and the flag of rows that the first start creates."""
_FOREIGN = (
    "SELECT string_agg(f.name, ', ') FROM (SELECT n.nspname || '.' || c.relname AS name FROM pg_class c "
    "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm') "
    "AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' "
    "AND NOT (n.nspname = current_schema() AND c.relname = ANY($1::text[])) "
    "AND (n.nspname = current_schema() OR NOT $2) "
    # Extensions bring tables of their own.
    "AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid "
    "AND d.deptype = 'e') ORDER BY 1 LIMIT 3) f"
)


async def require_usable(database: Database) -> None:
    """Refuse a target that is no empty database for this program, before a migration touches it.

    Raises CoderError `database_unreachable`, `database_pooled`, `schema_newer`, `target_not_empty`,
    `target_encoding`.
    """

    async def facts(tx: Tx) -> tuple[bool, str]:
        statement = text(
            "SELECT to_regclass('schema_migrations') IS NOT NULL, pg_encoding_to_char(encoding) FROM pg_database "
            "WHERE datname = current_database()"
        )
        row = (await tx.execute(statement)).one()
        return bool(row[0]), str(row[1])

    await wait_for_database(database, patience=0)
    await require_known_schema(database)
    is_original, encoding = await database.read(facts)
    if is_original:
        raise CoderError(
            "target_not_empty",
            "the target is a database of the original Coder: the import only reads those",
            "Name an empty database with --postgres-url, or a new directory with --global-config. "
            "CODER_PG_CONNECTION_URL may still name the original's.",
        )
    if encoding != "UTF8":
        raise CoderError(
            "target_encoding",
            f"the target's encoding is {encoding}, which has not all characters",
            "Create the database with ENCODING 'UTF8' TEMPLATE template0.",
        )


async def create_tables(database: Database) -> None:
    """Create this program's tables, or update them. Raises CoderError `schema_newer`, `database_failed`."""
    try:
        await migrate(database)
    except ERRORS as error:
        raise failure(_NAME, error) from error


class Target:
    """The open connection."""

    def __init__(self, database: Database, connection: Connection) -> None:
        self._database, self._connection = database, connection

    async def _call(self, make: Callable[[], Coroutine[None, None, T]]) -> T:
        """Run database work. Raises CoderError `database_failed`, as all functions here."""
        return await call(self._database, _NAME, make)

    async def read_progress(self) -> Progress | None:
        """Return the record of an earlier import."""
        if not await self._has("site_configs"):
            return None
        stored = await self._value("SELECT value FROM site_configs WHERE key = $1", records.KEY)
        return records.decode(stored) if stored else None

    async def require_stopped(self) -> None:
        """Refuse a target that a server uses, or another import. Raises CoderError `target_in_use`."""
        if not await self._value("SELECT pg_try_advisory_lock($1)", _LOCK):
            raise CoderError("target_in_use", "another import writes to this database", "Wait until it has finished.")
        if not await self._has("replicas"):
            return
        sql = "SELECT string_agg(hostname, ', ') FROM replicas WHERE updated_at > now() - make_interval(secs => $1)"
        if names := await self._value(sql, _LIVE_SECONDS):
            raise CoderError(
                "target_in_use",
                f"a server uses this database: {names}",
                "Stop it, wait a minute, and run the import again.",
            )

    async def content(self) -> str:
        """Return a description of what the target contains, empty for a new or just started deployment."""
        ours = ["alembic_version", *(our_tables() if await self._has("alembic_version") else ())]
        # A URL that names a schema may share the database with other programs.
        is_shared = "search_path" in self._database.session_settings
        if tables := await self._value(_FOREIGN, ours, is_shared):
            return f"tables of another program, such as {tables}"
        counts = {
            name: await self._value(f"SELECT count(*) FROM {quoted(table)} t WHERE NOT {_flag(flag)}")  # noqa: S608
            for name, (table, flag) in _CONTENT.items()
            if await self._has(table)
        }
        return ", ".join(f"{number} {name}" for name, number in counts.items() if number)

    async def begin(self, progress: Progress) -> None:
        """Store a new record, and delete what a first start has created: the import brings its own."""

        async def work() -> None:
            async with self._connection.transaction():
                await self._connection.execute(
                    "DELETE FROM organization_members; DELETE FROM groups; DELETE FROM organizations; "
                    "DELETE FROM users WHERE is_system; DELETE FROM site_configs WHERE key = 'deployment_id'"
                )
                await self._connection.execute(_WRITE_CONFIG, records.KEY, records.encode(progress))

        await self._call(work)

    async def begin_step(self, step: Step) -> None:
        """Create the table for the step's batches."""
        columns = ", ".join(map(quoted, step.columns))
        sql = (
            "DROP TABLE IF EXISTS import_batch; CREATE TEMP TABLE import_batch ON COMMIT DELETE ROWS AS "  # noqa: S608
            f"SELECT {columns} FROM {quoted(step.target)} WITH NO DATA"
        )
        await self._call(lambda: self._connection.execute(sql))

    async def write(self, step: Step, rows: Sequence[Values], progress: Progress, after: str, *, again: bool) -> None:
        """Write a batch and the progress in one transaction. `again`: rows of the step may be there already."""
        state = progress.of(step.label)

        async def work() -> None:
            async with self._connection.transaction():
                await self._connection.copy_records_to_table("import_batch", records=rows, columns=list(step.columns))
                taken = _number(await self._connection.execute(_insert(step, again=again)))
                missing, present = await self._not_taken(step, len(rows) - taken, again=again)
                if step.after_batch:
                    await self._connection.execute(step.after_batch)
                state.taken += taken + present
                state.conflicts += len(rows) - taken - present - sum(missing.values())
                for name, number in missing.items():
                    state.missing[name] = state.missing.get(name, 0) + number
                state.after = after
                await self._connection.execute(_WRITE_CONFIG, records.KEY, records.encode(progress))

        await self._call(work)

    async def _not_taken(self, step: Step, rest: int, *, again: bool) -> tuple[dict[str, int], int]:
        """Return the rows of the batch that miss an object, by column, and the number that are there already."""
        if not rest:
            return {}, 0
        missing: dict[str, int] = {}
        earlier = "true"
        for reference in references(step):
            sql = f"SELECT count(*) FROM import_batch b WHERE {earlier} AND NOT {_exists(reference)}"  # noqa: S608
            if number := await self._connection.fetchval(sql):
                missing[reference.column] = number
            earlier += f" AND {_exists(reference)}"
        if not again or sum(missing.values()) == rest:
            return missing, 0
        sql = f"SELECT count(*) FROM import_batch b WHERE {_present(step)}"  # noqa: S608
        return missing, min(await self._connection.fetchval(sql), rest - sum(missing.values()))

    async def finish(self, progress: Progress, configs: Mapping[str, str]) -> None:
        """Store settings of the site, let numbered columns continue after the imported rows, and store the end.

        One transaction: with the deployment id in it a server starts, and without an end another import would write.
        """

        async def work() -> None:
            async with self._connection.transaction():
                for key, value in configs.items():
                    await self._connection.execute(_WRITE_CONFIG, key, value)
                for table, column in numbered_columns():
                    await self._connection.execute(
                        f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), max({quoted(column)})) "  # noqa: S608
                        f"FROM {quoted(table)} HAVING max({quoted(column)}) IS NOT NULL"
                    )
                await self._connection.execute(_WRITE_CONFIG, records.KEY, records.encode(progress))
            filled = sorted({step.target for step in STEPS if progress.of(step.label).taken})
            await self._connection.execute(f"ANALYZE {', '.join(map(quoted, filled))}")

        await self._call(work)

    async def _has(self, table: str) -> bool:
        return await self._value("SELECT to_regclass($1)::text", table) is not None

    async def _value(self, sql: str, *values: object) -> Value:
        return await self._call(lambda: self._connection.fetchval(sql, *values))


def _insert(step: Step, *, again: bool) -> str:
    columns = ", ".join(map(quoted, step.columns))
    conditions = [_exists(reference) for reference in references(step)]
    if again and step.natural_key:
        conditions.append(f"NOT {_present(step)}")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return (
        f"INSERT INTO {quoted(step.target)} ({columns}) SELECT {columns} FROM import_batch b{where} "  # noqa: S608
        "ON CONFLICT DO NOTHING"
    )


def _exists(reference: Reference) -> str:
    column = f"b.{quoted(reference.column)}"
    found = f"SELECT FROM {quoted(reference.table)} r WHERE r.{quoted(reference.key)} = {column}"
    return f"({column} IS NULL OR EXISTS ({found}))"


def _present(step: Step) -> str:
    key = step.natural_key or tuple(column.name for column in our_table(step.target).primary_key)
    same = " AND ".join(f"t.{quoted(name)} = b.{quoted(name)}" for name in key)
    return f"EXISTS (SELECT FROM {quoted(step.target)} t WHERE {same})"


def _flag(name: str) -> str:
    """Return the value of a column of `t` that an older schema may lack."""
    return f"COALESCE((to_jsonb(t) ->> '{name}')::boolean, false)"


def _number(status: str) -> int:
    """Return the number of rows of a command's status, such as `INSERT 0 17`."""
    return int(status.rsplit(" ", 1)[1])


@contextlib.asynccontextmanager
async def open_target(database: Database) -> AsyncIterator[Target]:
    """Open a connection for the whole import. Raises CoderError `database_failed`."""
    connection = await call(database, _NAME, lambda: connect(database))
    try:
        yield Target(database, connection)
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 5):
            await database.call(lambda: connection.close(timeout=3))
