"""Generated site secrets: one for all replicas, whichever starts first."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from coder.coderd.services.foundation import signing_keys
from coder.coderd.services.foundation.encryption_at_rest import Sealer
from coder.coderd.services.network import relay
from coder.coderd.services.notifications import vapid_keys
from coder.coderd.services.wireguard import wireguard_server
from coder.coderd.store.engine.database import Database, Tx, open_database
from coder.coderd.store.site import site_settings
from tests.kit.server.postgres_server import fresh_database
from tests.kit.server.server_in_process import running_coderd

SEALER = Sealer.of_keys({})
NOW = datetime(2026, 11, 21, tzinfo=UTC)


async def _signing(tx: Tx) -> object:
    return await signing_keys._ensure_keys(tx, "signing_key:x", NOW, SEALER)


async def _push_keys(tx: Tx) -> object:
    return await vapid_keys._stored_pair(tx, SEALER)


@pytest.mark.parametrize("make", [relay._ensure_keys, _push_keys, _signing])
async def test_concurrent_replicas_share_one_secret(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have read before either has written."""
    results: list[object] = []
    meet = _Meeting(2)
    really_ensure = site_settings.ensure_config

    async def ensure(tx: Tx, key: str, value: str) -> str:
        await meet.wait_for_all()
        return await really_ensure(tx, key, value)

    async def replica(database: Database) -> None:
        results.append(await database.run(make))

    monkeypatch.setattr(site_settings, "ensure_config", ensure)
    async with fresh_database() as url, open_database(url) as item, open_database(url) as other:
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(replica, item)
                nursery.start_soon(replica, other)
    assert len(results) == 2 and results[0] == results[1]


class _Meeting:
    """Waits until so many have arrived; they run on event loops of their own."""

    def __init__(self, count: int) -> None:
        self._missing = count

    async def wait_for_all(self) -> None:
        import asyncio

        self._missing -= 1
        while self._missing > 0:
            await asyncio.sleep(0.001)


async def test_hub_key_is_sealed() -> None:
    keys = (base64.b64encode(b"k" * 32).decode(),)
    async with running_coderd(external_token_encryption_keys=keys) as world:
        ctx = world.ctx
        first = await wireguard_server.public_key(ctx)
        stored = await ctx.db.read(site_settings.get_config, wireguard_server._KEY_NAME)
        assert stored and stored.startswith("sealed:1:")
        assert await wireguard_server.public_key(ctx) == first
        plain = ctx.services.sealer.open(stored).reveal()
        await ctx.db.run(site_settings.put_config, wireguard_server._KEY_NAME, plain)
        assert await wireguard_server.public_key(ctx) == first
        stored = await ctx.db.read(site_settings.get_config, wireguard_server._KEY_NAME)
        assert stored and stored.startswith("sealed:1:")


async def test_concurrent_replicas_share_hub_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both read, both create one, one is kept."""
    meet, really_ensure = _Meeting(2), site_settings.ensure_config

    async def ensure(tx: Tx, key: str, value: str) -> str:
        await meet.wait_for_all()
        return await really_ensure(tx, key, value)

    results: list[bytes] = []

    async def replica(url: str) -> None:
        async with open_database(url) as database:
            ctx: Any = SimpleNamespace(db=database, services=SimpleNamespace(sealer=SEALER))
            results.append(await wireguard_server.public_key(ctx))

    monkeypatch.setattr(site_settings, "ensure_config", ensure)
    async with fresh_database() as url:
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(replica, url)
                nursery.start_soon(replica, url)
    assert len(results) == 2 and results[0] == results[1]


async def test_signing_keys_are_sealed() -> None:
    keys = (base64.b64encode(b"k" * 32).decode(),)
    async with running_coderd(external_token_encryption_keys=keys) as world:
        ctx, name = world.ctx, "signing_key:x"
        secrets = {"secret": "61" * 64, "previous": {"id": "1", "secret": "62" * 64, "until": "2099-01-01T00:00:00Z"}}
        plain = {"id": "2", "made_at": ctx.clock.now().isoformat(), **secrets}
        await ctx.db.run(site_settings.put_config, name, json.dumps(plain))
        signing = ctx.services.signing_keys
        assert (await signing.get("x")).secret == b"a" * 64
        assert (await signing.find("x", "1")).secret == b"b" * 64
        stored = await ctx.db.read(site_settings.get_config, name)
        assert stored and "6161" not in stored and "6262" not in stored
        assert [item.key.secret for item in await signing.describe("x")] == [b"a" * 64, b"b" * 64]
        later = ctx.clock.now() + signing_keys.LIFETIME * 2
        assert await ctx.db.run(signing_keys.rotate, later, ctx.services.sealer) == ["x"]
        assert (await ctx.db.read(site_settings.list_configs, name))[name].count("sealed:1:") == 2
