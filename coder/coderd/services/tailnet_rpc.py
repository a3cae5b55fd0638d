"""The Tailnet service of one connection: coordination, relay maps, resume tokens (tailnet-proto section 1).

Agents, clients and this server's own node are served by the same handlers; `TailnetPeer` says who is on the other
end. WorkspaceUpdates is `workspace_updates.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

import trio
from google.protobuf.message import Message

from coder.coderd.services import resume_tokens
from coder.coderd.services.coordinator import CheckTunnel, CoordinateCall, LeftBehind, allow_tunnel
from coder.coderd.services.derp_map import current_map
from coder.coderd.services.resume_tokens import REFRESH_IN
from coder.domain.coordination import Rules
from coder.rpc.calls import Bidi, Handlers, ServerStream, Unary
from coder.rpc.errors import unimplemented
from coder.rpc.proto import tailnet_pb2
from coder.tailnet import derpmap

if TYPE_CHECKING:
    from coder.coderd.services.context import Context

MAP_CHECK_INTERVAL = 5.0
"Seconds between looks at the relay map (tailnet-proto section 1)."
_SERVICE = "/coder.tailnet.v2.Tailnet/"

Send = Callable[[Message], Awaitable[None]]
WorkspaceUpdates = Callable[[tailnet_pb2.WorkspaceUpdatesRequest, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class TailnetPeer:
    """Who is served."""

    id: UUID
    rules: Rules
    check_tunnel: CheckTunnel = allow_tunnel
    resumable: bool = False
    "Clients get resume tokens, agents do not need them."
    workspace_updates: WorkspaceUpdates | None = None
    left_behind: LeftBehind | None = None


class TailnetService:
    """The handlers for one peer."""

    def __init__(self, ctx: Context, peer: TailnetPeer) -> None:
        self._ctx = ctx
        self._peer = peer

    def handlers(self) -> Handlers:
        return {
            _SERVICE + "Coordinate": Bidi(self.coordinate, tailnet_pb2.CoordinateRequest),
            _SERVICE + "StreamDERPMaps": ServerStream(self.stream_derp_maps, tailnet_pb2.StreamDERPMapsRequest),
            _SERVICE + "RefreshResumeToken": Unary(self.refresh_resume_token, tailnet_pb2.RefreshResumeTokenRequest),
            _SERVICE + "PostTelemetry": Unary(self.post_telemetry, tailnet_pb2.TelemetryRequest),
            _SERVICE + "WorkspaceUpdates": ServerStream(self.workspace_updates, tailnet_pb2.WorkspaceUpdatesRequest),
        }

    async def coordinate(self, call: CoordinateCall) -> None:
        peer = self._peer
        await self._ctx.coordinator.serve(call, peer.id, peer.rules, peer.check_tunnel, peer.left_behind)

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
        if not self._peer.resumable:
            raise unimplemented()
        issued = await resume_tokens.issue(self._ctx, self._peer.id)
        answer = tailnet_pb2.RefreshResumeTokenResponse(token=issued.token)
        answer.refresh_in.FromTimedelta(REFRESH_IN)
        answer.expires_at.FromDatetime(issued.expires_at)
        return answer

    async def post_telemetry(self, _request: tailnet_pb2.TelemetryRequest) -> tailnet_pb2.TelemetryResponse:
        """Accepted and forgotten: nothing about networks is collected."""
        return tailnet_pb2.TelemetryResponse()

    async def workspace_updates(self, request: tailnet_pb2.WorkspaceUpdatesRequest, send: Send) -> None:
        if self._peer.workspace_updates is None:
            raise unimplemented()
        await self._peer.workspace_updates(request, send)
