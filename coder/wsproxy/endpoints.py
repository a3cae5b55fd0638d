"""Raw streams of a proxy: its relay, and terminals of agents.

A terminal requires a ticket in its URL, which the dashboard fetched from the server, or a session at this proxy. A
session counts only for pages of the same origin, because a browser sends cookies for any page.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

import trio

from coder.api.base.refusals import BadGateway
from coder.appproxy.agents import terminals
from coder.appproxy.apps import app_pages as pages
from coder.appproxy.apps.app_refusals import AppRefusedError
from coder.appproxy.apps.app_tickets import opens_terminal_untrusted, terminal_request
from coder.appproxy.apps.app_visitor import Visitor
from coder.appproxy.upgrades.derp import PLAIN, serve_derp
from coder.domain.access.credentials import Credentials, cookie_value
from coder.domain.access.origins import foreign_origin
from coder.domain.access.rate_budgets import API, RELAY
from coder.domain.apps.app_headers import PATH_SESSION_COOKIE, SIGNED_TOKEN_QUERY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from coder.appproxy.apps.app_tickets import Ticket
    from coder.appproxy.upgrades.raw_links import Upgrade
    from coder.domain.access.rate_budgets import Budget
    from coder.net.websocket import WebSocketStream
    from coder.wsproxy.authorizer import RemoteAppAuthorizer
    from coder.wsproxy.world import ProxyWorld

DIAL_FAILED = 1011
NO_LONGER_ALLOWED = 1008
"""WebSocket close codes."""
MAX_MESSAGE = 1 << 20
"""Maximum bytes of an input message."""


def handlers(
    world: ProxyWorld, authorizer: RemoteAppAuthorizer
) -> list[tuple[str, Callable[[Any, Upgrade], Awaitable[None]], Budget]]:
    """Return path patterns with their handlers and rate limits."""
    routes: list[tuple[str, Callable[[Any, Upgrade], Awaitable[None]], Budget]] = [("/derp", _relay, RELAY)]
    if not world.config.derp_only:
        routes.append(("/api/v2/workspaceagents/{agent}/pty", partial(_terminal, authorizer), API))
    return routes


async def _relay(world: ProxyWorld, upgrade: Upgrade) -> None:
    if world.relay is None:
        await upgrade.answer(404, b"This proxy does not relay, or is not registered yet.\n", (PLAIN,))
        return
    await serve_derp(world.relay, upgrade)


async def _terminal(authorizer: RemoteAppAuthorizer, world: ProxyWorld, upgrade: Upgrade) -> None:
    try:
        agent_id = UUID(upgrade.params["agent"])
        visitor, ticket = await _visitor(authorizer, world, upgrade, agent_id)
    except (ValueError, AppRefusedError) as error:
        refusal = error if isinstance(error, AppRefusedError) else AppRefusedError("not_found")
        page = pages.signed_out() if refusal.reason == "sign_in" else pages.refused(refusal, world.primary.url)
        await upgrade.answer(
            page.status, page.html(), [(name.decode(), value.decode()) for name, value in pages.HEADERS]
        )
        return
    spec = terminals.read_spec({name: values[0] for name, values in upgrade.request.query.items()})
    socket = await upgrade.accept_websocket(max_message=MAX_MESSAGE, any_origin=True)
    with authorizer.watched(visitor, ticket) as scope:
        try:
            await _attach(world, socket, agent_id, spec)
            await socket.close(1000, "")
        except BadGateway as error:
            await socket.close(DIAL_FAILED, f"dial workspace agent: {error.message}")
    if scope.cancelled_caught:
        await socket.close(NO_LONGER_ALLOWED, "no longer allowed")


async def _visitor(
    authorizer: RemoteAppAuthorizer, world: ProxyWorld, upgrade: Upgrade, agent_id: UUID
) -> tuple[Visitor, Ticket]:
    """Return the visitor and the ticket that admits it. Raise AppRefusedError."""
    request = upgrade.request
    token = request.first(SIGNED_TOKEN_QUERY)
    ticket = await opens_terminal_untrusted(world.keys, world.clock.now(), token, agent_id) if token else None
    if ticket is not None:
        holder = Visitor(Credentials(), ticket.user_id, ticket.key_id)
        # The right may have been lost since the ticket was issued.
        if not await authorizer.still_admits(ticket, holder):
            raise AppRefusedError("not_found")
        return holder, ticket
    credentials = request.credentials
    if not credentials.token:
        credentials = Credentials(
            cookie_value(request.headers.get("cookie", ""), PATH_SESSION_COOKIE), True, request.remote_ip
        )
    if not credentials.token or foreign_origin(request.headers, world.access_url):
        raise AppRefusedError("sign_in")
    admission = await authorizer.admit(terminal_request(agent_id), credentials)
    return Visitor(credentials, admission.ticket.user_id), admission.ticket


async def _attach(world: ProxyWorld, socket: WebSocketStream, agent_id: UUID, spec: terminals.TerminalSpec) -> None:
    with trio.CancelScope() as scope:

        async def receive() -> bytes | str:
            try:
                message = await socket.receive_message()
            except trio.BrokenResourceError:
                message = None
            if message is not None:
                return message
            scope.cancel()  # the browser disconnected
            await trio.lowlevel.checkpoint()
            raise trio.BrokenResourceError("the browser disconnected")

        async def until_stopped(attached: trio.CancelScope) -> None:
            await world.stopping.wait()
            attached.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(until_stopped, nursery.cancel_scope)
            await terminals.attach(world, agent_id, spec, receive, socket.send_message)
            nursery.cancel_scope.cancel()
