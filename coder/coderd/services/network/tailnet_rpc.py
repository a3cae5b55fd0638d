"""The Tailnet service of one connection: coordination, relay maps, resume tokens (docs/protocol/coordination.md#calls).

Agents, clients and this server's own node are served by the same handlers; `TailnetPeer` describes the other end.
WorkspaceUpdates is `services/workspaces/workspace_updates.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from uuid import UUID

import trio
from google.protobuf.message import Message

from coder.coderd.services.network import resume_tokens
from coder.coderd.services.network.coordinator import (
    CheckTunnel,
    CoordinateCall,
    LeftBehind,
    PeerChecks,
    allow,
)
from coder.coderd.services.network.derp_map import current_map
from coder.coderd.services.network.node_keys import explain_foreign_keys
from coder.coderd.services.network.resume_tokens import REFRESH_IN, ResumeBinding, digest_of
from coder.domain.network.coordination_rules import CoordinationRules
from coder.rpc.calls import Bidi, Handlers, ServerStream, Unary
from coder.rpc.errors import unimplemented
from coder.rpc.proto import tailnet_pb2
from coder.rpc.services import TAILNET
from coder.tailnet import derpmap

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

MAP_CHECK_INTERVAL = 5.0
"Seconds between checks of the relay map for changes (docs/protocol/coordination.md#calls)."
NODE_WAIT = 10.0
"Seconds that a resume token waits for the node it is bound to."
BEGIN_WAIT = 0.25
"Seconds that it waits for a coordination that was requested before it."

Send = Callable[[Message], Awaitable[None]]
WorkspaceUpdates = Callable[[tailnet_pb2.WorkspaceUpdatesRequest, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class TailnetPeer:
    """The peer at the other end of a connection."""

    id: UUID
    rules: CoordinationRules
    owner: str = ""
    "Owner of the node's keys (`node_keys.py`); empty for nodes of this process."
    check_tunnel: CheckTunnel = allow
    session: ResumeBinding | None = None
    "Binding of resume tokens, which clients get and agents do not need."
    workspace_updates: WorkspaceUpdates | None = None
    left_behind: LeftBehind | None = None


class TailnetService:
    """Handlers of the service for one peer."""

    def __init__(self, ctx: Context, peer: TailnetPeer) -> None:
        self._ctx = ctx
        self._peer = peer
        self._keys: tuple[bytes, ...] = ()
        # An agent has no session to resume: nothing waits for these.
        self._has_begun = trio.Event() if peer.session is not None else None
        "Set when the peer coordinates."
        self._has_keys = trio.Event() if peer.session is not None else None

    def handlers(self) -> Handlers:
        return {
            TAILNET + "Coordinate": Bidi(self.coordinate, tailnet_pb2.CoordinateRequest),
            TAILNET + "StreamDERPMaps": ServerStream(self.stream_derp_maps, tailnet_pb2.StreamDERPMapsRequest),
            TAILNET + "RefreshResumeToken": Unary(self.refresh_resume_token, tailnet_pb2.RefreshResumeTokenRequest),
            TAILNET + "PostTelemetry": Unary(self.post_telemetry, tailnet_pb2.TelemetryRequest),
            TAILNET + "WorkspaceUpdates": ServerStream(self.workspace_updates, tailnet_pb2.WorkspaceUpdatesRequest),
        }

    async def coordinate(self, call: CoordinateCall) -> None:
        peer = self._peer
        if self._has_begun is not None:
            self._has_begun.set()
        checks = PeerChecks(peer.check_tunnel, self._check_keys, peer.left_behind)
        await self._ctx.services.relay.coordinator.serve(call, peer.id, peer.rules, checks)

    async def _check_keys(self, keys: tuple[bytes, ...]) -> str:
        """Return why the peer may not have these keys, empty when it may."""
        bound = self._peer.session.keys if self._peer.session is not None else ""
        if bound and digest_of(keys) != bound:
            return "the resumed peer has other keys"
        if self._peer.owner:
            refusal = await explain_foreign_keys(self._ctx, keys, self._peer.owner)
            if refusal:
                return refusal
        self._keys = keys
        if self._has_keys is not None:
            self._has_keys.set()
        return ""

    async def stream_derp_maps(self, _request: tailnet_pb2.StreamDERPMapsRequest, send: Send) -> None:
        sent = None
        while True:
            current = current_map(self._ctx)
            if current != sent:
                await send(derpmap.to_proto(current))
                sent = current
            await trio.sleep(MAP_CHECK_INTERVAL)

    async def refresh_resume_token(
        self, _request: tailnet_pb2.RefreshResumeTokenRequest
    ) -> tailnet_pb2.RefreshResumeTokenResponse:
        session = self._peer.session
        if session is None or self._has_begun is None or self._has_keys is None:
            raise unimplemented()
        with trio.move_on_after(BEGIN_WAIT):  # calls that arrived together are begun in any order
            await self._has_begun.wait()
        if self._has_begun.is_set():
            with trio.move_on_after(NODE_WAIT):  # clients ask before they know their own addresses
                await self._has_keys.wait()
        # A resumed peer that has not announced keys yet gets a token for the keys it was resumed with.
        bound = replace(session, keys=digest_of(self._keys) or session.keys)
        issued = await resume_tokens.issue(self._ctx, self._peer.id, bound)
        answer = tailnet_pb2.RefreshResumeTokenResponse(token=issued.token)
        answer.refresh_in.FromTimedelta(REFRESH_IN)
        answer.expires_at.FromDatetime(issued.expires_at)
        return answer

    async def post_telemetry(self, _request: tailnet_pb2.TelemetryRequest) -> tailnet_pb2.TelemetryResponse:
        """Accept and discard a report: this server collects nothing about networks."""
        return tailnet_pb2.TelemetryResponse()

    async def workspace_updates(self, request: tailnet_pb2.WorkspaceUpdatesRequest, send: Send) -> None:
        if self._peer.workspace_updates is None:
            raise unimplemented()
        await self._peer.workspace_updates(request, send)
