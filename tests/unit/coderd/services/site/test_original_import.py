"""Import of an original's database: everything arrives once, and nothing is forgotten."""

# ruff: noqa: S608 (names and values of these tests)
from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from coder.base.errors import CoderError
from coder.coderd.services.foundation.encryption_at_rest import Sealer, read_keys
from coder.coderd.services.site import original_import
from coder.coderd.services.site.original_import import Report
from coder.coderd.store.engine.database import open_database
from coder.coderd.store.engine.migrate import migrate
from coder.coderd.store.original import constraints
from coder.coderd.store.original import target as original_target
from coder.coderd.store.original.fingerprints import TABLES, read_fingerprints
from coder.coderd.store.original.known_columns import COLUMNS
from coder.coderd.store.original.source import open_snapshot, remaining
from coder.coderd.store.original.steps import STEPS
from coder.coderd.store.original.target import open_target
from coder.coderd.store.site import site_settings
from tests.kit.original.database import execute, original_database
from tests.kit.original.deployment import DEPLOYMENT_ID, EMAIL, KEY_ID, STATE, TEMPLATE
from tests.kit.original.importing import run_dry, run_import
from tests.kit.original.rows import ident
from tests.kit.original.schema import MIGRATION
from tests.kit.server.postgres_server import fresh_database


@asynccontextmanager
async def both() -> AsyncIterator[tuple[str, str]]:
    """The URLs of a source and of an empty target."""
    async with original_database() as source, fresh_database() as target:
        yield source, target


def numbers(report: Report) -> dict[str, tuple[int, int, list[tuple[str, int]]]]:
    return {
        kind.kind: (kind.rows, kind.taken, [(item.reason, item.count) for item in kind.not_taken])
        for kind in report.kinds
    }


async def content(url: str) -> list[str]:
    """Every row of the imported tables as text, without the keys that a database generates."""
    selects = []
    for step in STEPS:
        generated = [name for table, name in constraints.numbered_columns() if table == step.target]
        dropped = "".join(f" - '{name}'" for name in generated if name not in step.columns)
        selects.append(f"SELECT '{step.target} ' || (to_jsonb(t){dropped})::text FROM {step.target} t")
    return [row[0] for row in await execute(url, " UNION ALL ".join(dict.fromkeys(selects)) + " ORDER BY 1")]


async def test_dry_run_foretells_import() -> None:
    async with both() as (source, target):
        foretold = await run_dry(source)
        assert (await execute(target, "SELECT count(*) FROM users"))[0][0] == 0
        done = await run_import(source, target)
        different = {
            key: (value, numbers(done)[key]) for key, value in numbers(foretold).items() if value != numbers(done)[key]
        }
        assert not different
        assert sum(kind.taken for kind in done.kinds) > 100
        assert done.migration == MIGRATION
        assert [item.examples for item in done.not_imported if "licen" in item.reason] == [["licenses"]]
        assert any("build of workspace ana/dev" in note for note in done.notes)


async def test_values_change_as_documented() -> None:
    async with both() as (source, target):
        await run_import(source, target)

        async def one(sql: str) -> Any:
            return tuple((await execute(target, sql))[0])

        assert await one("SELECT data FROM files ORDER BY length(data) DESC LIMIT 1") == (TEMPLATE,)
        assert await one(
            "SELECT provisioner_state, deadline, granted_cost, log_level FROM workspace_builds b "
            "JOIN workspaces w ON w.latest_build_id = b.id WHERE w.name = 'Dev'"
        ) == (STATE, None, 3, "debug")
        assert await one("SELECT default_ttl_ms, autostart_days, autostop_weeks FROM templates WHERE name = 'box'") == (
            8 * 3600 * 1000,
            127 - 96,
            1,
        )
        acl = await one(
            "SELECT t.user_acl, t.group_acl, w.user_acl, w.group_acl FROM templates t JOIN workspaces w "
            "ON w.template_id = t.id WHERE w.name = 'Dev'"
        )
        assert [json.loads(item) for item in acl] == [
            {str(ident("users", 0)): "admin"},
            {str(ident("organizations", 0)): "use"},
            {str(ident("users", 3)): "use"},
            {str(ident("groups", 1)): "admin"},
        ]
        role = json.loads((await one("SELECT permissions FROM custom_roles"))[0])
        assert role == {
            "organization": {"workspace": ["read"]},
            "organization_denied": {"template": ["delete"]},
            "member": {},
            "site": {},
        }
        assert await one("SELECT count(*) FROM users WHERE lower(email) = lower('" + EMAIL + "')") == (2,)
        settings = dict(await execute(target, "SELECT key, value FROM site_configs"))
        assert settings["deployment_id"] == DEPLOYMENT_ID
        assert json.loads(settings["appearance"])["application_name"] == "Acme"
        assert json.loads(settings["health_settings"]) == ["DERP"]
        assert json.loads(settings[f"idp_sync_groups:{ident('organizations', 0)}"])["field"] == "groups"
        assert "prebuilds_settings" not in settings
        # Rows written from now on are numbered after the imported ones.
        assert await one(
            "INSERT INTO workspace_agent_logs (agent_id, created_at, output, log_source_id) "
            f"VALUES ('{ident('workspace_agents', 0)}', now(), '', '{ident('x', 0)}') RETURNING id"
        ) == (7003,)


class StoppedError(Exception):
    """Stands for the kill of the process."""


@pytest.mark.parametrize(
    "stop", [21, *(pytest.param(stop, marks=pytest.mark.soak) for stop in (1, 2, 9, 34, 47, 77, 100))]
)
async def test_stopped_import_continues(stop: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of one row, so that it also stops inside a step."""
    monkeypatch.setattr(original_import, "STEPS", tuple(replace(step, batch=1) for step in STEPS))
    calls = 0

    def tell(kind: str, *_: object) -> None:
        nonlocal calls
        calls += not kind.startswith("fingerprints")
        if calls == stop:
            raise StoppedError

    async with both() as (source, target), fresh_database() as straight:
        await run_import(source, straight)
        with pytest.raises(StoppedError):
            await run_import(source, target, tell=tell)
        async with open_database(target) as database:
            with pytest.raises(CoderError, match="has not finished"):
                await database.run(site_settings.ensure_deployment, datetime.now(UTC))
        await run_import(source, target)
        assert await content(target) == await content(straight)


async def test_stop_before_end_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings, the numbering of new rows and the end of the import arrive together."""

    def stop() -> list[tuple[str, str]]:
        raise StoppedError

    async with both() as (source, target):
        with monkeypatch.context() as patched:
            patched.setattr(original_target, "numbered_columns", stop)
            with pytest.raises(StoppedError):
                await run_import(source, target)
        assert [row[0] for row in await execute(target, "SELECT key FROM site_configs")] == ["original_import"]
        async with open_database(target) as database:
            with pytest.raises(CoderError, match="has not finished"):
                await database.run(site_settings.ensure_deployment, datetime.now(UTC))
        assert not (await run_import(source, target)).already_finished
        async with open_database(target) as database:
            found = await database.run(site_settings.ensure_deployment, datetime.now(UTC))
        assert str(found) == DEPLOYMENT_ID
        assert (await run_import(source, target)).already_finished


async def test_second_import_changes_nothing() -> None:
    async with both() as (source, target):
        first = await run_import(source, target)
        before = await content(target)
        again = await run_import(source, target)
        assert again.already_finished
        assert numbers(again) == numbers(first)
        assert await content(target) == before
        await execute(source, "UPDATE templates SET description = 'changed' WHERE name = 'box'", "SELECT 1")
        with pytest.raises(CoderError, match="began: templates$"):
            await run_import(source, target)
        assert await content(target) == before


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
        columns = {table: min(COLUMNS.get(table) or ["key"]) for table in TABLES}
        moved = [f'UPDATE {table} SET "{name}" = "{name}"' for table, name in columns.items()]
        await execute(source, unsafe, *moved, "SELECT 1")
        assert await read() == first
        emptied = [f"DELETE FROM {table} WHERE ctid = (SELECT min(ctid) FROM {table})" for table in TABLES]
        await execute(source, unsafe, *emptied, "SELECT 1")
        changed = await read()
        assert not [table for table in TABLES if changed[table] == first[table]]


DENYING = ("member_permissions", "site_permissions", "user_permissions")


async def test_denying_role_is_refused() -> None:
    """A role without its denial would grant more than at the original."""
    denial = '[{"negate": true, "resource_type": "template", "action": "read"}]'
    async with both() as (source, target):
        for column in DENYING:
            await execute(
                source,
                "CREATE TABLE late AS SELECT * FROM custom_roles WHERE name = 'auditor'",
                f"UPDATE late SET id = gen_random_uuid(), name = 'no-{column[:4]}', {column} = '{denial}'",
                "INSERT INTO custom_roles SELECT * FROM late",
                "DROP TABLE late",
                "SELECT 1",
            )
        foretold = await run_dry(source)
        report = await run_import(source, target)
        kind = next(kind for kind in report.kinds if kind.kind == "custom_roles")
        assert kind == next(kind for kind in foretold.kinds if kind.kind == "custom_roles")
        assert (kind.rows, kind.taken) == (5, 1)
        refused, _ = kind.not_taken
        assert (refused.count, refused.examples) == (3, ["no-memb", "no-site", "no-user"])
        assert "denies permissions" in refused.reason
        assert await execute(target, "SELECT name FROM custom_roles") == [("auditor",)]


@pytest.mark.parametrize("time", ["0044-03-15 12:00:00+00 BC", "-infinity", "infinity", "12026-01-01 00:00:00+00"])
async def test_time_beyond_python_is_reported(time: str) -> None:
    dev = "FROM workspaces WHERE name = 'Dev'"
    async with both() as (source, target):
        await execute(
            source,
            f"UPDATE workspaces SET created_at = '{time}', dormant_at = '{time}' WHERE name = 'Dev'",
            f"UPDATE workspace_builds SET deadline = '{time}' WHERE workspace_id = (SELECT id {dev})",
            f"UPDATE users SET last_seen_at = '{time}' WHERE username = 'ana'",
            "SELECT 1",
        )
        foretold = await run_dry(source)
        report = await run_import(source, target)
        changed = {(kind.kind, item.reason.split()[0]) for kind in report.kinds for item in kind.changed}
        assert changed == {
            ("users", "last_seen_at"),
            ("workspaces", "created_at"),
            ("workspaces", "dormant_at"),
            ("workspace_builds", "deadline"),
        }
        assert [kind.changed for kind in foretold.kinds] == [kind.changed for kind in report.kinds]
        zero = datetime(1, 1, 1, tzinfo=UTC)
        assert await execute(target, f"SELECT created_at, dormant_at {dev}") == [(zero, zero)]
        assert await execute(
            target, f"SELECT deadline FROM workspace_builds WHERE workspace_id = (SELECT id {dev})"
        ) == [(None,)]


async def test_deployment_id_must_be_uuid() -> None:
    async with both() as (source, target):
        await execute(source, "UPDATE site_configs SET value = 'acme' WHERE key = 'deployment_id'", "SELECT 1")
        for run in (run_dry(source), run_import(source, target)):
            with pytest.raises(CoderError, match="deployment id is not a UUID: acme") as refused:
                await run
            assert refused.value.hint


async def test_batches_bound_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    async with both() as (source, target):
        await execute(
            source,
            "INSERT INTO files (id, hash, created_at, created_by, mimetype, data) SELECT gen_random_uuid(), "
            "md5(n::text), created_at, created_by, mimetype, data FROM files, generate_series(1, 15) n",
            "SELECT 1",
        )
        largest = 0
        async with open_snapshot(source) as snapshot:
            step = next(step for step in STEPS if step.target == "files")
            selected = await remaining(snapshot, step, "")
            while rows := await selected.read(step.batch):
                largest = max(largest, len(rows))
        assert largest == step.batch == 4
        assert numbers(await run_import(source, target))["files"][:2] == (32, 32)


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

    monkeypatch.setattr(original_import, "migrate", refuse)
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
        with pytest.raises(CoderError, match="such as public.templates"):
            await run_import(source, target)
        found = await execute(target, "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace")
        assert found == [("templates",)]


def encrypted(key: bytes, text: str) -> tuple[str, str]:
    """A value as the original encrypts it, and the digest of the key."""
    nonce = secrets.token_bytes(12)
    sealed = base64.b64encode(nonce + AESGCM(key).encrypt(nonce, text.encode(), None)).decode()
    return sealed, hashlib.sha256(key).hexdigest()[:7]


async def test_encrypted_values_are_encrypted_again() -> None:
    theirs, ours = secrets.token_bytes(32), secrets.token_bytes(32)
    texts = [base64.b64encode(key).decode() for key in (ours, theirs)]
    async with both() as (source, target):
        token, digest = encrypted(theirs, "gho_token")
        test, _ = encrypted(theirs, "coder")
        await execute(
            source,
            f"INSERT INTO dbcrypt_keys (number, active_key_digest, test) VALUES (9, '{digest}', '{test}')",
            f"UPDATE user_links SET oauth_access_token = '{token}', oauth_access_token_key_id = '{digest}' "
            f"WHERE user_id = '{ident('users', 0)}'",
            "SELECT 1",
        )
        for keys in ([], [texts[0]]):
            with pytest.raises(CoderError, match=f"encrypted with a key that was not given: {digest}") as refused:
                await run_import(source, target, keys=keys)
            assert "--external-token-encryption-keys" in str(refused.value.hint)
        await run_import(source, target, keys=texts)
        stored = (
            await execute(target, f"SELECT oauth_access_token FROM user_links WHERE user_id = '{ident('users', 0)}'")
        )[0][0]
        assert stored.startswith("sealed:1:")
        assert Sealer.of_keys(read_keys(texts[:1], "x")).open(stored).reveal() == "gho_token"
