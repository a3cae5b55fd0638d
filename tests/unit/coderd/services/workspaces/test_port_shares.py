"""Shares of single ports: levels, expiry, limits."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from coder.coderd.store.templates import system_templates
from coder.coderd.store.templates.templates import update_template
from coder.coderd.store.workspaces.port_shares import PortShareRow, narrow_port_shares, put_port_share
from coder.domain.foundation.share_levels import SHARE_LEVELS, ShareLevel, shared_at_most
from tests.kit.server.race_conditions import overtaken
from tests.kit.server.workspaces import new_workspace, workspace_world


async def test_share_and_unshare() -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world, "w")
        path = f"/api/v2/workspaces/{workspace['id']}/port-share"
        share = {"agent_name": "main", "port": 8080, "share_level": "authenticated", "protocol": "http"}
        assert (await world.post(path, share)).json() == {"workspace_id": workspace["id"], **share}
        assert (await world.post(path, {**share, "share_level": "public"})).status_code == 200
        assert [item["share_level"] for item in (await world.get(path)).json()["shares"]] == ["public"]
        for change, message in (
            ({"share_level": "owner"}, "Port sharing level not allowed."),
            ({"agent_name": "zz"}, "Agent not found."),
            ({"port": 8}, "Port must be between 9 and 65535."),
        ):
            refused = await world.post(path, {**share, **change})
            assert (refused.status_code, refused.json()["message"]) == (400, message)
        deleted = await world.request("DELETE", path, json={"agent_name": "main", "port": 8080})
        assert deleted.status_code == 200
        assert (await world.request("DELETE", path, json={"agent_name": "main", "port": 8080})).status_code == 404


@pytest.mark.parametrize("limit", SHARE_LEVELS)
async def test_lowered_limit_narrows_shares(limit: ShareLevel) -> None:
    """A wider limit afterwards opens nothing again."""
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world, "w")
        rows = dict(enumerate(SHARE_LEVELS[1:], 8080))
        for port, level in rows.items():
            share = PortShareRow(UUID(workspace["id"]), "main", port, level, "http")
            await world.ctx.db.run(put_port_share, share)

        async def shares() -> dict[int, str]:
            listed = (await world.get(f"/api/v2/workspaces/{workspace['id']}/port-share")).json()["shares"]
            return {item["port"]: item["share_level"] for item in listed}

        await world.ctx.db.run(narrow_port_shares, uuid4(), "owner")  # another template's
        assert await shares() == rows
        expected = {port: shared_at_most(level, limit) for port, level in rows.items()} if limit != "owner" else {}
        for new_limit in (limit, "public"):
            body = {"max_port_share_level": new_limit, "description": new_limit}
            changed = await world.patch(f"/api/v2/templates/{workspace['template_id']}", body)
            assert changed.status_code == 200, changed.text
            assert await shares() == expected


async def test_concurrent_share_obeys_limit() -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world, "w")
        share = {"agent_name": "main", "port": 8080, "share_level": "public", "protocol": "http"}
        path = f"/api/v2/workspaces/{workspace['id']}/port-share"

        async def lower(tx: Any) -> None:
            template = await system_templates.get_template(tx, UUID(workspace["template_id"]), lock=True)
            assert template is not None
            await update_template(tx, template.id, max_port_share_level="owner")

        answer = await overtaken(world, lower, lambda: world.post(path, share))
        assert (answer.status_code, answer.json()["message"]) == (400, "Port sharing level not allowed.")
        assert (await world.get(path)).json()["shares"] == []


async def test_shares_expire() -> None:
    async with workspace_world() as (world, _):
        workspace, now = await new_workspace(world, "w"), world.ctx.clock.now()
        path = f"/api/v2/workspaces/{workspace['id']}/port-share"
        share = {"agent_name": "main", "port": 8080, "share_level": "public", "protocol": "http"}

        async def expiries() -> list[str | None]:
            return [item.get("expires_at") for item in (await world.get(path)).json()["shares"]]

        later, sooner = ((now + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ") for hours in (5, 2))
        answer = await world.post(path, {**share, "expires_at": later})
        assert (answer.status_code, answer.json()["expires_at"]) == (200, later)
        updated = await world.post(path, {**share, "share_level": "authenticated"})  # as upstream's clients send it
        assert updated.json()["expires_at"] == later and await expiries() == [later]
        for requested, stored in ((sooner, sooner), (None, None), (later, later)):
            assert (await world.post(path, {**share, "expires_at": requested})).status_code == 200
            assert await expiries() == [stored]
        refused = await world.post(path, {**share, "expires_at": now.strftime("%Y-%m-%dT%H:%M:%SZ")})
        assert (refused.status_code, refused.json()["validations"][0]["field"]) == (400, "expires_at")
        expired = PortShareRow(UUID(workspace["id"]), "main", 8080, "public", "http", now - timedelta(seconds=1))
        await world.ctx.db.run(put_port_share, expired)
        assert await expiries() == []
        refused = await world.post(path, share)
        assert (refused.status_code, refused.json()["validations"][0]["field"]) == (400, "expires_at")
        assert await expiries() == [], "changing an expired share does not make it permanent"
        assert (await world.post(path, {**share, "expires_at": later})).json()["expires_at"] == later
        await world.ctx.db.run(put_port_share, expired)
        port = {"agent_name": "main", "port": 8080}
        assert (await world.request("DELETE", path, json=port)).status_code == 200
        assert "expires_at" not in (await world.post(path, share)).json(), "the expired share is gone"
        refused = await world.post(path, {**share, "expires_at": later.removesuffix("Z")})
        assert refused.status_code == 400 and "parsing time" in refused.json()["detail"]
