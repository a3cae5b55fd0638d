"""Synchronization of a mesh node with the coordinator over a tailnet RPC session (docs/protocol/coordination.md).

One `Controller` per node, for its whole life; `run(session)` per connection to the server. Between connections the node
keeps its peers: they are marked lost, not removed. peers.py decides when a peer is installed; reconnect.py (clients) or
the agent's own loop reconnects; node_messages.py converts nodes to messages.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from ipaddress import IPv6Address
from typing import Literal, Protocol
from uuid import UUID

import trio

from coder.base.exception_groups import single_failure
from coder.base.log import get_logger
from coder.base.quoted import cut
from coder.domain.network.coordination import HANDSHAKE_ERROR, NodeKind
from coder.mesh.derp_map import DerpMap
from coder.mesh.description import PeerConfig, SelfInfo
from coder.mesh.errors import UnknownPeerError, UnreachableError
from coder.mesh.keys import PublicKey
from coder.rpc.calls import CallStream
from coder.rpc.durations import seconds
from coder.rpc.errors import RpcClosed, RpcError
from coder.rpc.proto import tailnet_pb2
from coder.rpc.services import TAILNET
from coder.rpc.session import Session
from coder.tailnet import derpmap
from coder.tailnet.addresses import agent_address
from coder.tailnet.node_messages import node_from_proto_untrusted, self_to_proto
from coder.tailnet.peers import Action, Install, Peers, Remove, ReportReady, without_endpoints

COORDINATE = TAILNET + "Coordinate"
STREAM_DERP_MAPS = TAILNET + "StreamDERPMaps"
REFRESH_RESUME_TOKEN = TAILNET + "RefreshResumeToken"
POST_TELEMETRY = TAILNET + "PostTelemetry"

GRACEFUL_TIMEOUT = 1.0
"Seconds to wait for the coordinator to end the stream after Disconnect."
DEFAULT_REFRESH = 1800.0
"Seconds until a resume token is refreshed when the server sets no time."

UPDATES_AT_ONCE = 16
"Updates of peers (ours) that are applied before other tasks run; each may begin a handshake."
MAX_OUTBOX = 256
"Requests (ours) that wait to be sent before no further answer is read."
MAP_PAUSE = 1.0
"Seconds (ours) between two relay maps that differ: each is measured and dialled."
SHORTEST_REFRESH = 1.0
"Seconds (ours) between refreshes of a resume token, whatever the server asks."
_RETRY_PAUSE = 0.05
"Seconds (ours) until a replaced peer is tried again."

_log = get_logger("tailnet")

_Request = tailnet_pb2.CoordinateRequest
_CoordinateStream = CallStream[_Request, tailnet_pb2.CoordinateResponse]


class ControlledNode(Protocol):
    """Part of coder.mesh.node that the controller drives."""

    @property
    def self_info(self) -> SelfInfo: ...
    def self_changed(self) -> trio.MemoryReceiveChannel[SelfInfo]: ...
    def set_derp_map(self, derp_map: DerpMap) -> None: ...
    def set_peer(self, config: PeerConfig) -> object: ...
    def remove_peer(self, public_key: PublicKey) -> None: ...
    def last_handshake(self, public_key: PublicKey) -> float | None: ...
    async def wait_reachable(self, address: IPv6Address) -> float: ...


class Controller:
    """Controller of one node, created by `open_controller`."""

    def __init__(
        self,
        node: ControlledNode,
        role: Literal["source", "destination"],
        *,
        number: int,
        server_url: str = "",
        direct: bool = True,
    ) -> None:
        self._node = node
        self._peers = Peers(role)
        self._is_source = role == "source"
        self._number = number
        self._server_url = server_url
        self._direct = direct
        self._requested: set[UUID] = set()
        self._outbox: list[_Request] = []
        self._outbox_filled = trio.Event()
        self._outbox_sent = trio.Event()
        self._timer_changed = trio.Event()
        self._last_sent = b""
        self._coordinated = False
        self._stream_ended = trio.Event()
        self._peers_changed = trio.Event()
        self._derp_map: DerpMap | None = None
        self.resume_token = ""
        "Token for the next dial: it keeps our peer id, so that agents keep their tunnels to us."

    # ---- operations

    def add_tunnel(self, agent_id: UUID) -> None:
        """Request `agent_id`'s node, now and after every reconnect."""
        if agent_id not in self._requested:
            self._requested.add(agent_id)
            self._post(_add_tunnel(agent_id))

    def remove_tunnel(self, agent_id: UUID) -> None:
        """Remove the tunnel and the peer."""
        if agent_id in self._requested:
            self._requested.discard(agent_id)
            self._post(_Request(remove_tunnel=_Request.Tunnel(id=agent_id.bytes)))
            self._apply(self._peers.forget(agent_id))

    def set_direct(self, direct: bool) -> None:
        """Set whether direct paths may be used. Otherwise our endpoints are not sent and those of others are
        ignored."""
        if direct != self._direct:
            self._direct = direct
            if self._coordinated:
                self._send_self()

    def set_derp_map(self, derp_map: DerpMap) -> None:
        """Apply the map of a manifest or a REST reply; the session delivers later ones."""
        self._apply_derp_map(derp_map)

    def public_key_of(self, peer: UUID) -> PublicKey | None:
        """Return the key of an installed peer."""
        node_found = self._peers.node_of(peer)
        return PublicKey(node_found.public_key) if node_found and self._peers.is_installed(peer) else None

    async def wait_installed(self, peer: UUID) -> PublicKey:
        """Wait until the peer is installed: its node has arrived and, for a source, its confirmation that it has
        ours."""
        while (key := self.public_key_of(peer)) is None:
            await self._peers_changed.wait()
        return key

    async def wait_reachable(self, agent_id: UUID) -> float:
        """Return the seconds until an agent's first answer inside the tunnel, even when it is replaced meanwhile."""
        while True:
            await self.wait_installed(agent_id)
            try:
                return await self._node.wait_reachable(agent_address(agent_id))
            except (UnknownPeerError, UnreachableError):
                await trio.sleep(_RETRY_PAUSE)

    @property
    def is_coordinated(self) -> bool:
        """Whether a Coordinate stream is open."""
        return self._coordinated

    async def run(self, session: Session) -> None:
        """Coordinate over `session` until it ends; then raise RpcClosed or RpcError. Peers stay."""
        with single_failure():
            async with trio.open_nursery() as nursery:
                if self._is_source:
                    nursery.start_soon(self._refresh_resume_token, session)
                nursery.start_soon(self._follow_derp_maps, session)
                await self._coordinate(session)

    async def disconnect(self) -> None:
        """Send Disconnect while `run` is still working; return when the coordinator ended the stream, or after 1 s."""
        if not self._coordinated:
            return
        self._post(_Request(disconnect=_Request.Disconnect()))
        with trio.move_on_after(GRACEFUL_TIMEOUT, shield=True):
            await self._stream_ended.wait()

    # ---- one session

    async def _coordinate(self, session: Session) -> None:
        async with session.open_stream(
            COORDINATE, tailnet_pb2.CoordinateRequest, tailnet_pb2.CoordinateResponse
        ) as stream:
            self._begin_stream()
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._send_outbox, stream)
                    nursery.start_soon(self._watch_self)
                    async for response in stream:
                        await self._receive(response)
                        while len(self._outbox) > MAX_OUTBOX:  # the coordinator sends and does not read
                            await self._outbox_sent.wait()
                    nursery.cancel_scope.cancel()
            finally:
                self._coordinated = False
                self._stream_ended.set()
                self._peers.mark_all_lost(trio.current_time())
                self._wake_timer()
        raise RpcClosed("the coordinator ended the stream")

    def _begin_stream(self) -> None:
        self._outbox = [_add_tunnel(peer) for peer in sorted(self._requested)]
        self._last_sent = b""
        self._coordinated = True
        self._peers.mark_coordinated(trio.current_time())
        self._stream_ended = trio.Event()
        self._outbox_filled.set()
        self._send_self()

    async def _send_outbox(self, stream: _CoordinateStream) -> None:
        while True:
            await self._outbox_filled.wait()
            self._outbox_filled = trio.Event()
            while self._outbox:
                await stream.send(self._outbox.pop(0))
                self._outbox_sent.set()
                self._outbox_sent = trio.Event()

    async def _watch_self(self) -> None:
        with self._node.self_changed() as changes:
            self._send_self()
            async for _info in changes:
                self._send_self()

    def _send_self(self) -> None:
        """Send our node when it differs from the last one sent on this stream; never before a home relay is known."""
        info = self._node.self_info
        if not info.preferred_derp:
            return
        node = self_to_proto(info, self._number, direct=self._direct)
        body = node.SerializeToString(deterministic=True)
        if body == self._last_sent:
            return
        self._last_sent = body
        node.as_of.GetCurrentTime()
        self._post(_Request(update_self=_Request.UpdateSelf(node=node)))

    def _post(self, request: _Request) -> None:
        if self._coordinated:
            self._outbox.append(request)
            self._outbox_filled.set()

    async def _receive(self, response: tailnet_pb2.CoordinateResponse) -> None:
        if response.error:
            error = cut(response.error)
            _log.warn("the coordinator reports an error", error=error)
            if not error.startswith(HANDSHAKE_ERROR):
                raise RpcClosed(f"coordinator: {error}")
        ready: list[bytes] = []
        now = trio.current_time()
        for number, update in enumerate(response.peer_updates, 1):
            if number % UPDATES_AT_ONCE == 0:  # an answer has room for thirty thousand
                await trio.lowlevel.checkpoint()
            for action in self._process_update(update, now):
                if isinstance(action, ReportReady):
                    ready.append(action.peer.bytes)
                else:
                    self._apply([action])
        ready = list(dict.fromkeys(ready))
        if ready:
            self._post(_Request(ready_for_handshake=[_Request.ReadyForHandshake(id=peer) for peer in ready]))
        self._wake_timer()

    def _process_update(self, update: tailnet_pb2.CoordinateResponse.PeerUpdate, now: float) -> list[Action]:
        if len(update.id) != 16:
            return []
        peer = UUID(bytes=update.id)
        match update.kind:
            case NodeKind.NODE:
                node = node_from_proto_untrusted(update.node)
                return self._peers.receive_node(peer, node, now) if node is not None else []
            case NodeKind.READY_FOR_HANDSHAKE:
                return self._peers.receive_ready(peer)
            case NodeKind.DISCONNECTED:
                return self._peers.receive_disconnected(peer)
            case NodeKind.LOST:
                self._peers.receive_lost(peer, now)
        return []

    def _apply(self, actions: Iterable[Action]) -> None:
        self._peers_changed.set()
        self._peers_changed = trio.Event()
        for action in actions if self._direct else without_endpoints(actions):
            match action:
                case Install(_, node, keepalive):
                    self._node.set_peer(
                        PeerConfig(
                            public_key=PublicKey(node.public_key),
                            disco_key=PublicKey(node.disco_key),
                            allowed_ips=node.allowed_ips,
                            home_derp=node.preferred_derp,
                            endpoints=node.endpoints,
                            keepalive=keepalive,
                        )
                    )
                case Remove(key):
                    self._node.remove_peer(PublicKey(key))

    # ---- the rest of a session

    async def _follow_derp_maps(self, session: Session) -> None:
        async with session.open_stream(
            STREAM_DERP_MAPS, tailnet_pb2.StreamDERPMapsRequest, tailnet_pb2.DERPMap
        ) as stream:
            await stream.send(tailnet_pb2.StreamDERPMapsRequest())
            await stream.close_send()
            async for message in stream:
                if self._apply_derp_map(derpmap.from_proto(message)):
                    await trio.sleep(MAP_PAUSE)
        raise RpcClosed("the server ended the stream of relay maps")

    def _apply_derp_map(self, derp_map: DerpMap) -> bool:
        """Apply a map; return whether it differs from the one before."""
        if self._server_url:
            derp_map = derpmap.with_embedded(derp_map, self._server_url)
        if derp_map == self._derp_map:
            return False
        self._derp_map = derp_map
        self._node.set_derp_map(derp_map)
        return True

    async def _refresh_resume_token(self, session: Session) -> None:
        """Refresh the token; a failure ends the refreshing, not the connection."""
        try:
            while True:
                answer = await session.call(
                    REFRESH_RESUME_TOKEN,
                    tailnet_pb2.RefreshResumeTokenRequest(),
                    tailnet_pb2.RefreshResumeTokenResponse,
                )
                self.resume_token = answer.token
                delay = seconds(answer.refresh_in)
                await trio.sleep(max(SHORTEST_REFRESH, delay) if delay > 0 else DEFAULT_REFRESH)
        except (RpcError, RpcClosed) as error:
            _log.debug("refreshing the resume token failed", reason=error.message)

    # ---- timers

    async def _run_timers(self) -> None:
        while True:
            self._timer_changed = trio.Event()
            wake = self._peers.next_wake()
            with trio.move_on_at(wake) if wake is not None else trio.CancelScope():
                await self._timer_changed.wait()
                continue
            self._apply(self._peers.on_timer(trio.current_time(), self._last_handshake))

    def _last_handshake(self, key: bytes) -> float | None:
        return self._node.last_handshake(PublicKey(key))

    def _wake_timer(self) -> None:
        self._timer_changed.set()


@asynccontextmanager
async def open_controller(
    node: ControlledNode,
    role: Literal["source", "destination"],
    *,
    number: int,
    server_url: str = "",
    direct: bool = True,
) -> AsyncIterator[Controller]:
    """Open a controller for `node`, with its timers running.

    `role`: agents are destinations, all others are sources. `number`: the node's id (addresses.node_id for agents, any
    positive number otherwise). `server_url`: URL of the embedded relay; empty leaves maps unchanged.
    """
    controller = Controller(node, role, number=number, server_url=server_url, direct=direct)
    with single_failure():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(controller._run_timers)
            yield controller
            nursery.cancel_scope.cancel()


def _add_tunnel(peer: UUID) -> tailnet_pb2.CoordinateRequest:
    return _Request(add_tunnel=_Request.Tunnel(id=peer.bytes))
