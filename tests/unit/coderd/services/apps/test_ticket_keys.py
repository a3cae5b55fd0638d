"""Tickets of applications and terminals end with the key that requested them.

The kinds of keys are a session, narrow and expiring tokens, and the token of an OAuth2 application. Each ends in its
own way while its user keeps the right.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit
from uuid import UUID, uuid4

import pytest
import trio
from sqlalchemy import update

from coder.api.proxies.proxies import MayStayRequest, SignedAppRequest
from coder.appproxy.apps.app_tickets import Ticket
from coder.coderd.services.apps import app_tokens
from coder.coderd.services.proxies import proxy_calls
from coder.coderd.store.tables.people import api_keys
from coder.domain.apps.app_addresses import AppRequest
from coder.net.dial import DialPolicy
from coder.net.errors import HttpError
from coder.net.websocket import WebSocketStream, connect_websocket
from tests.unit.appproxy.apps.test_apps import Scene, view_context
from tests.unit.coderd.services.login.test_oauth2_provider import CALLBACK, Client

PATIENCE = 60.0
KEYS = "/api/v2/users/me/keys"
Ending = Callable[[], Awaitable[Any]]


async def _session(scene: Scene, login: str) -> tuple[str, Ending]:
    async def end() -> None:
        assert (await scene.world.post("/api/v2/users/logout", token=login)).status_code == 200

    return login, end


async def _narrow_token(scene: Scene, login: str) -> tuple[str, Ending]:
    body = {"token_name": "narrow", "scopes": ["workspace:ssh", "workspace:read", "workspace:application_connect"]}
    token = str((await scene.world.post(f"{KEYS}/tokens", body, token=login)).json()["key"])

    async def end() -> None:
        deleted = await scene.world.delete(f"{KEYS}/{token.partition('-')[0]}", token=login)
        assert deleted.status_code == 204

    return token, end


async def _expiring_token(scene: Scene, login: str) -> tuple[str, Ending]:
    token = str((await scene.world.post(f"{KEYS}/tokens", {"token_name": "brief"}, token=login)).json()["key"])
    key_id, before = token.partition("-")[0], scene.world.ctx.clock.now() - timedelta(seconds=1)

    async def end() -> None:
        async def write(tx: Any) -> None:
            await tx.execute(update(api_keys).where(api_keys.c.id == key_id).values(expires_at=before))

        await scene.world.ctx.db.run(write)
        scene.world.ctx.services.auth_cache.forget(key_id)

    return token, end


async def _application(scene: Scene, login: str) -> tuple[str, Ending]:
    world, path = scene.world, "/api/v2/oauth2-provider/apps"
    app_id = str((await world.post(path, {"name": "app", "callback_url": CALLBACK})).json()["id"])
    secret = str((await world.post(f"{path}/{app_id}/secrets")).json()["client_secret_full"])
    client = Client(world, app_id, secret, login)
    token = str((await client.exchange(await client.code())).json()["access_token"])
    world.client.cookies.clear()

    async def end() -> None:
        assert (await world.delete(f"/oauth2/tokens?client_id={app_id}", token=login)).status_code == 204

    return token, end


@pytest.mark.parametrize(
    "kind", [_session, _narrow_token, _expiring_token, _application], ids=lambda kind: kind.__name__
)
async def test_tickets_end_with_their_key(
    kind: Callable[[Scene, str], Awaitable[tuple[str, Ending]]], tmp_path: Path
) -> None:
    async with view_context(tmp_path, experiments=("oauth2",)) as scene:
        guest, login = await scene.world.member("guest")
        workspace = f"/api/v2/workspaces/{scene.agent.workspace['id']}"
        assert (await scene.world.patch(f"{workspace}/acl", {"user_roles": {guest: "use"}})).status_code == 204
        token, end = await kind(scene, login)
        tickets = [await _terminal_ticket(scene, token), await _app_ticket(scene, token)]
        key_id = token.partition("-")[0]
        assert [(ticket.user_id, ticket.key_id) for _, ticket in tickets] == [(UUID(guest), key_id)] * 2
        streams = [await _open_terminal(scene, tickets[0][0]), await _open_app(scene, tickets[1][0])]
        visits = scene.world.ctx.services.edge.open_streams
        assert [await _may_stay_at_proxy(scene, ticket) for _, ticket in tickets] == [True, True]
        await end()
        await visits.look()
        for stream in streams:
            with trio.fail_after(PATIENCE):
                await _ended(stream)
        assert [await _may_stay_at_proxy(scene, ticket) for _, ticket in tickets] == [False, False]
        for reopen, (text, _) in zip((_open_terminal, _open_app), tickets, strict=True):
            with pytest.raises(HttpError) as refused:
                await reopen(scene, text)
            assert refused.value.status in {303, 401, 404}


async def test_tickets_have_a_key_of_their_user(tmp_path: Path) -> None:
    async with view_context(tmp_path, agent=False) as scene:
        _, login = await scene.world.member("guest")
        agent_id, workspace = scene.agent.agent_id, UUID(scene.agent.workspace["id"])
        owner = UUID((await scene.world.get("/api/v2/users/me")).json()["id"])
        path = f"/api/v2/workspaceagents/{agent_id}/pty"
        request = AppRequest("terminal", path, "", "", str(agent_id), "")
        visits = scene.world.ctx.services.edge.open_streams
        for key_id, expected in (
            ("", True),
            (scene.world.token[:10], True),
            (login[:10], False),
            ("zzzzzzzzzz", False),
        ):
            ticket = Ticket(request, workspace, agent_id, "", owner, key_id=key_id)
            assert await visits.may_stay(ticket) is expected, key_id


async def _terminal_ticket(scene: Scene, token: str) -> tuple[str, Ticket]:
    agent_id = str(scene.agent.agent_id)
    url = scene.world.url.replace("http://", "ws://") + f"/api/v2/workspaceagents/{agent_id}/pty"
    body = {"url": url, "agentID": agent_id}
    made = await scene.world.post("/api/v2/applications/reconnecting-pty-signed-token", body, token=token)
    text = str(made.json()["signed_token"])
    return text, await app_tokens.read_ticket_untrusted(scene.world.ctx, text)


async def _app_ticket(scene: Scene, token: str) -> tuple[str, Ticket]:
    entered = await scene.host("web--dev--admin", token=token)
    cookie = entered.headers["set-cookie"].partition(";")[0]
    return cookie, await app_tokens.read_ticket_untrusted(scene.world.ctx, cookie.partition("=")[2])


async def _open_terminal(scene: Scene, ticket: str) -> WebSocketStream:
    query = {"reconnect": str(uuid4()), "command": "sleep 600", "coder_signed_app_token_23db1dde": ticket}
    path = f"/api/v2/workspaceagents/{scene.agent.agent_id}/pty"
    return await connect_websocket(DialPolicy(scene.world.url), f"{path}?{urlencode(query)}")


async def _open_app(scene: Scene, cookie: str) -> WebSocketStream:
    there = f"http://web--dev--admin.apps.test:{urlsplit(scene.world.url).port}"
    only = DialPolicy(there, address="127.0.0.1")
    return await connect_websocket(only, "/ws", headers=[("Cookie", cookie)], carry=False)


async def _ended(stream: WebSocketStream) -> None:
    try:
        while await stream.receive_message() is not None:
            pass
    except trio.BrokenResourceError:
        pass
    await trio.aclose_forcefully(stream)


async def _may_stay_at_proxy(scene: Scene, ticket: Ticket) -> bool:
    """Return the server's answer about a stream that a workspace proxy opened by this ticket."""
    request = SignedAppRequest(
        access_method=ticket.request.access_method,
        base_path=ticket.request.base_path,
        username_or_id=ticket.request.username_or_id,
        workspace_name_or_id=ticket.request.workspace_name_or_id,
        agent_name_or_id=ticket.request.agent_name_or_id,
        app_slug_or_port=ticket.request.app_slug_or_port,
        app_prefix=ticket.request.app_prefix,
    )
    body = MayStayRequest(request, ticket.user_id, ticket.workspace_id, ticket.agent_id, ticket.key_id)
    return await proxy_calls.may_stay(scene.world.ctx, body)
