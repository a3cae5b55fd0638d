"""Keeps a mesh node and the coordinator in step over a tailnet RPC session (docs/protocol/coordination.md).

One `Controller` per node, for its whole life; `run(session)` per connection to the server. Between connections the
node goes on with the peers it has: they are marked lost, not removed. Which peer is installed when is peers.py; how
to reconnect is reconnect.py (clients) or the agent's own loop; a node as a message is node_messages.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from ipaddress import IPv6Address
from typing import Any, Literal, Protocol
from uuid import UUID

import trio

from coder.base.groups import single_failure
from coder.base.log import get_logger
from coder.domain.network.coordination import HANDSHAKE_ERROR, NodeKind
from coder.mesh.derp_map import DerpMap
from coder.mesh.errors import UnknownPeerError, UnreachableError
from coder.mesh.keys import PublicKey
from coder.rpc.calls import CallStream
from coder.rpc.errors import RpcClosed, RpcError
from coder.rpc.proto import tailnet_pb2
from coder.rpc.services import TAILNET
from coder.rpc.session import Session
from coder.tailnet import derpmap
from coder.tailnet.addresses import agent_address
from coder.tailnet.node_messages import node_from_proto_untrusted, self_to_proto
from coder.tailnet.peers import Action, Install, Peers, Remove, SayReady, without_endpoints

COORDINATE = TAILNET + "Coordinate"
STREAM_DERP_MAPS = TAILNET + "StreamDERPMaps"
REFRESH_RESUME_TOKEN = TAILNET + "RefreshResumeToken"
POST_TELEMETRY = TAILNET + "PostTelemetry"

GRACEFUL_TIMEOUT = 1.0
"Seconds to wait for the coordinator to end the stream after Disconnect."
DEFAULT_REFRESH = 1800.0
"Seconds until a resume token is refreshed when the server names no time."

_REACH_PAUSE = 0.05
"Ours: a peer that was just replaced is looked for again after these seconds."

_log = get_logger("tailnet")

_Request = tailnet_pb2.CoordinateRequest
_CoordinateStream = CallStream[_Request, tailnet_pb2.CoordinateResponse]


class ControlledNode(Protocol):
    """The part of coder.mesh.node that is driven from here."""

    @property
    def self_info(self) -> Any: ...
    def self_changed(self) -> trio.MemoryReceiveChannel[Any]: ...
    def set_derp_map(self, derp_map: DerpMap) -> None: ...
    def set_peer(self, config: Any) -> object: ...
    def remove_peer(self, public_key: PublicKey) -> None: ...
    def last_handshake(self, public_key: PublicKey) -> float | None: ...
    async def wait_reachable(self, address: IPv6Address) -> float: ...


class Controller:
    """Made by `open_controller`."""

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
        self._wanted: set[UUID] = set()
        self._outbox: list[_Request] = []
        self._outbox_filled = trio.Event()
        self._timer_changed = trio.Event()
        self._last_sent = b""
        self._coordinated = False
        self._stream_ended = trio.Event()
        self._peers_changed = trio.Event()
        self._derp_map: DerpMap | None = None
        self.resume_token = ""
        "For the next dial: keeps our peer id, so that agents keep their tunnels to us."

    # ---- verbs

    def add_tunnel(self, agent_id: UUID) -> None:
        """Asks for `agent_id`'s node, now and after every reconnect."""
        if agent_id not in self._wanted:
            self._wanted.add(agent_id)
            self._post(_add_tunnel(agent_id))

    def remove_tunnel(self, agent_id: UUID) -> None:
        """Drops the peer at once."""
        if agent_id in self._wanted:
            self._wanted.discard(agent_id)
            self._post(_Request(remove_tunnel=_Request.Tunnel(id=agent_id.bytes)))
            self._act(self._peers.forget(agent_id))

    def set_direct(self, direct: bool) -> None:
        """Whether direct paths may be used; off means our endpoints are not told and those of others ignored."""
        if direct != self._direct:
            self._direct = direct
            if self._coordinated:
                self._tell_self()

    def set_derp_map(self, derp_map: DerpMap) -> None:
        """The map a manifest or a REST answer carried; later ones come over the session by themselves."""
        self._apply_derp_map(derp_map)

    def public_key_of(self, peer: UUID) -> PublicKey | None:
        """The key of an installed peer."""
        found = self._peers.node_of(peer)
        return PublicKey(found.public_key) if found and self._peers.is_installed(peer) else None

    async def wait_installed(self, peer: UUID) -> PublicKey:
        """Waits until the node has the peer: its node and, for a source, its word that it has ours are here."""
        while (key := self.public_key_of(peer)) is None:
            await self._peers_changed.wait()
        return key

    async def wait_reachable(self, agent_id: UUID) -> float:
        """Seconds of the first answer of an agent inside the tunnel, however often it is replaced meanwhile."""
        while True:
            await self.wait_installed(agent_id)
            try:
                return await self._node.wait_reachable(agent_address(agent_id))
            except (UnknownPeerError, UnreachableError):
                await trio.sleep(_REACH_PAUSE)

    @property
    def is_coordinated(self) -> bool:
        """Whether a Coordinate stream is open."""
        return self._coordinated

    async def run(self, session: Session) -> None:
        """Coordinates over `session` until it ends; then raises RpcClosed or RpcError. Peers live on."""
        with single_failure():
            async with trio.open_nursery() as nursery:
                if self._is_source:
                    nursery.start_soon(self._refresh_resume_token, session)
                nursery.start_soon(self._follow_derp_maps, session)
                await self._coordinate(session)

    async def disconnect(self) -> None:
        """Says goodbye while `run` is still working; returns when the coordinator ended the stream, or after 1 s."""
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
                        self._receive(response)
                    nursery.cancel_scope.cancel()
            finally:
                self._coordinated = False
                self._stream_ended.set()
                self._peers.lose_all(trio.current_time())
                self._wake_timer()
        raise RpcClosed("the coordinator ended the stream")

    def _begin_stream(self) -> None:
        self._outbox = [_add_tunnel(peer) for peer in sorted(self._wanted)]
        self._last_sent = b""
        self._coordinated = True
        self._peers.coordinated(trio.current_time())
        self._stream_ended = trio.Event()
        self._outbox_filled.set()
        self._tell_self()

    async def _send_outbox(self, stream: _CoordinateStream) -> None:
        while True:
            await self._outbox_filled.wait()
            self._outbox_filled = trio.Event()
            while self._outbox:
                await stream.send(self._outbox.pop(0))

    async def _watch_self(self) -> None:
        with self._node.self_changed() as changes:
            self._tell_self()
            async for _info in changes:
                self._tell_self()

    def _tell_self(self) -> None:
        """Sends our node when it differs from what this stream was told; never before a home relay is known."""
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

    def _receive(self, response: tailnet_pb2.CoordinateResponse) -> None:
        if response.error:
            _log.warn("the coordinator reports an error", error=response.error)
            if not response.error.startswith(HANDSHAKE_ERROR):
                raise RpcClosed(f"coordinator: {response.error}")
        ready: list[bytes] = []
        now = trio.current_time()
        for update in response.peer_updates:
            for action in self._digest(update, now):
                if isinstance(action, SayReady):
                    ready.append(action.peer.bytes)
                else:
                    self._act([action])
        if ready:
            self._post(_Request(ready_for_handshake=[_Request.ReadyForHandshake(id=peer) for peer in ready]))
        self._wake_timer()

    def _digest(self, update: tailnet_pb2.CoordinateResponse.PeerUpdate, now: float) -> list[Action]:
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

    def _act(self, actions: Iterable[Action]) -> None:
        from coder.mesh.node import PeerConfig

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
                self._apply_derp_map(derpmap.from_proto(message))
        raise RpcClosed("the server ended the stream of relay maps")

    def _apply_derp_map(self, derp_map: DerpMap) -> None:
        if self._server_url:
            derp_map = derpmap.with_embedded(derp_map, self._server_url)
        if derp_map != self._derp_map:
            self._derp_map = derp_map
            self._node.set_derp_map(derp_map)

    async def _refresh_resume_token(self, session: Session) -> None:
        """Any failure ends the refreshing, not the connection."""
        try:
            while True:
                answer = await session.call(
                    REFRESH_RESUME_TOKEN,
                    tailnet_pb2.RefreshResumeTokenRequest(),
                    tailnet_pb2.RefreshResumeTokenResponse,
                )
                self.resume_token = answer.token
                seconds = answer.refresh_in.ToTimedelta().total_seconds()
                await trio.sleep(seconds if seconds > 0 else DEFAULT_REFRESH)
        except (RpcError, RpcClosed) as error:
            _log.debug("the resume token is not refreshed", reason=error.message)

    # ---- timers

    async def _run_timers(self) -> None:
        while True:
            self._timer_changed = trio.Event()
            wake = self._peers.next_wake()
            with trio.move_on_at(wake) if wake is not None else trio.CancelScope():
                await self._timer_changed.wait()
                continue
            self._act(self._peers.on_timer(trio.current_time(), self._last_handshake))

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
    """A controller for `node`, with its timers running.

    `role`: agents are destinations, everyone else is a source. `number`: the node's id (addresses.node_id for agents,
    any positive number otherwise). `server_url`: where the embedded relay is reached; empty leaves maps as they are.
    """
    controller = Controller(node, role, number=number, server_url=server_url, direct=direct)
    with single_failure():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(controller._run_timers)
            yield controller
            nursery.cancel_scope.cancel()


def _add_tunnel(peer: UUID) -> tailnet_pb2.CoordinateRequest:
    return _Request(add_tunnel=_Request.Tunnel(id=peer.bytes))
