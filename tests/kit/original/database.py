"""An original's database for tests: its schema in a fresh database, rows in every table."""

# ruff: noqa: S608 (names and values of these tests)
from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from coder.coderd.store.engine.database import open_database
from tests.kit.original.deployment import deployment
from tests.kit.original.rows import Rows
from tests.kit.original.schema import statements
from tests.kit.server.postgres_server import fresh_database, shared_postgres

_TEMPLATE = "original"


async def execute(url: str, *sql: str) -> list[Any]:
    """Run statements and return the rows of the last one."""
    async with open_database(url) as database:

        async def work() -> list[Any]:
            connection = await database.connect(**database.connect_arguments)
            try:
                for statement in sql[:-1]:
                    await connection.execute(statement)
                return list(await connection.fetch(sql[-1]))
            finally:
                await connection.close()

        return await database.call(work)


async def fill(url: str, rows: Rows) -> None:
    """Insert rows, without regard to the order of references."""
    async with open_database(url) as database:

        async def work() -> None:
            connection = await database.connect(**database.connect_arguments)
            try:
                await connection.execute("SET session_replication_role = replica")
                for table, items in rows.items():
                    for item in items:
                        names = ", ".join(f'"{name}"' for name in item)
                        places = ", ".join(f"${number + 1}" for number in range(len(item)))
                        await connection.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", *item.values())
            finally:
                await connection.close()

        await database.call(work)


@contextlib.asynccontextmanager
async def original_database() -> AsyncIterator[str]:
    """Return the URL of a database with the original's schema and the rows of `deployment`, made once a process."""
    cluster = await shared_postgres()
    if not await execute(cluster.url("postgres"), f"SELECT 1 FROM pg_database WHERE datname = '{_TEMPLATE}'"):
        await cluster.execute(f"CREATE DATABASE {_TEMPLATE}")
        await execute(cluster.url(_TEMPLATE), "; ".join(statements()), "SELECT 1")
        await fill(cluster.url(_TEMPLATE), deployment())
        # Go's zero time; the driver of these tests writes it as -infinity.
        zero = "'0001-01-01 00:00:00+00'"
        await execute(
            cluster.url(_TEMPLATE),
            f"UPDATE workspace_builds SET deadline = {zero}, max_deadline = {zero} WHERE deadline = '-infinity'",
            f"UPDATE external_auth_links SET oauth_expiry = {zero} WHERE oauth_expiry = '-infinity'",
            "SELECT 1",
        )
    async with fresh_database(template=_TEMPLATE) as url:
        yield url
