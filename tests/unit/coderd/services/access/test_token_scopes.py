"""Scopes of a token as they are stored."""

from __future__ import annotations

from tests.kit.server.server_in_process import running_coderd


async def test_order_of_scopes_is_kept() -> None:
    async with running_coderd(first_user=True) as world:
        asked = ["workspace:read", "template:read", "workspace:read", "file:read"]
        created = await world.post("/api/v2/users/me/keys/tokens", {"token_name": "t", "scopes": asked})
        assert created.status_code == 201, created.text
        token = (await world.get("/api/v2/users/me/keys/tokens/t")).json()
        assert token["scopes"] == ["workspace:read", "template:read", "file:read"]
