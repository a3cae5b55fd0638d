"""Import of an original's database: targets that are refused before anything is written."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlalchemy import make_url

from coder.base.errors import CoderError, explain_error
from coder.coderd.services.site import original_import
from coder.coderd.store.engine.database import Database, open_database
from coder.coderd.store.engine.migrate import migrate
from coder.coderd.store.original.target import create_tables, open_target
from coder.coderd.store.site import site_settings
from tests.kit.original.database import execute, original_database
from tests.kit.original.importing import both, content, numbers, run_import
from tests.kit.server.postgres_server import fresh_database, shared_postgres

OCCUPIED = {
    "users": (
        "INSERT INTO users (id, email, username, created_at, updated_at, last_seen_at) "
        "VALUES (gen_random_uuid(), 'x@y.z', 'x', now(), now(), now())",
        "it has 1 users",
    ),
    "server": (
        "INSERT INTO replicas (id, hostname, region_id, created_at, updated_at) "
        "VALUES (gen_random_uuid(), 'box', 1, now(), now())",
        "a server uses this database: box",
    ),
    "original": ("CREATE TABLE schema_migrations (version bigint)", "database of the original"),
    "foreign table": ("CREATE TABLE invoices (number int)", "such as public.invoices"),
    "foreign schema": ("CREATE SCHEMA shop CREATE TABLE invoices (number int)", "such as shop.invoices"),
    "newer release": ("UPDATE alembic_version SET version_num = '9999'", "newer release"),
    "other import": (
        "INSERT INTO site_configs VALUES ('original_import', "
        """'{"source": "other", "migration": 1, "started_at": ""}')""",
        "another deployment",
    ),
}


@pytest.mark.parametrize("case", OCCUPIED)
async def test_occupied_target_is_refused(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(_: object) -> None:
        raise AssertionError("a refused database was migrated")

    monkeypatch.setattr(original_import, "create_tables", refuse)
    change, sentence = OCCUPIED[case]
    async with both() as (source, target):
        await execute(target, change, "SELECT 1")
        before = await content(target)
        with pytest.raises(CoderError, match=sentence) as refused:
            await run_import(source, target)
        assert refused.value.hint
        assert await content(target) == before


async def test_started_target_is_empty() -> None:
    """A server that was started once has an organization and the prebuilds user, which the import replaces."""
    async with both() as (source, target):
        async with open_database(target) as database:
            await migrate(database)
            await database.run(site_settings.ensure_deployment, datetime.now(UTC))
        report = await run_import(source, target)
        assert numbers(report)["organizations"] == (2, 2, [])


async def test_foreign_table_stays_alone() -> None:
    """A table of another program with the name of one of ours, in a database without our schema."""
    async with original_database() as source, fresh_database(migrated=False) as target:
        async with open_database(target) as database, open_target(database) as opened:
            await opened.require_stopped()
            assert await opened.read_progress() is None
            assert await opened.content() == ""
        await execute(target, "CREATE TABLE templates (number int)", "SELECT 1")
        with pytest.raises(CoderError, match=r"such as public\.templates"):
            await run_import(source, target)
        found = await execute(target, "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace")
        assert found == [("templates",)]


async def test_server_started_meanwhile_is_noticed() -> None:
    """Reading the source takes minutes, in which the empty database may get a server or users."""
    insert, sentence = OCCUPIED["server"]
    async with both() as (source, target):
        begun = False
        with pytest.MonkeyPatch.context() as patched:

            async def create_late(database: Database) -> None:
                nonlocal begun
                await create_tables(database)
                await execute(target, insert, "SELECT 1")
                begun = True

            patched.setattr(original_import, "create_tables", create_late)
            with pytest.raises(CoderError, match=sentence):
                await run_import(source, target)
        assert begun
        assert await execute(target, "SELECT key FROM site_configs") == []


async def test_schema_of_url_is_used() -> None:
    async with original_database() as source, fresh_database(migrated=False) as target:
        await execute(target, "CREATE SCHEMA ours", "CREATE TABLE invoices (number int)", "SELECT 1")
        with pytest.raises(CoderError, match=r"such as public\.invoices"):
            await run_import(source, target)
        report = await run_import(source, f"{target}&search_path=ours")
        assert numbers(report)["users"][:2] == (4, 4)
        assert await execute(target, "SELECT count(*) FROM ours.users") == [(4,)]
        assert await execute(target, "SELECT to_regclass('public.users')::text") == [(None,)]


FAILURES = {
    "53100": ("could not extend file", "Free disk space"),
    "57014": ("canceling statement", "run the command again"),
}


@pytest.mark.parametrize("state", FAILURES)
async def test_failing_target_is_explained(state: str) -> None:
    """A full disk in the middle of the import; afterwards it continues."""
    text, hint = FAILURES[state]
    async with both() as (source, target):
        await execute(
            target,
            f"CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '{text}' "
            f"USING ERRCODE = '{state}'; END $$",
            "CREATE TRIGGER fail BEFORE INSERT ON templates EXECUTE FUNCTION fail()",
            "SELECT 1",
        )
        with pytest.raises(CoderError, match="templates cannot be imported") as refused:
            await run_import(source, target)
        assert text in explain_error(refused.value)
        assert hint in refused.value.hint
        await execute(target, "DROP TRIGGER fail ON templates", "SELECT 1")
        assert numbers(await run_import(source, target))["templates"][:2] == (2, 2)


async def test_missing_right_is_explained() -> None:
    cluster = await shared_postgres()
    async with original_database() as source, fresh_database(migrated=False) as target:
        name = f"user_{make_url(target).database}"
        await cluster.execute(f"CREATE ROLE {name} LOGIN")
        try:
            await execute(target, "REVOKE CREATE ON SCHEMA public FROM PUBLIC", "SELECT 1")
            with pytest.raises(CoderError, match="permission denied for schema public") as refused:
                await run_import(source, target.replace("//coder@", f"//{name}@"))
            assert "grant it CREATE" in refused.value.hint
        finally:
            await cluster.execute(f"DROP ROLE {name}")


async def test_other_encoding_is_refused() -> None:
    cluster = await shared_postgres()
    async with original_database() as source:
        name = f"{make_url(source).database}_latin"
        await cluster.execute(
            f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'"
        )
        try:
            with pytest.raises(CoderError, match="encoding is LATIN1") as refused:
                await run_import(source, source.replace(f"/{make_url(source).database}?", f"/{name}?"))
            assert "ENCODING 'UTF8'" in refused.value.hint
        finally:
            await cluster.execute(f"DROP DATABASE {name} WITH (FORCE)")
