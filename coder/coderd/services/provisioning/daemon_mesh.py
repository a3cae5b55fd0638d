"""Provisioner daemons on the overlay: a connected daemon joins, coordinates, and is then measured."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID, uuid5

import trio

from coder.base.log import get_logger
from coder.coderd.services.network.coordinator import CoordinateCall
from coder.coderd.services.network.derp_map import current_map
from coder.coderd.services.network.node_keys import daemon_owner
from coder.coderd.services.network.tailnet_rpc import Send, TailnetPeer, TailnetService
from coder.coderd.services.provisioning.connected_daemon import Worker
from coder.coderd.services.provisioning.daemon_health_checks import measure, write_health
from coder.coderd.store.provisioning import daemon_health as store
from coder.domain.network.coordination_rules import AgentAccess
from coder.rpc.calls import Bidi, Handlers, ServerStream, Unary
from coder.rpc.errors import RpcError
from coder.rpc.proto import overlay_pb2, tailnet_pb2
from coder.rpc.services import OVERLAY, TAILNET
from coder.tailnet import derpmap

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

INTERVAL = 30.0
"""Seconds between two health checks of a daemon."""
_JOIN = OVERLAY + "Join"

_log = get_logger("provisioners")


class DaemonMesh:
    """A connected daemon on the overlay: its calls, and its health checks."""

    def __init__(self, ctx: Context, worker: Worker) -> None:
        self._ctx = ctx
        self._worker = worker
        self._id: UUID | None = None
        self._joined = trio.Event()

    def handlers(self) -> Handlers:
        """Return the handlers: the call to join, and coordination for daemons that joined."""
        return {
            _JOIN: Unary(self._join, overlay_pb2.JoinRequest),
            f"{TAILNET}Coordinate": Bidi(self._coordinate, tailnet_pb2.CoordinateRequest),
            f"{TAILNET}StreamDERPMaps": ServerStream(self._stream_maps, tailnet_pb2.StreamDERPMapsRequest),
        }

    async def _join(self, request: overlay_pb2.JoinRequest) -> overlay_pb2.JoinResponse:
        await trio.lowlevel.checkpoint()
        if len(request.process) != 16:
            raise RpcError(0, "a process id has 16 bytes")
        # Derived from the daemon's own id, so that it cannot be the id of an agent or of another daemon.
        self._id = uuid5(self._worker.id, request.process.hex())
        return overlay_pb2.JoinResponse(
            id=self._id.bytes,
            derp_map=derpmap.to_proto(current_map(self._ctx)),
            derp_force_websockets=self._ctx.config.derp_force_websockets,
        )

    def _service(self) -> TailnetService:
        if self._id is None:
            raise RpcError(0, "join the overlay first")
        peer = TailnetPeer(self._id, AgentAccess(self._id), owner=daemon_owner(self._worker.id))
        return TailnetService(self._ctx, peer)

    async def _coordinate(self, call: CoordinateCall) -> None:
        service = self._service()
        self._joined.set()
        await service.coordinate(call)

    async def _stream_maps(self, request: tailnet_pb2.StreamDERPMapsRequest, send: Send) -> None:
        await self._service().stream_derp_maps(request, send)

    async def keep_measuring(self) -> None:
        """Check the daemon's health at intervals while it is connected, once it has joined."""
        try:
            await self._ctx.db.run(write_health, self._worker, store.forget_health)
        except Exception as error:
            _log.warn("old health of a provisioner was not deleted", daemon=self._worker.name, error=error)
        await self._joined.wait()
        assert self._id is not None  # noqa: S101 - a joined daemon has an id
        try:
            while True:
                await measure(self._ctx, self._worker, self._id)
                await trio.sleep(INTERVAL)
        finally:
            if self._ctx.agent_dialer is not None:
                self._ctx.agent_dialer.forget(self._id)
