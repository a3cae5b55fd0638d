"""Databases that cannot serve a deployment: the error of a start has the reason and a way out, and nothing is left."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import AsyncIterator

import asyncpg
import pytest
import trio
from alembic import command
from sqlalchemy import text

from coder.base.errors import DATABASE_OUTAGES, CoderError, explain_error
from coder.base.log import also as log_to
from coder.coderd.store.engine.availability import DatabaseAwayError
from coder.coderd.store.engine.database import Database, Tx, open_database
from coder.coderd.store.engine.migrate import migrate, reached_revision, wait_for_database, warn_of_connection_limits
from coder.coderd.store.engine.sessions import OLDEST, _require_version
from tests.kit.server.postgres_server import Cluster, fresh_database, shared_postgres

_numbers = itertools.count()
OTHERS_TABLE = 'CREATE TABLE public.users (id int); ALTER TABLE public.users OWNER TO "{account}"'
OTHERS_REVISION = (
    "CREATE TABLE public.alembic_version AS SELECT 'ae1027a6acf' AS version_num; "
    "GRANT ALL ON ALL TABLES IN SCHEMA public TO {account}"
)


@contextlib.asynccontextmanager
async def wrong_database(*statements: str, options: str = "") -> AsyncIterator[str]:
    """The URL of an empty database of a new account, after these statements of its administrator."""
    cluster = await shared_postgres()
    account = f"account_{os.getpid()}_{next(_numbers)}"
    await cluster.execute(f"CREATE ROLE {account} LOGIN", f"CREATE DATABASE {account} OWNER {account} {options}")
    try:
        for statement in statements:
            await _execute(cluster, account, statement.format(account=account))
        yield cluster.url(account).replace("//coder@", f"//{account}@")
    finally:
        with trio.CancelScope(shield=True):
            await cluster.execute(f"DROP DATABASE {account} WITH (FORCE)", f"DROP ROLE {account}")


async def _execute(cluster: Cluster, name: str, statement: str) -> None:
    async def work(tx: Tx) -> None:
        await (await tx.get_raw_connection()).driver_connection.execute(statement)  # type: ignore[union-attr]

    async with open_database(cluster.url(name)) as database:
        await database.run(work)


async def refusal(database: Database) -> CoderError:
    with pytest.raises(CoderError) as refused:
        await wait_for_database(database)
        await migrate(database)
    return refused.value


NO_CREATE = "ALTER DATABASE {account} OWNER TO coder"
CASES = {
    "no right to create": ([NO_CREATE], "may not create tables in the database: permission denied for schema public"),
    "no right to connect": (
        [NO_CREATE, "REVOKE CONNECT ON DATABASE {account} FROM PUBLIC"],
        "denies access: permission denied for database",
    ),
    "no sign-in": (["ALTER ROLE {account} NOLOGIN"], "is not permitted to log in"),
    "read-only": (
        ["ALTER ROLE {account} SET default_transaction_read_only = on"],
        "accepts no changes: cannot execute CREATE TABLE in a read-only transaction",
    ),
    "no schema": (
        ["ALTER ROLE {account} SET search_path = nowhere"],
        "no schema to create tables in: no schema has been selected",
    ),
    "other tables": ([OTHERS_TABLE], 'objects of another program: relation "users" already exists'),
    "other revision": ([OTHERS_REVISION], "another program (its alembic_version is ae1027a6acf)"),
}


@pytest.mark.parametrize("case", CASES)
async def test_refusal_names_reason(case: str) -> None:
    statements, reason = CASES[case]
    async with wrong_database(*statements) as url, open_database(url) as database:
        error = await refusal(database)
        assert error.code in {"database_unsuited", "database_unreachable"} and error.hint
        assert reason in explain_error(error) and "internal" not in explain_error(error)
        if case not in {"other revision", "no right to connect", "no sign-in"}:
            assert await reached_revision(database) == "", "nothing of the migration is left"


@pytest.mark.parametrize("changes", [{"account": "absent_account"}, {"name": "absent_database"}], ids=str)
async def test_absent_account_or_database_is_named(changes: dict[str, str]) -> None:
    async with wrong_database() as url:
        account = url.partition("//")[2].partition("@")[0]
        url = url.replace(f"//{account}@", f"//{changes.get('account', account)}@")
        url = url.replace(f"/{account}?", f"/{changes.get('name', account)}?")
        async with open_database(url) as database:
            error = explain_error(await refusal(database))
            assert f'"{next(iter(changes.values()))}" does not exist' in error and "--postgres-url" in error


async def test_new_database_needs_utf8() -> None:
    options = "ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    async with wrong_database(options=options) as url, open_database(url) as database:
        error = await refusal(database)
        assert "the encoding SQL_ASCII instead of UTF8" in error.message and "ENCODING 'UTF8'" in error.hint
        lines: list[str] = []
        with log_to(lambda _level, *words: lines.append(str(words))), pytest.MonkeyPatch.context() as patch:
            patch.setattr("coder.coderd.store.engine.migrate._is_current", bool)
            patch.setattr("coder.coderd.store.engine.migrate._current_revision", _revision)
            await migrate(database)  # a database in use goes on
        assert "the database cannot store every text" in str(lines)


async def _revision(_: Tx) -> str:
    return "0001"


def test_old_versions_are_refused() -> None:
    with pytest.raises(CoderError, match=f"the database is PostgreSQL {OLDEST - 1}, and this server needs {OLDEST}"):
        _require_version((OLDEST - 1, 22))
    _require_version((OLDEST, 0))


async def test_starting_server_checks_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asyncpg.Connection, "get_server_version", lambda _: (9, 6))
    async with fresh_database() as url, open_database(url) as database:
        monkeypatch.setattr("tests.kit.server.postgres_server._cluster", None)  # which is not checked otherwise
        assert "PostgreSQL 9," in (await refusal(database)).message


async def test_starting_server_needs_writable_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """A standby has nothing to migrate, and would fail every request."""
    change = "ALTER ROLE {account} SET default_transaction_read_only = on"
    async with wrong_database(change) as url, open_database(url) as database:
        monkeypatch.setattr("tests.kit.server.postgres_server._cluster", None)
        with pytest.raises(CoderError, match="accepts no changes: transactions are read-only") as refused:
            await wait_for_database(database, patience=0)
        assert "standby" in refused.value.hint


CHANGES = {
    "database_denies": ("ALTER ROLE {account} NOLOGIN", "ALTER ROLE {account} LOGIN"),
    "database_connections": ("ALTER ROLE {account} CONNECTION LIMIT 0", "ALTER ROLE {account} CONNECTION LIMIT -1"),
    "database_read_only": (
        "ALTER ROLE {account} SET default_transaction_read_only = on",
        "ALTER ROLE {account} RESET default_transaction_read_only",
    ),
}


@pytest.mark.parametrize("code", CHANGES)
async def test_changed_account_is_temporary(code: str) -> None:
    """Callers repeat their work, and it goes on when the administrator has undone the change."""

    async def write(tx: Tx) -> None:
        await tx.execute(text("CREATE TABLE IF NOT EXISTS t (id int)"))

    cluster = await shared_postgres()
    async with wrong_database() as url, open_database(url) as database:
        account = url.partition("//")[2].partition("@")[0]
        leave = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename LIKE 'account%'"
        await database.run(write)
        change, undo = (statement.format(account=account) for statement in CHANGES[code])
        await cluster.execute(change, leave)
        with pytest.raises(DatabaseAwayError) as refused:
            await database.run(write)
        assert refused.value.code == code and not refused.value.in_doubt
        assert DATABASE_OUTAGES[code] in database.availability.shortage()
        assert (database.availability.away_for() > 0) == (code == "database_denies"), "leaves the load balancer"
        await cluster.execute(undo, leave)
        await database.run(write)


async def test_account_timeouts_spare_migrations(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are for the statements of a running server."""
    during: list[str] = []
    names = "statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"
    query = "SELECT " + ", ".join(f"current_setting('{name}')" for name in names)

    async def settings(tx: Tx) -> list[str]:
        return list((await tx.execute(text(query))).one())

    def upgrade(config: object, _: str) -> None:
        during.extend(config.attributes["connection"].execute(text(query)).one())  # type: ignore[attr-defined]

    monkeypatch.setattr(command, "upgrade", upgrade)
    limits = [f"ALTER ROLE {{account}} SET {name} = '7min'" for name in names]
    async with wrong_database(*limits) as url, open_database(url, pool_size=1) as database:
        await migrate(database)
        assert during == ["0", "0", "0"]
        assert await database.read(settings) == ["7min", "7min", "7min"]


async def test_session_settings_of_account_are_ours() -> None:
    """Another program on the same account may need others."""
    changes = [
        "ALTER ROLE {account} SET default_transaction_isolation = 'serializable'",
        "ALTER ROLE {account} SET TimeZone = 'Asia/Kathmandu'",
        "ALTER ROLE {account} SET standard_conforming_strings = off",
    ]

    async def settings(tx: Tx) -> list[str]:
        names = "transaction_isolation", "TimeZone", "standard_conforming_strings"
        query = "SELECT " + ", ".join(f"current_setting('{name}')" for name in names)
        return list((await tx.execute(text(query))).one())

    async with wrong_database(*changes) as url, open_database(url) as database:
        assert await database.run(settings) == ["read committed", "UTC", "on"]


@pytest.mark.parametrize("whose", ["ROLE", "DATABASE"])
async def test_low_connection_limit_is_logged(whose: str) -> None:
    async with wrong_database(f"ALTER {whose} {{account}} CONNECTION LIMIT 3") as url, open_database(url) as database:
        lines: list[str] = []
        with log_to(lambda _level, *words: lines.append(str(words))):
            await warn_of_connection_limits(database, 3)
            assert not lines
            await warn_of_connection_limits(database, 11)
        assert "accepts fewer connections" in str(lines) and f"ALTER {whose}" in str(lines)
