"""Import of an original's database: everything arrives once, and nothing is forgotten."""

# ruff: noqa: S608 (names and values of these tests)
from __future__ import annotations

import base64
import hashlib
import json
import secrets
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from coder.base.errors import CoderError
from coder.coderd.services.foundation.encryption_at_rest import Sealer, read_keys
from coder.coderd.services.site import original_import
from coder.coderd.store.engine.database import open_database
from coder.coderd.store.original import target as original_target
from coder.coderd.store.original.source import open_snapshot, remaining
from coder.coderd.store.original.steps import STEPS
from coder.coderd.store.site import site_settings
from tests.kit.original.database import execute
from tests.kit.original.deployment import DEPLOYMENT_ID, EMAIL, STATE, TEMPLATE
from tests.kit.original.importing import StoppedError, both, content, numbers, run_dry, run_import
from tests.kit.original.rows import ident
from tests.kit.original.schema import MIGRATION
from tests.kit.server.postgres_server import fresh_database


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
        with pytest.raises(CoderError, match=r"began: templates$"):
            await run_import(source, target)
        assert await content(target) == before


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
