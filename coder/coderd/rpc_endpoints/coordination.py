"""The links of clients: `{agent}/coordinate` for one agent, `/tailnet` for all agents of a user.

Checks and their order are docs/protocol/rpc.md#clients. `services/network/tailnet_rpc.py` implements the service.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import trio

from coder.api.base.refusals import Conflict, Failed, Invalid, NotFound, Unauthenticated
from coder.appproxy.http.rate_limits import counted
from coder.appproxy.upgrades.raw_links import EndpointTable
from coder.base.exception_groups import single_failure
from coder.base.log import get_logger
from coder.coderd.rpc_endpoints.versions import agent_api_version
from coder.coderd.services.access.authentication import Caller, authenticate, recognize, subject_of
from coder.coderd.services.access.authorization import explain_narrowing, may, require_scope
from coder.coderd.services.access.rights_changes import PAUSE, RightsChanges
from coder.coderd.services.access.session_revocation import (
    CLOSE_CODE,
    CLOSE_REASON,
    OpenSession,
    SessionEndedError,
)
from coder.coderd.services.access.workspace_access import agent_resource
from coder.coderd.services.agents.agent_access import find_agent_unchecked
from coder.coderd.services.network import resume_tokens
from coder.coderd.services.network.coordinator import LeftBehind
from coder.coderd.services.network.node_keys import user_owner
from coder.coderd.services.network.resume_tokens import ResumeBinding
from coder.coderd.services.network.tailnet_rpc import Send, TailnetPeer, TailnetService
from coder.coderd.services.site.deployment import ping_database
from coder.coderd.services.workspaces.workspace_updates import serve_workspace_updates
from coder.domain.access.policy import Subject
from coder.domain.access.route_scopes import named
from coder.domain.foundation.go_uuid import read_uuid
from coder.domain.network.coordination_rules import ClientAccess
from coder.rpc.proto import tailnet_pb2
from coder.rpc.session import Session, open_session
from coder.tailnet.resume_tokens import RESUME_HEADER

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from coder.appproxy.upgrades.raw_links import Upgrade, UpgradeRequest
    from coder.coderd.services.foundation.context import Context
    from coder.net.websocket import WebSocketStream

PING_INTERVAL = 15.0
PING_TIMEOUT = 15.0
"""Timeout of client links by WebSocket pings (docs/protocol/rpc.md#websocket)."""
CHECK_INTERVAL = 15.0
"""Seconds between checks of permission for a client's tunnels; changes of rights are notified."""

ENTER = "workspace:ssh"
FOLLOW = ("workspace:read", "workspace:ssh")
"""Alternative scopes of a key: watching workspaces, or connections to their agents."""
_NO_AGENT = "Agent doesn't exist with that id, or you do not have access to it."
_log = get_logger("rpc_endpoints")


def register(table: EndpointTable) -> None:
    table.add("/api/v2/workspaceagents/{agent}/coordinate", coordinate, scope=ENTER, refuses=(500,))
    table.add("/api/v2/tailnet", tailnet, scope=FOLLOW, refuses=(500,))


async def coordinate(ctx: Context, upgrade: Upgrade) -> None:
    """Serve `GET /api/v2/workspaceagents/{agent}/coordinate`."""
    request = upgrade.request
    await _require_database(ctx)
    caller = await sign_in(ctx, upgrade)
    _require_programs(ctx)
    require_scope(caller.subject, named(ENTER))
    agent_id = _agent_id(upgrade.params["agent"])
    if not await may_ssh(ctx, caller.subject, agent_id):
        raise explain_narrowing(caller.subject, NotFound(_NO_AGENT))
    agent_api_version(request, "1.0")
    peer_id, session = await _peer_id(ctx, request, caller)
    peer = TailnetPeer(
        peer_id,
        ClientAccess(agent_id),
        owner=user_owner(caller.user.id),
        session=session,
        left_behind=_watcher(ctx, peer_id, caller),
    )
    await _serve(ctx, upgrade, peer, caller, {agent_id})


async def tailnet(ctx: Context, upgrade: Upgrade) -> None:
    """Serve `GET /api/v2/tailnet`."""
    request = upgrade.request
    await _require_database(ctx)
    caller = await sign_in(ctx, upgrade)
    _require_programs(ctx)
    require_scope(caller.subject, named(FOLLOW))
    agent_api_version(request, "2.0")
    peer_id, session = await _peer_id(ctx, request, caller)
    reached: set[UUID] = set()

    async def check_tunnel(agent_id: UUID) -> str:
        subject = await _subject_now(ctx, caller)
        if subject is not None and await may_ssh(ctx, subject, agent_id):
            reached.add(agent_id)
            return ""
        return f"unauthorized to create tunnel to agent {agent_id}"

    async def updates(message: tailnet_pb2.WorkspaceUpdatesRequest, send: Send) -> None:
        await serve_workspace_updates(ctx, partial(_subject_now, ctx, caller), message, send)

    peer = TailnetPeer(
        peer_id,
        ClientAccess(),
        owner=user_owner(caller.user.id),
        check_tunnel=check_tunnel,
        session=session,
        workspace_updates=updates,
        left_behind=_watcher(ctx, peer_id, caller),
    )
    await _serve(ctx, upgrade, peer, caller, reached)


async def sign_in(ctx: Context, upgrade: Upgrade) -> Caller:
    """Return the caller, counted. Raises Unauthenticated, RateLimited."""
    return await counted(authenticate(ctx, upgrade.request.credentials), lambda caller: caller, upgrade.count)


async def may_ssh(ctx: Context, subject: Subject, agent_id: UUID) -> bool:
    """Return whether `subject` may open connections to this agent (of a newest build)."""
    agent = await find_agent_unchecked(ctx, agent_id)
    return agent is not None and may(subject, "ssh", agent_resource(agent))


def _require_programs(ctx: Context) -> None:
    """Refuse every client where only browsers are allowed (`--browser-only`)."""
    if ctx.config.browser_only:
        raise Conflict("Non-browser connections are disabled for your deployment.")


async def _require_database(ctx: Context) -> None:
    """Refuse clients while the database is down. They recognize a server that lost its database by this very text."""
    try:
        await ping_database(ctx)
    except Exception as error:
        raise Failed("database not reachable") from error


def _agent_id(text: str) -> UUID:
    try:
        return read_uuid(text)
    except ValueError as error:
        raise Invalid(f'Invalid UUID "{text}".', str(error)) from error


async def _peer_id(ctx: Context, request: UpgradeRequest, caller: Caller) -> tuple[UUID, ResumeBinding]:
    """Return a new id, or that of a token. Our clients send it in a header, because addresses end up in logs."""
    session = ResumeBinding(caller.user.id, caller.key.id)
    token = request.headers.get(RESUME_HEADER.lower(), "") or request.first("resume_token")
    resumed = await resume_tokens.read_untrusted(ctx, token, session) if token else None
    if resumed is None:
        return uuid4(), session
    peer_id, keys = resumed
    return peer_id, replace(session, keys=keys)


async def _serve(ctx: Context, upgrade: Upgrade, peer: TailnetPeer, caller: Caller, reached: set[UUID]) -> None:
    """Serve one client until it disconnects, times out, loses its session or permission, or the server stops.

    `reached` are the agents it may have tunnels to.
    """
    sessions = ctx.services.sessions
    with sessions.opened(caller) as opened:
        await sessions.confirm(opened)
        websocket = await upgrade.accept_websocket(binary_only=True)
        await _serve_open(ctx, websocket, peer, opened, lambda: _is_revoked(ctx, caller, reached))


def _watcher(ctx: Context, peer_id: UUID, caller: Caller) -> LeftBehind:
    absent = ctx.services.relay.absent_clients
    return lambda agents: absent.watch(peer_id, caller, agents, partial(_is_revoked, ctx, caller))


async def _subject_now(ctx: Context, caller: Caller) -> Subject | None:
    """Return the caller with current rights, which a link may outlive; None for an ended session."""
    try:
        key, user = await recognize(ctx, caller.credentials)
    except Unauthenticated:
        return None
    return subject_of(ctx, user, key)


async def _is_revoked(ctx: Context, caller: Caller, reached: Iterable[UUID]) -> bool:
    """Return whether the caller may no longer enter one of these agents. Agents of older builds do not count."""
    subject = await _subject_now(ctx, caller)
    if subject is None:
        return False  # the session notifies
    for agent_id in list(reached):
        agent = await find_agent_unchecked(ctx, agent_id)
        if agent is not None and not may(subject, "ssh", agent_resource(agent)):
            return True
    return False


async def _serve_open(
    ctx: Context,
    websocket: WebSocketStream,
    peer: TailnetPeer,
    opened: OpenSession,
    is_revoked: Callable[[], Awaitable[bool]],
) -> None:
    link = ClientConnection(websocket, lambda: ctx.services.relay.coordinator.cut(peer.id))
    with single_failure():
        async with open_session(websocket, role="server") as session, trio.open_nursery() as nursery:
            nursery.start_soon(link.keep_pinging, session)
            nursery.start_soon(link.leave_when_signed_out, session, opened)
            nursery.start_soon(link.close_when_revoked, session, is_revoked, ctx.services.rights_changes)
            nursery.start_soon(link.leave_on_stop, session, ctx.stopping)
            await session.serve(TailnetService(ctx, peer).handlers())
            nursery.cancel_scope.cancel()
            await websocket.close(link.code, link.reason)
    _log.debug("a client disconnected", peer=peer.id, reason=session.reason)


class ClientConnection:
    """Client's WebSocket and its close code, which gives the reason."""

    def __init__(self, websocket: WebSocketStream, cut: Callable[[], None] = lambda: None) -> None:
        self._websocket = websocket
        self._cut = cut
        self.code = 1000
        self.reason = ""

    async def keep_pinging(self, session: Session) -> None:
        """Close the session of a client that does not answer pings."""
        while True:
            await trio.sleep(PING_INTERVAL)
            if not await self._websocket.ping(PING_TIMEOUT):
                self.code, self.reason = 1001, "liveness probe failed"
                session.close(self.reason)

    async def leave_when_signed_out(self, session: Session, opened: OpenSession) -> None:
        try:
            await opened.run(trio.sleep_forever)
        except SessionEndedError:
            await self._close_revoked(session, CLOSE_REASON)

    async def close_when_revoked(
        self, session: Session, is_revoked: Callable[[], Awaitable[bool]], rights: RightsChanges
    ) -> None:
        """Close the session when permission ends: an open tunnel must not outlive a revoked share or role."""
        changed = rights.next_change()
        while True:
            with trio.move_on_after(CHECK_INTERVAL):
                await changed.wait()
            changed = rights.next_change()
            try:
                revoked = await is_revoked()
            except Exception as error:
                # A short outage of the database ends no session.
                _log.warn("a client's permissions could not be checked", error=error)
                revoked = False
            if revoked:
                await self._close_revoked(session, "no longer allowed")
            await trio.sleep(min(PAUSE, CHECK_INTERVAL))

    async def _close_revoked(self, session: Session, reason: str) -> None:
        # A client that is merely lost keeps its tunnels for as long as it uses them.
        self._cut()
        self.code, self.reason = CLOSE_CODE, reason
        # The WebSocket first: ending the session alone would close it with a normal code.
        await self._websocket.close(self.code, self.reason)
        session.close(self.reason)

    async def leave_on_stop(self, session: Session, stopping: trio.Event) -> None:
        await stopping.wait()
        self.code, self.reason = 1001, "the server stops"
        session.close(self.reason)
