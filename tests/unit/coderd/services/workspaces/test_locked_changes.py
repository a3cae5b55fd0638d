"""Changes of a workspace are checked against its owner at the time of writing, not of the request.

A claim is such a change of owner: administrators may still be changing the prebuilt workspace.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import httpx

from coder.coderd.store.workspaces import port_shares, system_workspaces
from coder.coderd.store.workspaces import workspaces as workspace_store
from tests.kit.api.api_description import changing
from tests.kit.server.race_conditions import overtaken
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import new_workspace, workspace_world

_SHARE = {"agent_name": "main", "port": 8080, "share_level": "authenticated", "protocol": "http"}
_OPEN = {**_SHARE, "port": 9090}
CHANGES: tuple[tuple[str, str, Any], ...] = (
    ("PATCH", "", {"name": "stolen"}),
    ("PUT", "/autostart", {"schedule": "CRON_TZ=UTC 30 9 * * 1-5"}),
    ("PUT", "/ttl", {"ttl_ms": 3_600_000}),
    ("PUT", "/extend", {"deadline": "2026-01-01T20:00:00Z"}),
    ("PUT", "/favorite", None),
    ("DELETE", "/favorite", None),
    ("PUT", "/autoupdates", {"automatic_updates": "always"}),
    ("PUT", "/dormant", {"dormant": True}),
    ("POST", "/usage", {"agent_id": str(UUID(int=1)), "app_name": "ssh"}),
    ("POST", "/port-share", _SHARE),
    ("DELETE", "/port-share", {"agent_name": "main", "port": 9090}),
    ("PATCH", "/acl", {"user_roles": {"{friend}": "admin"}}),
    ("DELETE", "/acl", None),
    ("POST", "/builds", {"transition": "stop"}),
    ("POST", "/builds", {"transition": "delete"}),
    ("POST", "/abandon", {}),
)


ELSEWHERE = {
    "POST /external-agent/<agent>/rotate-token": "requires an external agent: test_external_agents.py",
    "POST /update-preview": "leaves nothing at the workspace",
    "DELETE /update-preview/<id:preview>": "cancels a preview of the caller's own",
}
"""Changes tested in another file, and requests without a change."""


def test_table_lists_every_workspace_change() -> None:
    routes = {route.replace("/api/v2/workspaces/<id:workspace>", "") for route in changing("id:workspace")}
    assert routes == {f"{method} {suffix}" for method, suffix, _ in CHANGES} | ELSEWHERE.keys()


async def _state(world: World, workspace_id: UUID) -> Any:
    """Return everything a change could have modified, except the owner."""

    async def read(tx: Any) -> Any:
        view = await system_workspaces.get_view(tx, workspace_id)
        assert view is not None
        row = {name: getattr(view.workspace, name) for name in view.workspace.__slots__ if name != "owner_id"}
        return row, view.latest.build, await port_shares.list_port_shares(tx, workspace_id, world.ctx.clock.now())

    return await world.ctx.db.read(read)


async def test_changes_rejected_after_owner_change() -> None:
    failures = []
    async with workspace_world(allow_workspace_renames=True) as (world, _):
        _, token = await world.member("alice")
        bob, _ = await world.member("bob")
        friend, _ = await world.member("friend")
        for number, (method, suffix, body) in enumerate(CHANGES):
            workspace = await new_workspace(world, f"w{number}", user="alice", ttl_ms=28_800_000)
            workspace_id, path = UUID(workspace["id"]), f"/api/v2/workspaces/{workspace['id']}"
            assert (await world.post(f"{path}/port-share", _OPEN, token=token)).status_code == 200
            if body and "user_roles" in body:
                body = {"user_roles": {friend: "admin"}}
            before = await _state(world, workspace_id)

            async def request(method: str = method, path: str = path + suffix, body: Any = body) -> httpx.Response:
                return await world.request(method, path, json=body, token=token)

            async def change_owner(tx: Any, workspace_id: UUID = workspace_id) -> None:
                await system_workspaces.get_workspace(tx, workspace_id, lock=True)
                await workspace_store.update_workspace(tx, workspace_id, owner_id=UUID(bob))

            answer = await overtaken(world, change_owner, request)
            if answer.status_code not in {403, 404}:
                failures.append(f"{method} {suffix}: {answer.status_code} {answer.text[:150]}")
            if await _state(world, workspace_id) != before:
                failures.append(f"{method} {suffix}: the change was written")
    assert not failures, "\n".join(failures)
