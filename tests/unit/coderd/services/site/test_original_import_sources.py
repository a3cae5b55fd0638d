"""Import of an original's database: sources that are refused, and sources that change."""

# ruff: noqa: S608 (names and values of these tests)
from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import make_url

from coder.base.errors import CoderError
from coder.coderd.store.original.fingerprints import TABLES, read_fingerprints
from coder.coderd.store.original.known_columns import COLUMNS
from coder.coderd.store.original.source import open_snapshot
from coder.coderd.store.original.steps import STEPS
from tests.kit.original.database import execute, original_database
from tests.kit.original.deployment import KEY_ID
from tests.kit.original.importing import StoppedError, both, content, run_dry, run_import
from tests.kit.original.rows import ident
from tests.kit.original.schema import MIGRATION
from tests.kit.server.postgres_server import shared_postgres

CHANGES = {
    "api_keys": f"DELETE FROM api_keys WHERE id = '{KEY_ID}'",
    "files": "UPDATE files SET hash = 'other' WHERE id = (SELECT id FROM files LIMIT 1)",
    "group_members": f"UPDATE group_members SET user_id = '{ident('users', 3)}' WHERE group_id = "
    f"'{ident('groups', 1)}'",
    "site_configs": "UPDATE site_configs SET value = 'Other' WHERE key = 'application_name'",
    "users": f"UPDATE users SET status = 'suspended' WHERE id = '{ident('users', 0)}'",
    "workspace_builds": "DELETE FROM workspace_builds WHERE id = (SELECT max(id::text)::uuid FROM workspace_builds)",
}
"""Changes that a continued import could miss, by table, in alphabetical order."""


async def test_changed_source_is_refused() -> None:
    async with both() as (source, target):

        def tell(kind: str, *_: object) -> None:
            if kind == "workspace_app_stats":
                raise StoppedError

        with pytest.raises(StoppedError):
            await run_import(source, target, tell=tell)
        before = await content(target)
        record = await execute(target, "SELECT value FROM site_configs")
        changed = []
        for table, change in CHANGES.items():
            await execute(source, "SET session_replication_role = replica", change, "SELECT 1")
            changed.append(table)
            with pytest.raises(CoderError, match=f"began: {', '.join(changed)}$") as refused:
                await run_import(source, target)
            assert refused.value.code == "source_changed"
            assert refused.value.hint == "Stop the original server, and import again into an empty database."
        assert await content(target) == before
        assert await execute(target, "SELECT value FROM site_configs") == record


async def test_fingerprints_follow_every_table() -> None:
    async def read() -> dict[str, str]:
        async with open_snapshot(source) as snapshot:
            return await read_fingerprints(snapshot, lambda *_: None)

    async with original_database() as source:
        unsafe = "SET session_replication_role = replica"
        first = await read()
        unchecked = {"workspace_agent_metadata": ["key"], "workspace_agent_logs": ["id"]}
        columns = {table: min(COLUMNS.get(table) or unchecked[table]) for table in TABLES}
        moved = [f'UPDATE {table} SET "{name}" = "{name}"' for table, name in columns.items()]
        await execute(source, unsafe, *moved, "SELECT 1")
        assert await read() == first
        emptied = [f"DELETE FROM {table} WHERE ctid = (SELECT min(ctid) FROM {table})" for table in TABLES]
        await execute(source, unsafe, *emptied, "SELECT 1")
        changed = await read()
        assert not [table for table in TABLES if changed[table] == first[table]]


@pytest.mark.parametrize("table", ["files", "workspace_builds"])
async def test_fingerprint_follows_large_values(table: str) -> None:
    """Contents that are not hashed as text."""
    change = {"files": "hash = 'x'", "workspace_builds": "provisioner_state = 'x'"}[table]
    async with original_database() as source:
        async with open_snapshot(source) as snapshot:
            first = await read_fingerprints(snapshot, lambda *_: None)
        await execute(source, f"UPDATE {table} SET {change}", "SELECT 1")
        async with open_snapshot(source) as snapshot:
            second = await read_fingerprints(snapshot, lambda *_: None)
        assert [name for name in TABLES if first[name] != second[name]] == [table]


async def test_fingerprints_cover_every_query() -> None:
    """The database itself names the tables that each step reads."""

    def relations(plan: object) -> set[str]:
        if isinstance(plan, list):
            return set().union(*map(relations, plan))
        if not isinstance(plan, dict):
            return set()
        named = {plan["Relation Name"]} if "Relation Name" in plan else set()
        return named.union(*map(relations, plan.values()))

    async with original_database() as source:
        read = {"site_configs"}
        for step in STEPS:
            row = (await execute(source, f"EXPLAIN (FORMAT JSON) {step.select(with_keys=True)}"))[0]
            used = relations(json.loads(row[0]))
            assert used == set(step.tables)
            read |= used
        assert read == set(TABLES)


async def test_fingerprints_tell_their_table() -> None:
    told = []
    async with original_database() as source, open_snapshot(source) as snapshot:
        await read_fingerprints(snapshot, lambda *words: told.append(words))
    assert told[0] == (f"fingerprints of tables ({TABLES[0]})", 0, len(TABLES))


async def test_deployment_id_must_be_uuid() -> None:
    async with both() as (source, target):
        await execute(source, "UPDATE site_configs SET value = 'acme' WHERE key = 'deployment_id'", "SELECT 1")
        for run in (run_dry(source), run_import(source, target)):
            with pytest.raises(CoderError, match="deployment id is not a UUID: acme") as refused:
                await run
            assert refused.value.hint


async def test_source_cannot_be_written() -> None:
    async with original_database() as source, open_snapshot(source) as snapshot:
        with pytest.raises(Exception, match="read-only transaction"):
            await snapshot.value("DELETE FROM licenses")


BROKEN = {
    "schema_older": ("ALTER TABLE templates DROP COLUMN disable_module_cache", "older than Coder 2.34"),
    "schema_newer": ("ALTER TABLE templates ADD COLUMN colour text", "templates.colour"),
    "schema_dirty": ("UPDATE schema_migrations SET dirty = true", "was interrupted"),
    "not_coder": ("DROP TABLE schema_migrations", "not a database of Coder"),
}


@pytest.mark.parametrize("code", BROKEN)
async def test_other_schema_is_refused(code: str) -> None:
    change, sentence = BROKEN[code]
    async with both() as (source, target):
        await execute(source, change, "SELECT 1")
        for run in (run_dry(source), run_import(source, target)):
            with pytest.raises(CoderError, match=sentence) as refused:
                await run
            assert refused.value.code == code
            assert code == "not_coder" or str(MIGRATION) in refused.value.message
        if code == "schema_newer":
            report = await run_import(source, target, ignore_unknown=True)
            assert any("templates.colour" in note for note in report.notes)


@asynccontextmanager
async def reader(source: str) -> AsyncIterator[str]:
    """The source's URL for a user that owns nothing."""
    cluster, url = await shared_postgres(), make_url(source)
    name = f"reader_{url.database}"
    await cluster.execute(f"CREATE ROLE {name} LOGIN")
    try:
        yield source.replace("//coder@", f"//{name}@")
    finally:
        await execute(source, f"DROP OWNED BY {name}", "SELECT 1")
        await cluster.execute(f"DROP ROLE {name}")


async def test_missing_rights_are_named() -> None:
    """Without a right the catalog of columns hides the table, which is not a table that the schema lacks."""
    async with both() as (source, target), reader(source) as url:
        name = make_url(url).username
        grants = {
            "REVOKE USAGE ON SCHEMA public FROM PUBLIC": f"the user {name} may not use the schema public",
            f"GRANT USAGE ON SCHEMA public TO {name}": "and \\d+ more",
            f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}": "",
            f"REVOKE SELECT ON licenses, templates FROM {name}": f"{name} may not read .*: licenses, templates$",
        }
        for change, sentence in grants.items():
            await execute(source, change, "SELECT 1")
            for run in (run_dry(url), run_import(url, target)) if sentence else ():
                with pytest.raises(CoderError, match=sentence) as refused:
                    await run
                assert refused.value.code == "source_unreadable"
                assert f"TO {name}." in refused.value.hint
        await execute(source, f"GRANT SELECT ON licenses, templates TO {name}", "SELECT 1")
        await run_import(url, target)


async def test_other_schema_is_read() -> None:
    moved = 'ALTER SCHEMA public RENAME TO "Old Coder"'
    copied = (
        "CREATE SCHEMA test",
        "CREATE TABLE test.schema_migrations (version bigint, dirty boolean)",
        "CREATE TABLE test.site_configs (key text, value text)",
    )
    async with both() as (source, target):
        await execute(source, moved, "SELECT 1")
        expected = await run_dry(source)
        assert sum(kind.taken for kind in expected.kinds) > 100
        await execute(source, *copied, "SELECT 1")
        with pytest.raises(CoderError, match="several schemas: Old Coder, test"):
            await run_dry(source)
        # The same URL as the original server's.
        report = await run_import(f"{source}&search_path=%22Old%20Coder%22", target)
        assert [kind.taken for kind in report.kinds] == [kind.taken for kind in expected.kinds]
        for name, sentence in (("test", "the schema test has no tables"), ("lost", "no schema that the search_path")):
            with pytest.raises(CoderError, match=sentence):
                await run_dry(f"{source}&search_path={name}")


URLS = {
    "mysql://coder@127.0.0.1/coder": ("bad_database_url", "the URL of --from is wrong"),
    "https://coder.example.com": ("bad_database_url", "the URL of --from is wrong"),
    "postgres://coder@127.0.0.1:1/coder": ("source_unreachable", "the original's database cannot be used"),
}


@pytest.mark.parametrize("url", URLS)
async def test_wrong_url_names_option(url: str) -> None:
    code, sentence = URLS[url]
    with pytest.raises(CoderError, match=sentence) as refused:
        await run_dry(url)
    assert refused.value.code == code
    assert refused.value.hint


async def test_text_without_encoding_is_refused() -> None:
    """A database without an encoding may have texts that no client can read."""
    cluster = await shared_postgres()
    async with original_database() as source:
        name = f"{make_url(source).database}_ascii"
        await cluster.execute(
            f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'"
        )
        try:
            latin = source.replace(f"/{make_url(source).database}?", f"/{name}?")
            await execute(latin, "CREATE TABLE schema_migrations AS SELECT E'\\xe9'::text AS version", "SELECT 1")
            async with open_snapshot(latin) as snapshot:
                with pytest.raises(CoderError, match="failed: invalid byte sequence") as refused:
                    await snapshot.rows("SELECT version FROM schema_migrations")
                assert "correct the text there" in refused.value.hint
        finally:
            await cluster.execute(f"DROP DATABASE {name} WITH (FORCE)")
