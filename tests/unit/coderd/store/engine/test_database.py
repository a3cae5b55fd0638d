"""The bridge to Postgres: transactions, cancellation, notices, reconnects, migrations."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from alembic import command
from sqlalchemy import MetaData, text

from coder.base.errors import CoderError
from coder.coderd.store import tables
from coder.coderd.store.engine.database import Tx, open_database
from coder.coderd.store.engine.listening import RESYNC
from coder.coderd.store.engine.metadata import metadata
from coder.coderd.store.engine.migrate import MIGRATION_LOCK, known_revisions, migrate
from coder.coderd.store.engine.pubsub import notify
from tests.kit.server.postgres_server import fresh_database, shared_postgres


async def _insert(tx: Tx, key: str) -> None:
    await tx.execute(text("INSERT INTO site_configs (key, value) VALUES (:key, '')"), {"key": key})


async def _count(tx: Tx) -> int:
    return int((await tx.execute(text("SELECT count(*) FROM site_configs"))).scalar_one())


async def test_unit_commits_or_rolls_back() -> None:
    async with fresh_database() as url, open_database(url) as db:
        before = await db.read(_count)

        async def fails(tx: Tx) -> None:
            await _insert(tx, "half")
            raise LookupError("no")

        with pytest.raises(LookupError):
            await db.run(fails)
        assert await db.read(_count) == before
        await db.run(_insert, "whole")
        assert await db.read(_count) == before + 1


@pytest.mark.parametrize(("most", "idle"), [(1, None), (3, None), (3, 1), (3, 0)])
async def test_pool_respects_its_limit(most: int, idle: int | None) -> None:
    """Administrators size Postgres by the setting; further work waits for its turn."""
    async with fresh_database() as url, open_database(url, pool_size=most, idle=idle) as db:
        running, finished, peak = 0, 0, 0

        async def work(tx: Tx) -> None:
            nonlocal running, finished, peak
            running += 1
            peak = max(peak, running)
            await tx.execute(text("SELECT pg_sleep(0.02)"))  # the others run meanwhile
            running -= 1
            finished += 1

        async with trio.open_nursery() as nursery:
            for number in range(6 * most):
                nursery.start_soon(db.read if number % 2 else db.run, work)
        assert finished == 6 * most
        assert peak <= most


async def test_cancelled_caller_rolls_back() -> None:
    async with fresh_database() as url, open_database(url, pool_size=2) as db:
        before = await db.read(_count)
        started = trio.Event()
        token = trio.lowlevel.current_trio_token()

        async def slow_query(tx: Tx) -> None:
            await _insert(tx, "cancelled")
            token.run_sync_soon(started.set)
            await tx.execute(text("SELECT pg_sleep(60)"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(db.run, slow_query)
            await started.wait()
            nursery.cancel_scope.cancel()
        assert await db.read(_count) == before
        for _ in range(8):  # more than the pool's size: the connection was returned
            await db.run(_count)


async def test_notices_arrive_after_commit() -> None:
    async with fresh_database() as url, open_database(url) as db, db.listen("a", "b") as notices:

        async def notify_or_fail(tx: Tx, fail: bool) -> None:
            await notify(tx, "a", "1")
            if fail:
                raise LookupError("no")

        with pytest.raises(LookupError):
            await db.run(notify_or_fail, True)
        await db.run(notify_or_fail, False)
        await db.run(notify, "b", "2")
        with trio.fail_after(60):
            assert [await notices.receive(), await notices.receive()] == [("a", "1"), ("b", "2")]


async def test_listening_reconnect_sends_resync() -> None:
    async with fresh_database() as url, open_database(url) as db, db.listen("a") as notices:
        kill = text(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

        async def kill_others(tx: Tx) -> None:
            await tx.execute(kill)

        await db.read(kill_others)
        with trio.fail_after(60):
            assert await notices.receive() == ("a", RESYNC)
        await db.run(notify, "a", "again")  # the pool's dead connections are replaced, too
        with trio.fail_after(60):
            assert await notices.receive() == ("a", "again")


async def test_killed_connection_costs_one_retry() -> None:
    async with fresh_database() as url, open_database(url) as db:
        await db.run(_count)
        async with open_database(url) as other:

            async def kill_others(tx: Tx) -> None:
                await tx.execute(
                    text(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                    )
                )

            await other.read(kill_others)
        assert await db.run(_count) >= 0


async def test_migrations_match_tables() -> None:
    tables.load_all()
    async with fresh_database() as url, open_database(url) as db:

        def reflect(connection: Any) -> MetaData:
            result = MetaData()
            result.reflect(bind=connection)
            return result

        async def reflected(tx: Tx) -> MetaData:
            return await tx.run_sync(reflect)

        result = await db.read(reflected)
    names = set(result.tables) - {"alembic_version"}
    assert names == set(metadata.tables)
    for name, table in metadata.tables.items():
        built = result.tables[name]
        assert {c.name: c.nullable for c in built.columns} == {c.name: c.nullable for c in table.columns}, name
        assert {i.name for i in built.indexes if i.name} >= {i.name for i in table.indexes}, name


async def test_repeated_and_concurrent_migration() -> None:
    async with (
        fresh_database(migrated=False) as url,
        open_database(url) as item,
        open_database(url) as two,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(migrate, item)
        nursery.start_soon(migrate, two)
    assert known_revisions() == sorted(known_revisions())


async def test_a_newer_schema_is_refused() -> None:
    async with fresh_database() as url, open_database(url) as db:

        async def pretend(tx: Tx) -> None:
            await tx.execute(text("UPDATE alembic_version SET version_num = '9999'"))

        await db.run(pretend)
        with pytest.raises(CoderError) as caught:
            await migrate(db)
        assert caught.value.code == "schema_newer"


async def test_schema_upgraded_meanwhile_is_refused() -> None:
    async with fresh_database() as url, open_database(url) as db, open_database(url) as newer:
        token, locked = trio.lowlevel.current_trio_token(), trio.Event()

        async def be_behind(tx: Tx) -> None:
            await tx.execute(text("UPDATE alembic_version SET version_num = :old"), {"old": known_revisions()[-2]})

        async def upgrade_as_a_newer_release(tx: Tx) -> None:
            await tx.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
            token.run_sync_soon(locked.set)
            waiting = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
            while not (await tx.execute(waiting)).scalar_one():
                await tx.execute(text("SELECT pg_sleep(0.01)"))
            await tx.execute(text("UPDATE alembic_version SET version_num = '9999'"))

        await db.run(be_behind)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(newer.run, upgrade_as_a_newer_release)
            await locked.wait()
            with pytest.raises(CoderError) as caught:
                await migrate(db)
        assert caught.value.code == "schema_newer"


@pytest.mark.parametrize("first", ["organizations", "templates", "files", "template_version_terraform"])
async def test_upgrade_does_not_deadlock_writers(first: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replica of the previous release writes to a table that gets a trigger and then to one that gets an index; to
    the latter like an import that has ended, with modules or without."""
    upgrade, ended_import = command.upgrade, ("files", "template_version_terraform", "provisioner_jobs")
    async with fresh_database(migrated=False) as url, open_database(url) as db, open_database(url) as before:
        with monkeypatch.context() as patch:
            patch.setattr(command, "upgrade", lambda config, _: upgrade(config, "0028"))
            await migrate(db)
        token, started, tries = trio.lowlevel.current_trio_token(), trio.Event(), list[str]()

        async def write(tx: Tx) -> None:
            tries.append(first)
            await tx.execute(text(f"DELETE FROM {first} WHERE false"))  # noqa: S608 - ours
            token.run_sync_soon(started.set)
            waiting = text(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'relation' AND NOT granted "
                "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
            while not (await tx.execute(waiting)).scalar_one():
                await tx.execute(text("SELECT pg_sleep(0.01)"))
            for table in ended_import[ended_import.index(first) + 1 if first in ended_import else 0 :]:
                await tx.execute(text(f"DELETE FROM {table}"))  # noqa: S608 - ours

        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(before.run, write)
                await started.wait()
                await migrate(db)
        assert len(tries) == 1, "once more is what a deadlock costs"


async def test_unusable_server_is_one_error() -> None:
    session = await shared_postgres()
    for url in ("postgres://nobody@127.0.0.1:1/x", session.url("no_such_database")):
        async with open_database(url) as db:
            with pytest.raises(CoderError) as caught:
                await migrate(db)
            assert caught.value.code == "database_unreachable"


async def test_settings_follow_the_start() -> None:
    """PgBouncer refuses settings it does not know at the start of a connection, so statements make them."""

    async def show(tx: Tx) -> list[str]:
        names = ("jit", "plan_cache_mode", "search_path", "application_name")
        return [(await tx.execute(text(f"SHOW {name}"))).scalar_one() for name in names]

    more = "search_path=public,o'ther&application_name=a@b"
    async with fresh_database() as url, open_database(f"{url}&{more}") as db:
        assert db.connect_arguments["server_settings"] == {"application_name": "a@b"}
        assert await db.read(show) == ["off", "force_generic_plan", "public,o'ther", "a@b"]
