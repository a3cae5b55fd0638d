"""Connections through an agent whose visitor loses the right: applications, ports and terminals, by every kind of
access and loss.

Each loss is tried on all connections at once. Losses without a notice are found by the check of each minute, which is
run here directly. Tunnels are in `test_coordination.py`, streams about an object in `test_attacks_on_open_streams.py`.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import trio

from coder.base.secret import Secret
from coder.net.dial import DialPolicy
from coder.net.errors import HttpError
from coder.net.websocket import WebSocketStream, connect_websocket
from tests.kit.server.race_conditions import filled
from tests.kit.server.server_in_process import World
from tests.unit.appproxy.apps.test_apps import Scene, view_context

PATIENCE = 60.0
WAYS = (
    "public application by path",
    "public application",
    "application by host",
    "application by ticket",
    "terminal",
    "terminal by ticket",
    "port of all users",
    "port of the organization",
)
BY_TICKET = {"application by ticket", "terminal by ticket"}
"""Access by a ticket from before the loss. It is valid for a minute and names its user and key."""
BY_SHARE = {"application by host", "terminal", *BY_TICKET}
"""Access that the workspace's owner shares with the visitor."""
BY_KEY = set(WAYS)
"""Access by a key, or by a ticket that the key requested."""
INSIDE = {*BY_SHARE, "port of the organization"}
"""Access for members of the organization."""

LEVELS = (("authenticated", "port of all users"), ("organization", "port of the organization"))
"""Sharing levels of the one port, in turn, and their names above."""
LOSSES: dict[str, tuple[bool, tuple[str, str, Any], set[str]]] = {
    # whether it is shared with a group; (method, path, body); the access that ends
    "shared no longer": (
        False,
        ("PATCH", "/api/v2/workspaces/{workspace}/acl", {"user_roles": {"{guest}": ""}}),
        BY_SHARE,
    ),
    "leaves the group": (True, ("PATCH", "/api/v2/groups/{group}", {"remove_users": ["{guest}"]}), BY_SHARE),
    "the group is deleted": (True, ("DELETE", "/api/v2/groups/{group}", None), BY_SHARE),
    "leaves the organization": (False, ("DELETE", "/api/v2/organizations/default/members/{guest}", None), INSIDE),
    "is suspended": (False, ("PUT", "/api/v2/users/{guest}/status/suspend", None), set(WAYS)),
    "is deleted": (False, ("DELETE", "/api/v2/users/{guest}", None), set(WAYS)),
    "the session ends": (False, ("DELETE", "/api/v2/users/{guest}/keys/{key}", None), BY_KEY),
}


class _Doors:
    """Ways into one workspace for one visitor."""

    def __init__(self, scene: Scene, token: str) -> None:
        self.scene, self.token = scene, token
        self._port = urlsplit(scene.world.url).port

    async def open(self, way: str, ticket: str = "") -> WebSocketStream:
        world, agent = self.scene.world, self.scene.agent
        by_key = DialPolicy(world.url, token=Secret(self.token))
        pty = f"/api/v2/workspaceagents/{agent.agent_id}/pty?reconnect={uuid4()}&command=sleep+600"
        if way == "public application by path":
            return await connect_websocket(by_key, "/@admin/dev/apps/all/ws")
        if way == "terminal":
            return await connect_websocket(by_key, pty)
        if way == "terminal by ticket":
            return await connect_websocket(DialPolicy(world.url), f"{pty}&coder_signed_app_token_23db1dde={ticket}")
        label = {
            "application by host": "web--dev--admin",
            "application by ticket": "web--dev--admin",
            "public application": "all--dev--admin",
        }.get(way) or f"{self.scene.app.port}--main--dev--admin"
        there = f"http://{label}.apps.test:{self._port}"
        if way == "application by ticket":
            only = DialPolicy(there, address="127.0.0.1")
            return await connect_websocket(only, "/ws", headers=[("Cookie", ticket)], carry=False)
        return await connect_websocket(replace(by_key, url=there, address="127.0.0.1"), "/ws")

    async def ticket(self, way: str) -> str:
        """Return a ticket for the terminal, or the application's cookie with one."""
        if way == "application by ticket":
            entered = await self.scene.host("web--dev--admin", token=self.token)
            return entered.headers["set-cookie"].partition(";")[0]
        world, agent_id = self.scene.world, str(self.scene.agent.agent_id)
        url = world.url.replace("http://", "ws://") + f"/api/v2/workspaceagents/{agent_id}/pty"
        body = {"url": url, "agentID": agent_id}
        created = await world.post("/api/v2/applications/reconnecting-pty-signed-token", body, token=self.token)
        return str(created.json()["signed_token"])


async def _ends(socket: WebSocketStream, patience: float = PATIENCE) -> bool:
    with trio.move_on_after(patience) as scope, suppress(trio.BrokenResourceError):
        while await socket.receive_message() is not None:
            pass
    return not scope.cancelled_caught


async def _let_in(world: World, workspace: str, name: str, by_group: bool) -> tuple[dict[str, str], str]:
    guest, token = await world.member(name)
    names = {"guest": guest, "key": token.partition("-")[0], "group": "", "workspace": workspace}
    roles = {"user_roles": {guest: "use"}}
    if by_group:
        created = await world.post("/api/v2/organizations/default/groups", {"name": name})
        names["group"] = created.json()["id"]
        await world.patch(f"/api/v2/groups/{names['group']}", {"add_users": [guest]})
        roles = {"group_roles": {names["group"]: "use"}}
    shared = await world.patch(f"/api/v2/workspaces/{workspace}/acl", roles)
    assert shared.status_code == 204, shared.text
    return names, token


async def test_visits_end_with_every_loss(tmp_path: Path) -> None:
    wrong: list[str] = []
    async with view_context(tmp_path, dangerous_allow_path_app_sharing=True) as scene:
        world, workspace = scene.world, scene.agent.workspace["id"]
        visits = world.ctx.services.edge.open_streams
        share = {"agent_name": "main", "port": scene.app.port, "protocol": "http"}
        for number, (loss, (by_group, (method, path, body), ending)) in enumerate(LOSSES.items()):
            level, way = LEVELS[number % 2]
            changed = await world.post(f"/api/v2/workspaces/{workspace}/port-share", {**share, "share_level": level})
            assert changed.status_code == 200, changed.text
            ways = [item for item in WAYS if not item.startswith("port") or item == way]
            names, token = await _let_in(world, workspace, f"guest{number}", by_group)
            doors = _Doors(scene, token)
            async with AsyncExitStack() as stack:
                opened = {}
                tickets = {item: await doors.ticket(item) for item in ways if item in BY_TICKET}
                for item in ways:
                    opened[item] = await doors.open(item, tickets.get(item, ""))
                    stack.push_async_callback(trio.aclose_forcefully, opened[item])
                await visits.look()
                assert [item for item, socket in opened.items() if not await _responds(item, socket)] == [], loss
                taken = await world.request(method, path.format(**names), json=filled(body, names))
                assert taken.status_code in {200, 204}, f"{loss}: {taken.text}"
                await visits.look()
                for item, socket in opened.items():
                    if item in ending and not await _ends(socket):
                        wrong.append(f"{loss}: {item} is open still")
                    elif item not in ending and not await _responds(item, socket):
                        wrong.append(f"{loss}: {item} ended, too")
            for item in set(ways) & ending:
                try:
                    await trio.aclose_forcefully(await doors.open(item, tickets.get(item, "")))
                    wrong.append(f"{loss}: {item} was reopened")
                except HttpError as error:
                    assert error.status in {303, 307, 401, 403, 404}, f"{loss}: {item}: {error.status}"
    assert not wrong, "\n".join(wrong)


async def _responds(way: str, socket: WebSocketStream) -> bool:
    if way.startswith("terminal"):
        return True  # a command without output
    await socket.send_message("still here")
    return await socket.receive_message() == "still here"
