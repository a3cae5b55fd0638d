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
from coder.coderd.store.original.source import open_snapshot, remaining
from coder.coderd.store.original.steps import STEPS
from coder.coderd.store.site import site_settings
from tests.kit.original.database import execute, original_database
from tests.kit.original.deployment import DEPLOYMENT_ID, EMAIL, STATE, TEMPLATE
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

    def tell(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls == stop:
            raise StoppedError

    async with both() as (source, target), fresh_database() as straight:
        await run_import(source, straight)
        with pytest.raises(StoppedError):
            await run_import(source, target, tell=tell)
        async with open_database(target) as database:
            with pytest.raises(CoderError, match="has not finished"):
                await database.run(site_settings.ensure_deployment, datetime.now(UTC))
        report = await run_import(source, target)
        assert await content(target) == await content(straight)
        assert not any("changed" in note for note in report.notes)


async def test_second_import_changes_nothing() -> None:
    async with both() as (source, target):
        first = await run_import(source, target)
        before = await content(target)
        again = await run_import(source, target)
        assert again.already_finished
        assert numbers(again) == numbers(first)
        assert await content(target) == before
        await execute(source, "UPDATE users SET updated_at = now() WHERE username = 'ana'", "SELECT 1")
        changed = await run_import(source, target)
        assert any("The source has changed since: users." in note for note in changed.notes)


async def test_source_changes_before_continuation() -> None:
    async with both() as (source, target):

        def tell(kind: str, *_: object) -> None:
            if kind == "provisioner_jobs":
                raise StoppedError

        with pytest.raises(StoppedError):
            await run_import(source, target, tell=tell)
        await execute(
            source,
            "CREATE TABLE late AS SELECT * FROM users LIMIT 1",
            "UPDATE late SET id = gen_random_uuid(), username = 'late', email = 'late@example.com'",
            "INSERT INTO users SELECT * FROM late",
            "DROP TABLE late",
            "SELECT 1",
        )
        report = await run_import(source, target)
        assert numbers(report)["users"][:2] == (5, 5)
        assert any("keep their earlier values: users" in note for note in report.notes)
        # Its status in the history was not doubled for the others.
        history = "SELECT count(*) FROM user_status_changes GROUP BY user_id, status, changed_at HAVING count(*) > 1"
        assert not await execute(target, history)


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
    "other import": (
        "INSERT INTO site_configs VALUES ('original_import', "
        """'{"source": "other", "migration": 1, "started_at": ""}')""",
        "another deployment",
    ),
}


@pytest.mark.parametrize("case", OCCUPIED)
async def test_occupied_target_is_refused(case: str) -> None:
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
