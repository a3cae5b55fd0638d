"""Addresses of the server's own network, sent by callers other than owners in every place for an address.

The server must not send a request there, neither immediately nor in the background. docs/security.md lists the requests
that a server does send; push services are in `test_attacks_on_logins.py`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import trio

from coder.coderd.services.notifications.notification_delivery import deliver_due
from tests.kit.api.id_fields import BODY, PATH, text_places
from tests.kit.server.two_organizations import foreign_world
from tests.kit.server.workspace_proxy import new_proxy
from tests.unit.conformance.test_foreign_ids_in_requests import Asker

_ADDRESS = re.compile(
    r"ur[il]s?$|icon|avatar|picture|image|logo|endpoint|link|host|address|redirect|callback|source|file|background"
    r"|example|match|target|jwks|software|policy|tos",
    re.IGNORECASE,
)
_NOT_ASKED = {"/api/v2/users/logout"}
HEADERS = (
    "Host",
    "Origin",
    "Referer",
    "Forwarded",
    "X-Forwarded-Host",
    "X-Forwarded-Server",
    "X-Original-Url",
    "X-Rewrite-Url",
    "Destination",
    "Link",
    "Location",
    "Profile",
    "Alt-Svc",
    "Sec-Websocket-Protocol",
)


class Canary:
    """Internal service that trusts its neighbours and counts requests."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/inside"
        self.heads: list[bytes] = []

    async def serve(self, stream: trio.SocketStream) -> None:
        async with stream:
            self.heads.append(await stream.receive_some(4096))
            await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")


@asynccontextmanager
async def _canary() -> AsyncIterator[Canary]:
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    canary = Canary(listeners[0].socket.getsockname()[1])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, canary.serve, listeners)
        yield canary
        nursery.cancel_scope.cancel()


async def test_no_request_to_internal_addresses() -> None:
    asked = accepted = 0
    async with foreign_world(experiments=("oauth2", "web-push")) as scene, _canary() as canary:
        world = scene.world
        me = (await world.get("/api/v2/users/me", token=scene.token)).json()["id"]
        roles = {"roles": ["user-admin", "template-admin", "auditor"]}
        assert (await world.put(f"/api/v2/users/{me}/roles", roles)).status_code == 200
        proxy = await new_proxy(world)
        asker = Asker(scene, scene.token, scene.agent_token)
        for place in text_places():
            name = place.path[-1] if place.path else ""
            if place.where == PATH or place.rule in _NOT_ASKED or not _ADDRESS.search(name):
                continue
            status, _ = await asker.answer(place, canary.url)
            asked += 1
            accepted += status < 300 and place.where == BODY
        for name in HEADERS:
            for path in ("/api/v2/users/me", "/", "/oauth2/authorize", "/api/v2/users/oidc/callback"):
                headers = {name: canary.url.removeprefix("http://") if name == "Host" else canary.url}
                assert (await _got(world.client, path, headers, scene.token)).status_code < 500
                asked += 1
        await deliver_due(world.ctx)
        health = world.ctx.services.api.proxy_health
        await health.check_all()
        assert canary.heads == []
        # A proxy's own token sets the proxy's address. The server asks that one, and the canary would notice.
        body: dict[str, Any] = {
            "access_url": canary.url,
            "wildcard_hostname": "",
            "replica_id": me,
            "replica_hostname": "x",
            "replica_error": "",
            "replica_relay_address": "",
            "version": "v2.99.0",
            "derp_enabled": False,
        }
        credential = {"Coder-External-Proxy-Token": proxy}
        registered = await world.request(
            "POST", "/api/v2/workspaceproxies/me/register", json=body, headers=credential, token=""
        )
        assert registered.status_code in {200, 201}, registered.text
        await health.check_all()
        assert canary.heads[0].startswith(b"GET /inside/healthz-report ")
    assert asked > 60 and accepted > 5, (asked, accepted)


async def _got(client: httpx.AsyncClient, path: str, headers: dict[str, str], token: str) -> httpx.Response:
    client.cookies.clear()
    return await client.get(path, headers={"Coder-Session-Token": token, **headers}, follow_redirects=False)
