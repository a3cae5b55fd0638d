"""Secrets of users: validation, permissions, storage and delivery."""

from __future__ import annotations

import base64
from uuid import UUID

from coder.coderd.services.foundation.context import Context
from coder.coderd.services.people import user_secrets
from coder.coderd.store.people import user_secrets as store
from coder.rpc.proto import agent_pb2
from tests.kit.api.api_description import check
from tests.kit.server.server_in_process import running_coderd

PATH = "/api/v2/users/me/secrets"
KEY = base64.b64encode(b"o" * 32).decode()


async def test_secret_reaches_only_owners_agents() -> None:
    async with running_coderd(first_user=True, external_token_encryption_keys=(KEY,)) as world:
        created = await world.post(PATH, {"name": "db", "value": "hush", "env_name": "DB"})
        assert created.status_code == 201, created.text
        check("UserSecret", created.json())
        assert "hush" not in created.text
        owner = UUID(world.user_id)
        (row,) = await world.ctx.db.read(store.list_secrets, owner)
        assert "hush" not in row.value
        (sent,) = await _sent(world.ctx, owner)
        assert (sent.env_name, sent.value) == ("DB", b"hush")
        off = await world.patch(f"{PATH}/db", {"enabled": False, "env_name": ""})
        assert off.json()["enabled"] is False
        assert await _sent(world.ctx, owner) == []
        assert (await world.patch(f"{PATH}/db", {"enabled": True})).status_code == 400, "it has no target"
        _, token = await world.member("alice")
        for method, path in (("GET", ""), ("POST", ""), ("GET", "/db"), ("PATCH", "/db"), ("DELETE", "/db")):
            refused = await world.request(method, f"/api/v2/users/admin/secrets{path}", token=token, json={})
            assert refused.status_code == 404, (method, path)
        batch = await world.post(f"{PATH}/batch", {"format": "yaml", "content": "A: 1\nB: two\n"})
        assert [item["name"] for item in batch.json()] == ["A", "B"]
        again = await world.post(f"{PATH}/batch", {"format": "env", "content": "C=1\nB=2\n"})
        assert again.status_code == 409
        assert {item["name"] for item in (await world.get(PATH)).json()} == {"db", "A", "B"}, "all or none"
        for wrong in ({"format": "xml", "content": "x"}, {"format": "json", "content": "{"}, {"format": "env"}):
            assert (await world.post(f"{PATH}/batch", wrong)).status_code == 400, wrong


async def test_undecryptable_secret_is_skipped() -> None:
    async with running_coderd(first_user=True) as world:
        await world.post(PATH, {"name": "good", "value": "1", "env_name": "GOOD"})
        await world.post(PATH, {"name": "bad", "value": "1", "env_name": "BAD"})
        rows = await world.ctx.db.read(store.list_secrets, UUID(world.user_id))
        bad = next(row for row in rows if row.name == "bad")
        await world.ctx.db.run(store.update_secret, bad.id, {"value": "sealed:1:0badkey0:AAAA"})
        sent = await _sent(world.ctx, UUID(world.user_id))
        assert [item.env_name for item in sent] == ["GOOD"]


async def _sent(ctx: Context, owner: UUID) -> list[agent_pb2.WorkspaceSecret]:
    """Return what the manifest of the owner's agents has."""
    return user_secrets.open_secrets(ctx, await ctx.db.read(store.list_secrets, owner, enabled_only=True))
