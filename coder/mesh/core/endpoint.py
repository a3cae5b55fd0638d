"""The endpoint of a node: tunnels, paths and the TCP/IP stack combined, without I/O.

Lives here: the dispatch of datagrams and packets. Decisions belong to the parts (`tunnel/`, `paths/`, `stack/`), their
effects on one peer to `peers/`; sockets, relay connections and sleeping belong to the drivers (`drivers/pump.py`).
Obeys docs/protocol/disco.md.

Input: `receive_udp` and `receive_relay` once per batch, then `flush`. Output: `Sink`, called synchronously, so that a
superbuffer can be reused as soon as it has been handed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from coder.mesh.core.crypto.keys import PrivateKey, PublicKey, Random
from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.paths.mtu import STANDARD
from coder.mesh.core.paths.peermap import PeerMap
from coder.mesh.core.paths.probing import PeerPaths
from coder.mesh.core.paths.relays import RelayRoutes
from coder.mesh.core.peers.disco_input import DiscoInput
from coder.mesh.core.peers.ip_stack import IpStack
from coder.mesh.core.peers.path_actions import PathActions
from coder.mesh.core.peers.peer import Peer, PeerParameters
from coder.mesh.core.peers.relay_output import RelayOutput
from coder.mesh.core.peers.sink import Sink
from coder.mesh.core.stack.transmit import unpadded
from coder.mesh.core.tunnel.device import Device, Received
from coder.mesh.core.tunnel.events import HandshakeCompleted
from coder.mesh.core.wire import disco
from coder.mesh.core.wire.batch import Batch, TxBuf
from coder.mesh.core.wire.stun import is_stun
from coder.mesh.core.wire.wireguard import TRANSPORT_OVERHEAD

# The usual advice of WireGuard: below the thirty seconds after which routers drop an idle mapping.
PERSISTENT_KEEPALIVE = 25.0
_TRANSPORT = 4
# Type 1 or 2 and three zeros; a STUN answer begins with 1 as well, but its second byte is 1 too.
_HANDSHAKE = (b"\1\0\0\0", b"\2\0\0\0")
_RECENTLY = 1.0
"""Ours: seconds; much less than what makes a session inactive."""


class Endpoint:
    """A node. `now` is a monotonic clock in seconds, the same in all calls; `wall_offset` turns it into Unix time."""

    def __init__(
        self,
        private_key: PrivateKey,
        disco_key: PrivateKey,
        stack: IpStack,
        sink: Sink,
        random: Random,
        *,
        wall_offset: float,
        mtu: int = 1280,
        direct: bool = True,
    ) -> None:
        self.public_key = private_key.public
        self.disco_key = disco_key.public
        self.direct = direct
        self.sink = sink
        self.device = Device(private_key, random, wall_offset=wall_offset, mtu=mtu)
        self.stack = stack
        self.peers: dict[bytes, Peer] = {}
        self.routes = RelayRoutes()
        self.dropped_strangers = 0
        """Datagrams from addresses that no peer has proven."""
        self.tap: Callable[[Sequence[bytes], bool], None] | None = None
        """Sees every inner packet; True: outgoing. Costs a copy per packet, so it is set only during a capture."""
        self.route: Callable[[list[bytes]], list[bytes]] | None = None
        """Takes arrived packets for other hosts and returns those for our own stack (on a gateway)."""
        # Only proven addresses, so that a stranger's datagram costs one lookup.
        self._by_address: PeerMap[Peer] = PeerMap()
        self._random = random
        self._relay = RelayOutput(self.routes, stack, sink)
        self._actions = PathActions(self.public_key, disco_key, stack, sink, self._relay, random, mtu)
        self._path_timers = self._actions.timer_queue
        self._disco = DiscoInput(self.peers, self._by_address, self._actions, sink, direct=direct)
        self._txbuf = TxBuf(mtu)
        self._inbound: list[bytes] = []

    # -- peers ------------------------------------------------------------------------------------------------------
    def set_peer(self, config: PeerParameters, now: float) -> None:
        """Install or update a peer. Raises CryptoError when its WireGuard key is unusable."""
        peer = self.peers.get(config.public_key)
        if peer is None:
            tunnel = self.device.add_peer(config.public_key, now, allowed=config.allowed_ips)
            box = self._actions.box(config.disco_key)
            peer = Peer(config, tunnel, PeerPaths(self._random, direct=self.direct), box)
            self.peers[config.public_key] = peer
            self._disco.add(peer, config.disco_key)
        elif config.disco_key != peer.config.disco_key:
            # The same WireGuard key with a new disco key: the process restarted, its paths are gone.
            self._disco.remove(peer)
            self._disco.add(peer, config.disco_key)
            peer.box = self._actions.box(config.disco_key)
            peer.paths = PeerPaths(self._random, direct=self.direct)
            peer.seen_carries = STANDARD
        # `pause` applies to the old addresses, and would never be undone for removed ones.
        if config.allowed_ips != peer.tunnel.allowed:
            self._relay.resume(peer)
            self.device.set_allowed(peer.tunnel, config.allowed_ips)
        self._actions.size_packets(peer)
        peer.config = config
        peer.tunnel.set_persistent_keepalive(PERSISTENT_KEEPALIVE if config.keepalive else 0.0, now)
        self._actions.carry_out(peer, peer.paths.set_endpoints(config.endpoints if self.direct else (), now), now)

    def remove_peer(self, key: bytes, now: float) -> None:
        """Remove a peer and close its connections; does nothing when there is none."""
        peer = self.peers.pop(key, None)
        if peer is None:
            return
        self._relay.resume(peer)
        for address in peer.tunnel.allowed:
            self.stack.reset_peer(address, now)
            self.stack.set_mtu_to(address, None)
        self._disco.remove(peer)
        self._actions.forget(peer)
        self.routes.forget(key)
        self.device.remove_peer(PublicKey(key))

    def peer_of(self, address: bytes) -> Peer | None:
        """Return the peer that owns an overlay address (16 bytes)."""
        tunnel = self.device.tunnel_to(address)
        return None if tunnel is None else self.peers.get(tunnel.remote)

    def relay_drained(self, region: int) -> None:
        """Resume peers after a region's queue drained; call `flush` afterwards."""
        self._relay.drained(region)

    def relay_peer_gone(self, region: int, key: bytes, now: float) -> None:
        """Forget a learnt route: the relay has no such peer, and recent packets there are lost."""
        self.routes.forget(key, region)
        peer = self.peers.get(key)
        if peer is not None:
            peer.tunnel.undelivered(now)

    def relay_returned(self, region: int, now: float) -> None:
        """Handle a reconnected relay: packets lost meanwhile should be repeated soon."""
        for peer in self.peers.values():
            _, by_relay = peer.paths.route(now)
            if by_relay and self.routes.region(peer.config.public_key, peer.config.home_derp) == region:
                self._actions.path_changed(peer, now)
                if peer.paths.active(now):  # our call-me-maybe may be among what was lost
                    self._actions.carry_out(peer, peer.paths.ping_again(now), now)

    def ping(self, peer: Peer, token: int, now: float) -> None:
        """Send disco pings for a caller; answers go to `Sink.ping_answered` with the token (not 0)."""
        self._actions.carry_out(peer, peer.paths.ask(token, now), now)

    def set_own_endpoints(self, endpoints: Iterable[Address], now: float, fresh_for: float) -> None:
        """Set the endpoints for call-me-maybe, and for how many seconds from now on they are valid."""
        self._actions.set_own_endpoints(endpoints, now, fresh_for)

    def rebind(self, now: float, slept: float = 0.0) -> None:
        """Search all direct paths again after a change of sockets or addresses; data uses the relay meanwhile.

        `slept`: seconds for which `now` stood still because the machine slept; sessions are that much older.
        """
        if slept:
            self.device.slept(slept)
        self._actions.own_endpoints_changed()
        for peer in self.peers.values():
            peer.paths.reset()
            self._actions.settle(peer, now)
            if peer.paths.active(now):
                self._actions.carry_out(peer, peer.paths.on_send(now), now)

    # -- receiving --------------------------------------------------------------------------------------------------
    def receive_udp(self, buffer: bytearray, size: int, segment: int, source: Address, now: float) -> None:
        """Process datagrams of `segment` bytes (the last may be shorter) from one address; call `flush` after the last
        batch."""
        # One strided slice checks the first byte of every datagram: 0.2 us for 44 of them.
        firsts = buffer[0:size:segment]
        if firsts.count(_TRANSPORT) == len(firsts):
            self._receive_wireguard(memoryview(buffer)[:size], size, segment, source, now)
            return
        is_known = self._by_address.by_address.get(source) is not None
        for at in range(0, size, segment):
            length = min(segment, size - at)
            if buffer.startswith(_HANDSHAKE, at):  # an answer of STUN begins with 1 as well
                if not is_known:
                    self.dropped_strangers += 1
                    continue
                if self.device.refuses_untrusted(buffer, at, length):
                    continue
            datagram = bytes(buffer[at : at + length])
            if datagram.startswith(disco.MAGIC):
                self._disco.receive(datagram, source, b"", now)
            elif is_stun(datagram):
                self.sink.stun(datagram)
            else:
                self._receive_wireguard(memoryview(datagram), len(datagram), len(datagram), source, now)

    def receive_relay(self, region: int, source: bytes, packets: Sequence[bytes], now: float) -> None:
        """Process packets of one peer through a region; call `flush` after the last batch."""
        peer = self.peers.get(source)
        if peer is None:
            self.dropped_strangers += len(packets)
            return
        self.routes.learn(source, region)
        run: list[bytes] = []
        size = 0
        for packet in packets:
            if packet.startswith(disco.MAGIC):
                self._disco.receive(packet, region, source, now)
                continue
            # Runs of equal size are opened together, like those from UDP.
            if run and (len(packet) > size or len(run[-1]) < size):
                self._open_relayed(run, size, source, now)
                run = []
            if not run:
                size = len(packet)
            run.append(packet)
        if run:
            self._open_relayed(run, size, source, now)

    def _open_relayed(self, run: list[bytes], size: int, source: bytes, now: float) -> None:
        if not size:
            return
        joined = run[0] if len(run) == 1 else b"".join(run)
        received = self.device.receive_batch_untrusted(memoryview(joined), len(joined), size, source, now)
        for tunnel, packets in received.deliveries:
            if tunnel.remote == source:  # another peer's keys in this peer's frames: the relay lies
                self._inbound += packets
        if received.replies:
            # Cookie replies: back on the handshake's path, as its sender has proved nothing yet.
            self.sink.relay(self.routes.region(source, 0), source, received.replies)
        self._dispatch(received, now)

    def _receive_wireguard(self, view: memoryview, size: int, segment: int, source: Address, now: float) -> None:
        # WireGuard is accepted only from addresses that a ping or pong has proved to be a peer's
        # (docs/protocol/disco.md#one-socket-for-everything).
        if self._by_address.by_address.get(source) is None:
            self.dropped_strangers += 1
            return
        # Nearly every datagram belongs to a current session; the rest, if any, takes the slow path.
        begin = self.device.open_fast_untrusted(view, size, segment, source, now, self._inbound)
        if begin >= size:
            return
        received = self.device.receive_batch_untrusted(view[begin:], size - begin, segment, source, now)
        for _, packets in received.deliveries:
            self._inbound += packets
        if received.replies:
            self.sink.udp(received.replies, source)
        if received.sends or received.events:
            self._dispatch(received, now)

    def _dispatch(self, received: Received, now: float) -> None:
        for tunnel, datagram in received.sends:
            peer = self.peers.get(tunnel.remote)
            if peer is not None:
                self._transmit(peer, [datagram], now, counts=not _is_keepalive(datagram))
        for event in received.events:
            if isinstance(event, HandshakeCompleted):
                self.sink.peer_alive(event.peer)

    # -- sending ----------------------------------------------------------------------------------------------------
    def flush(self, now: float) -> None:
        """Pass received packets to the stack, and send all output of the stack and the tunnels."""
        stack = self.stack
        if self._inbound:
            inbound, self._inbound = self._inbound, []
            if self.tap is not None:
                self.tap(inbound, False)
            if self.route is not None:
                inbound = self.route(inbound)
            stack.input_batch(inbound, now)
        if stack.idle:
            return
        txbuf = self._txbuf
        while (batch := stack.emit(txbuf, now)) is not None:
            if self.tap is not None:
                self.tap(unpadded(txbuf, batch), True)
            tunnel = self.device.tunnel_to(batch.destination)
            peer = None if tunnel is None else self.peers.get(tunnel.remote)
            if peer is not None:
                self._transmit_batch(peer, batch, now)
        for destination, packets in stack.take_output(now):
            if self.tap is not None:
                self.tap(packets, True)
            tunnel = self.device.tunnel_to(destination)
            peer = None if tunnel is None else self.peers.get(tunnel.remote)
            if peer is not None and (datagrams := peer.tunnel.seal(packets, now)):
                self._transmit(peer, datagrams, now)

    def _transmit_batch(self, peer: Peer, batch: Batch, now: float) -> None:
        total = peer.tunnel.seal_into(self._txbuf, batch, now)
        if not total:
            return
        paths = peer.paths
        # Checked after sealing: a missing session stages the packets whatever the path.
        address, by_relay = paths.route(now)
        stride = self._txbuf.layout(batch.size).stride
        view = self._txbuf.view[:total]
        # Built while the path carried more. The relay takes any size, and the next packets have the new size.
        if stride > peer.largest:
            by_relay = True
        elif address is not None:
            peer.direct_bytes += total
            if not self.sink.udp_batch(view, stride, address):
                self._sending_failed(peer, address, now)
                by_relay = True
        if by_relay:
            self._relay.send(peer, [view[at : at + stride] for at in range(0, total, stride)])
        self._note_sent(peer, now)

    def _transmit(self, peer: Peer, datagrams: list[bytes], now: float, *, counts: bool = True) -> None:
        address, by_relay = peer.paths.route(now)
        if len(datagrams) == 1:
            total = largest = len(datagrams[0])
        else:
            total, largest = sum(map(len, datagrams)), max(map(len, datagrams))
        if largest > peer.largest:
            by_relay = True  # sealed for the relay, staged until the session was there
        elif address is not None:
            peer.direct_bytes += total
            if not self.sink.udp(datagrams, address):
                self._sending_failed(peer, address, now)
                by_relay = True
        if by_relay:
            self._relay.send(peer, datagrams)
        # Keepalives do not make a session active: ten thousand idle peers with a keepalive every 25 s would be pinged
        # every 3 s for ever, most of their cost.
        if counts:
            self._note_sent(peer, now)

    def _sending_failed(self, peer: Peer, address: Address, now: float) -> None:
        self._actions.carry_out(peer, peer.paths.on_sending_failed(address, now), now)

    def _note_sent(self, peer: Peer, now: float) -> None:
        paths = peer.paths
        last = paths.last_send
        if last is not None and now - last < _RECENTLY and paths.trusted(now):
            paths.last_send = now  # all that `on_send` would do
            return
        was_quiet = not paths.active(now)
        actions = paths.on_send(now)
        if actions or was_quiet:
            self._actions.carry_out(peer, actions, now)

    # -- time -------------------------------------------------------------------------------------------------------
    def next_wake(self) -> float | None:
        """Return when `on_timer` is due."""
        wake = self.device.next_wake()
        # Called after every datagram: written out, it costs half.
        at = self.stack.next_wake()
        if at is not None and (wake is None or at < wake):
            wake = at
        at = self._path_timers.next()
        if at is not None and (wake is None or at < wake):
            wake = at
        return wake

    def on_timer(self, now: float) -> None:
        """Run all expired timers; includes `flush`."""
        for peer in self._path_timers.pop_due(now):
            self._actions.carry_out(peer, peer.paths.on_timer(now), now)
        self._dispatch(self.device.on_timer(now), now)
        self.stack.on_timer(now)
        self.flush(now)


def _is_keepalive(datagram: bytes) -> bool:
    return datagram[0] == _TRANSPORT and len(datagram) == TRANSPORT_OVERHEAD
