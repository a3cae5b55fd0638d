"""A workspace may change hands between a request's first look and its writing: what counts is whose it is then.

So it is with a claim, which gives a prebuilt workspace to somebody else while its administrators still prepare it.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import httpx

from coder.coderd.store.workspaces import port_shares
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


ELSEWHERE = {"POST /external-agent/<agent>/rotate-token": "wants an external agent: test_external_agents.py"}
"""What has its test there."""


def test_the_table_names_every_change_of_a_workspace() -> None:
    routes = {route.replace("/api/v2/workspaces/<id:workspace>", "") for route in changing("id:workspace")}
    assert routes == {f"{method} {place}" for method, place, _ in CHANGES} | ELSEWHERE.keys()


async def _state(world: World, workspace_id: UUID) -> Any:
    """Everything a change could have left, but for the owner."""

    async def read(tx: Any) -> Any:
        view = await workspace_store.get_view(tx, workspace_id)
        assert view is not None
        row = {name: getattr(view.workspace, name) for name in view.workspace.__slots__ if name != "owner_id"}
        return row, view.latest.build, await port_shares.list_port_shares(tx, workspace_id, world.ctx.clock.now())

    return await world.ctx.db.read(read)


async def test_what_was_allowed_before_a_workspace_changed_hands_is_not_done_after() -> None:
    wrong = []
    async with workspace_world(allow_workspace_renames=True) as (world, _):
        _, token = await world.member("alice")
        bob, _ = await world.member("bob")
        friend, _ = await world.member("friend")
        for number, (method, place, body) in enumerate(CHANGES):
            workspace = await new_workspace(world, f"w{number}", user="alice", ttl_ms=28_800_000)
            workspace_id, path = UUID(workspace["id"]), f"/api/v2/workspaces/{workspace['id']}"
            assert (await world.post(f"{path}/port-share", _OPEN, token=token)).status_code == 200
            if body and "user_roles" in body:
                body = {"user_roles": {friend: "admin"}}
            before = await _state(world, workspace_id)

            async def request(method: str = method, path: str = path + place, body: Any = body) -> httpx.Response:
                return await world.request(method, path, json=body, token=token)

            async def give_away(tx: Any, workspace_id: UUID = workspace_id) -> None:
                await workspace_store.get_workspace(tx, workspace_id, lock=True)
                await workspace_store.update_workspace(tx, workspace_id, owner_id=UUID(bob))

            answer = await overtaken(world, give_away, request)
            if answer.status_code not in {403, 404}:
                wrong.append(f"{method} {place}: {answer.status_code} {answer.text[:150]}")
            if await _state(world, workspace_id) != before:
                wrong.append(f"{method} {place}: it was done")
    assert not wrong, "\n".join(wrong)
