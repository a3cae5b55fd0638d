"""The whole machine: tunnels, paths and the TCP/IP stack tied together, without I/O.

Lives here: where each datagram and each packet goes. What the parts decide is theirs (`tunnel/`, `paths/`, `stack/`);
sockets, relay connections and sleeping are the drivers' (`drivers/pump.py`).
Obeys docs/protocol/disco.md.

The way in: `receive_udp` and `receive_relay` once per batch, then `flush`. The way out: `Sink`, called synchronously,
so that a superbuffer can be reused as soon as it has been handed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from coder.mesh.core.crypto.box import NONCE_SIZE, SharedBox
from coder.mesh.core.crypto.keys import PrivateKey, PublicKey, Random
from coder.mesh.core.errors import CryptoError, WireError
from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.paths.mtu import STANDARD
from coder.mesh.core.paths.outstanding_pings import SendPing
from coder.mesh.core.paths.peermap import PeerMap
from coder.mesh.core.paths.probing import Action, PeerPaths, PingAnswered
from coder.mesh.core.paths.relays import RelayRoutes
from coder.mesh.core.paths.selector import PathState
from coder.mesh.core.paths.timer_queue import TimerQueue
from coder.mesh.core.stack.transmit import unpadded
from coder.mesh.core.tunnel.device import Device, Received
from coder.mesh.core.tunnel.events import HandshakeCompleted
from coder.mesh.core.tunnel.peer import Tunnel
from coder.mesh.core.wire import disco
from coder.mesh.core.wire.address import UdpAddress
from coder.mesh.core.wire.batch import Batch, TxBuf
from coder.mesh.core.wire.stun import is_stun
from coder.mesh.core.wire.wireguard import TRANSPORT_OVERHEAD

PERSISTENT_KEEPALIVE = 25.0
RELAY_PACKET = 32_640
"""Ours: inner packets for peers of our own kind while the relay carries everything: a relay has no MTU, and most of
the cost of a packet does not depend on its size. Two of them fill a superbuffer; with 8 KB each end worked a third
longer for a megabyte, and the relay twice as long."""
_PSEUDO_RELAY = "127.3.3.40"
"""Peers are told that we saw their relayed ping come from this address, the port being the region."""
_TRANSPORT = 4
_HANDSHAKE = (b"\1\0\0\0", b"\2\0\0\0")
_MAX_STAGED_CALLS = 1024
_LATELY = 1.0
"""Ours: seconds; much less than what makes a session inactive."""


class IpStack(Protocol):
    """The TCP/IP stack as the endpoint sees it; `stack.interface.Stack` is one."""

    def input_batch(self, packets: list[bytes], now: float) -> None:
        """Take inner packets that arrived."""

    @property
    def idle(self) -> bool:
        """Whether neither `emit` nor `take_output` has anything."""

    def emit(self, txbuf: TxBuf, now: float) -> Batch | None:
        """Fill the superbuffer with data for one peer."""

    def take_output(self, now: float) -> list[tuple[bytes, list[bytes]]]:
        """All other packets, per destination."""

    def next_wake(self) -> float | None:
        """When `on_timer` wants to be called."""

    def on_timer(self, now: float) -> None:
        """Run what is due."""

    def pause(self, destination: bytes) -> None:
        """No bulk data to this peer until `resume`."""

    def resume(self, destination: bytes) -> None:
        """Undo `pause`."""

    def set_mtu_to(self, destination: bytes, mtu: int | None) -> None:
        """Size packets to this peer differently; None: as usual."""

    def path_changed(self, destination: bytes, now: float) -> None:
        """What was sent to the peer lately may be lost."""

    def reset_peer(self, destination: bytes, now: float) -> None:
        """The peer is gone."""


class Sink(Protocol):
    """Where the endpoint's output goes; every call is carried out before it returns."""

    def udp(self, datagrams: Sequence[bytes], to: Address) -> bool:
        """Send datagrams; False when there is no way to that address."""

    def udp_batch(self, batch: memoryview, segment: int, to: Address) -> bool:
        """Send datagrams of `segment` bytes lying one after another; the memory is reused after the call."""

    def relay(self, region: int, to: bytes, packets: Sequence[bytes | memoryview]) -> bool:
        """Send packets to the peer with this key through a region's relay.

        False when its queue has become long: nothing is lost yet, but `relay_drained` should be awaited.
        """

    def stun(self, datagram: bytes) -> None:
        """A STUN message arrived by UDP."""

    def ping_answered(self, answer: PingAnswered, peer: PublicKey, region: int) -> None:
        """The answer to a ping a caller waits for; `region` is 0 for direct ones."""

    def wants_endpoints(self) -> None:
        """Our own addresses are too old to be told to a peer: measure them, then call `set_own_endpoints`."""

    def peer_alive(self, peer: PublicKey) -> None:
        """A WireGuard handshake with the peer completed."""

    def path_changed(self, peer: PublicKey, state: PathState, address: Address | None) -> None:
        """Data to the peer takes another way from now on."""


@dataclass(frozen=True, slots=True)
class PeerParameters:
    """What the coordinator says about a peer."""

    public_key: PublicKey
    disco_key: PublicKey
    """All zero: the peer does not speak disco."""
    allowed_ips: tuple[bytes, ...]
    """Its overlay addresses, 16 bytes each."""
    home_derp: int = 0
    endpoints: tuple[Address, ...] = ()
    keepalive: bool = False


@dataclass(slots=True, eq=False)
class Peer:
    """An installed peer."""

    config: PeerParameters
    tunnel: Tunnel
    paths: PeerPaths
    box: SharedBox | None
    """None: the peer speaks no disco."""
    last_ping: tuple[bytes, Address | int] | None = None
    """Transaction and origin of the last ping answered: repeats are not answered again."""
    relayed_bytes: int = 0
    direct_bytes: int = 0
    seen_state: PathState = PathState.RELAYED
    """Of its selector, when the stack was last told."""
    seen_carries: int = STANDARD
    """What its direct path carries, when the stack was last told."""
    largest: int = 0
    """Bytes of the largest datagram that may take it."""


class Endpoint:
    """One node. `now` is a monotonic clock in seconds, the same in all calls; `wall_offset` makes Unix time of it."""

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
        """Datagrams from addresses no peer has proven to be its own."""
        self.tap: Callable[[Sequence[bytes], bool], None] | None = None
        """Sees every inner packet; True: on its way out. Costs a copy per packet, so only while somebody looks."""
        self.route: Callable[[list[bytes]], list[bytes]] | None = None
        """Takes arrived packets that are for others and returns those for our own stack (a node that is a gateway)."""
        self._disco_private = disco_key
        self._by_disco: dict[bytes, list[Peer]] = {}
        self._by_address: PeerMap[Peer] = PeerMap()
        self._timer_queue: TimerQueue[Peer] = TimerQueue()
        self._random = random
        self._mtu = mtu
        self._txbuf = TxBuf(mtu)
        self._inbound: list[bytes] = []
        self._own_endpoints: tuple[UdpAddress, ...] = ()
        self._endpoints_fresh_until = 0.0
        self._waiting_calls: dict[Peer, None] = {}
        self._paused: dict[Peer, int] = {}
        """Peers whose bulk data waits, and for the queue of which region."""

    # -- peers ------------------------------------------------------------------------------------------------------
    def set_peer(self, config: PeerParameters, now: float) -> None:
        """Install or update a peer. CryptoError when its WireGuard key is unusable."""
        peer = self.peers.get(config.public_key)
        if peer is None:
            tunnel = self.device.add_peer(config.public_key, now, allowed=config.allowed_ips)
            box = self._box(config.disco_key)
            peer = Peer(config, tunnel, PeerPaths(self._random, direct=self.direct), box)
            self.peers[config.public_key] = peer
            self._by_disco.setdefault(config.disco_key, []).append(peer)
        elif config.disco_key != peer.config.disco_key:
            # The same WireGuard key with a new disco key: the process restarted, its paths are gone.
            self._by_disco[peer.config.disco_key].remove(peer)
            self._by_disco.setdefault(config.disco_key, []).append(peer)
            peer.box = self._box(config.disco_key)
            peer.paths = PeerPaths(self._random, direct=self.direct)
            peer.seen_carries = STANDARD
            self._by_address.forget(peer)
        if config.allowed_ips != peer.tunnel.allowed:
            self._resume(peer)
            self.device.set_allowed(peer.tunnel, config.allowed_ips)
        self._size_packets(peer)
        peer.config = config
        peer.tunnel.set_persistent_keepalive(PERSISTENT_KEEPALIVE if config.keepalive else 0.0, now)
        self._do(peer, peer.paths.set_endpoints(config.endpoints if self.direct else (), now), now)

    def remove_peer(self, key: bytes, now: float) -> None:
        """Forget a peer, its connections die; nothing happens when there is none."""
        peer = self.peers.pop(key, None)
        if peer is None:
            return
        self._resume(peer)
        for address in peer.tunnel.allowed:
            self.stack.reset_peer(address, now)
            self.stack.set_mtu_to(address, None)
        others = self._by_disco[peer.config.disco_key]
        others.remove(peer)
        if not others:
            del self._by_disco[peer.config.disco_key]
        self._by_address.forget(peer)
        self._timer_queue.set(peer, None)
        self._waiting_calls.pop(peer, None)
        self.routes.forget(key)
        self.device.remove_peer(PublicKey(key))

    def peer_of(self, address: bytes) -> Peer | None:
        """The peer that owns an overlay address (16 bytes)."""
        tunnel = self.device.tunnel_to(address)
        return None if tunnel is None else self.peers.get(tunnel.remote)

    def relay_drained(self, region: int) -> None:
        """A region's queue is short again; call `flush` afterwards."""
        for peer in [peer for peer, waits_for in self._paused.items() if waits_for == region]:
            self._resume(peer)

    def _resume(self, peer: Peer) -> None:
        if self._paused.pop(peer, None) is not None:
            for address in peer.tunnel.allowed:
                self.stack.resume(address)

    def relay_returned(self, region: int, now: float) -> None:
        """A relay is connected again: what was lost meanwhile should be repeated soon."""
        for peer in self.peers.values():
            _, by_relay = peer.paths.route(now)
            if by_relay and self.routes.region(peer.config.public_key, peer.config.home_derp) == region:
                self.path_changed(peer, now)
                if peer.paths.active(now):  # our call-me-maybe may be among what was lost
                    self._do(peer, peer.paths.look_again(now), now)

    def ping(self, peer: Peer, token: int, now: float) -> None:
        """Send disco pings somebody waits for; answers come to `Sink.ping_answered` with the token (not 0)."""
        self._do(peer, peer.paths.ask(token, now), now)

    # -- our own addresses ------------------------------------------------------------------------------------------
    def set_own_endpoints(self, endpoints: Iterable[Address], now: float, fresh_for: float) -> None:
        """What peers are told in call-me-maybe, and for how many seconds from now on it may be told."""
        self._own_endpoints = tuple(UdpAddress(*address) for address in endpoints)
        self._endpoints_fresh_until = now + fresh_for
        waiting, self._waiting_calls = self._waiting_calls, {}
        for peer in waiting:
            self._call(peer, now)

    def rebind(self, now: float, slept: float = 0.0) -> None:
        """Our sockets or addresses changed: every direct path has to be found again; data takes the relay meanwhile.

        `slept`: seconds for which `now` stood still because the machine slept; sessions are that much older.
        """
        if slept:
            self.device.slept(slept)
        self._endpoints_fresh_until = 0.0
        for peer in self.peers.values():
            peer.paths.reset()
            self._settle(peer, now)
            if peer.paths.active(now):
                self._do(peer, peer.paths.on_send(now), now)

    # -- receiving --------------------------------------------------------------------------------------------------
    def receive_udp(self, buffer: bytearray, size: int, segment: int, source: Address, now: float) -> None:
        """Datagrams of `segment` bytes (the last may be shorter) from one address; `flush` follows the last batch."""
        # One strided slice looks at the first byte of every datagram: 0.2 us for 44 of them.
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
                self._receive_disco(datagram, source, b"", now)
            elif is_stun(datagram):
                self.sink.stun(datagram)
            else:
                self._receive_wireguard(memoryview(datagram), len(datagram), len(datagram), source, now)

    def receive_relay(self, region: int, source: bytes, packets: Sequence[bytes], now: float) -> None:
        """Packets of one peer through a region; call `flush` after the last batch."""
        peer = self.peers.get(source)
        if peer is None:
            self.dropped_strangers += len(packets)
            return
        self.routes.learn(source, region)
        run: list[bytes] = []
        size = 0
        for packet in packets:
            if packet.startswith(disco.MAGIC):
                self._receive_disco(packet, region, source, now)
                continue
            # Runs of equal size are opened together, like those that came by UDP.
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
            if tunnel.remote == source:  # keys of one peer in another's frames: a relay that lies
                self._inbound += packets
        if received.replies:
            self.sink.relay(self.routes.region(source, 0), source, received.replies)
        self._dispatch(received, now)

    def _receive_wireguard(self, view: memoryview, size: int, segment: int, source: Address, now: float) -> None:
        if self._by_address.by_address.get(source) is None:
            self.dropped_strangers += 1
            return
        begin = self.device.open_quietly_untrusted(view, size, segment, source, now, self._inbound)
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

    # -- disco ------------------------------------------------------------------------------------------------------
    def _receive_disco(self, datagram: bytes, origin: Address | int, relayed_by: bytes, now: float) -> None:
        if not self.direct and not relayed_by:
            return
        try:
            sender = disco.sender_untrusted(datagram)
            peers = self._by_disco.get(sender)
            if not peers or peers[0].box is None:
                return
            message = disco.open_untrusted(peers[0].box, datagram)
        except (WireError, CryptoError):
            return
        peer = peers[0]
        if isinstance(message, disco.DiscoPing):
            claimed = self.peers.get(message.node_key)
            if claimed in peers:
                peer = claimed
            self._on_ping(peer, message, origin, now)
        elif isinstance(message, disco.DiscoPong):
            self._on_pong(peers, message, origin, now)
        elif relayed_by:
            claimed = self.peers.get(relayed_by)
            if claimed in peers:
                self._do(claimed, claimed.paths.on_call_me_maybe(message.endpoints, now), now)

    def _on_ping(self, peer: Peer, ping: disco.DiscoPing, origin: Address | int, now: float) -> None:
        seen = (ping.tx_id, origin)
        if peer.last_ping == seen:
            return
        peer.last_ping = seen
        if isinstance(origin, int):
            pong = disco.DiscoPong(ping.tx_id, UdpAddress(_PSEUDO_RELAY, origin))
            self.sink.relay(origin, peer.config.public_key, [self._seal(peer, pong)])
            return
        self._by_address.learn(origin, peer)
        # As large as the ping: what the peer measures is the path both ways (paths/mtu.py).
        self.sink.udp([self._seal(peer, disco.DiscoPong(ping.tx_id, UdpAddress(*origin), ping.payload))], origin)
        self._do(peer, peer.paths.on_ping(origin, now, ping.size), now)

    def _on_pong(self, peers: list[Peer], pong: disco.DiscoPong, origin: Address | int, now: float) -> None:
        source = None if isinstance(origin, int) else origin
        for peer in peers:
            answer = peer.paths.on_pong(pong.tx_id, source, now, disco.ENVELOPE + pong.payload)
            if answer is False:
                continue
            if source is not None:
                self._by_address.learn(source, peer)
            self._settle(peer, now)
            if isinstance(answer, PingAnswered):
                self.sink.ping_answered(answer, peer.config.public_key, origin if source is None else 0)  # type: ignore[arg-type]
            return

    def _do(self, peer: Peer, actions: list[Action], now: float) -> None:
        """Carry out what a peer's paths decided, and note when they want to be asked again."""
        for action in actions:
            if not isinstance(action, SendPing):
                self._call(peer, now)
                continue
            sealed = self._seal(peer, disco.DiscoPing(action.tx, self.public_key, action.size - disco.ENVELOPE))
            if not sealed:
                continue
            if action.to is None:
                self._relay(peer, [sealed])
            elif not self.sink.udp([sealed], action.to):
                peer.paths.on_ping_refused(action.tx, now)
        self._settle(peer, now)

    def _settle(self, peer: Peer, now: float) -> None:
        """After a change of a peer's paths: when to look again, and what the stack should know."""
        self._timer_queue.set(peer, peer.paths.next_wake())
        state, carries = peer.paths.selector.state, peer.paths.carries
        if state is not peer.seen_state:
            peer.seen_state, peer.seen_carries = state, carries
            if state is PathState.DIRECT:
                self._resume(peer)
            self._size_packets(peer)
            self.path_changed(peer, now)
            best = peer.paths.selector.best
            self.sink.path_changed(peer.config.public_key, state, best.address if best else None)
        elif carries != peer.seen_carries:
            is_narrower = carries < peer.seen_carries
            peer.seen_carries = carries
            self._size_packets(peer)
            if is_narrower:
                self.path_changed(peer, now)

    def _size_packets(self, peer: Peer) -> None:
        """Tell the stack how large inner packets to the peer may be."""
        size: int | None = None
        carries = peer.seen_carries
        peer.largest = max(self._mtu + TRANSPORT_OVERHEAD, carries)
        if peer.paths.selector.state is PathState.RELAYED:
            size = RELAY_PACKET
        elif carries < STANDARD:
            peer.largest = carries
            size = (carries - TRANSPORT_OVERHEAD) & ~15  # the padding has to fit as well
        elif carries > STANDARD:
            size = max(carries - TRANSPORT_OVERHEAD, self._mtu)
        for address in peer.tunnel.allowed:
            self.stack.set_mtu_to(address, size)

    def path_changed(self, peer: Peer, now: float) -> None:
        """What was sent lately may be lost: let the stack find out now instead of by its timers."""
        for address in peer.tunnel.allowed:
            self.stack.path_changed(address, now)

    def _call(self, peer: Peer, now: float) -> None:
        if peer.box is None:
            return
        if now < self._endpoints_fresh_until:
            self._relay(peer, [self._seal(peer, disco.CallMeMaybe(self._own_endpoints))])
        elif len(self._waiting_calls) < _MAX_STAGED_CALLS:
            was_empty = not self._waiting_calls
            self._waiting_calls[peer] = None
            if was_empty:
                self.sink.wants_endpoints()

    def _box(self, key: PublicKey) -> SharedBox | None:
        if key.is_zero:
            return None
        try:
            return SharedBox(self._disco_private, key)
        except CryptoError:
            return None  # an unusable key: the peer is reached by relay, like one that speaks no disco

    def _seal(self, peer: Peer, message: disco.Message) -> bytes:
        """A disco packet; empty for a peer that speaks no disco."""
        if peer.box is None:
            return b""
        return disco.seal(peer.box, self.disco_key, self._random(NONCE_SIZE), message)

    # -- sending ----------------------------------------------------------------------------------------------------
    def flush(self, now: float) -> None:
        """Give what was received to the stack, and send everything it and the tunnels have to say."""
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
        address, by_relay = paths.route(now)
        stride = self._txbuf.layout(batch.size).stride
        view = self._txbuf.view[:total]
        if stride > peer.largest:
            by_relay = True
        elif address is not None:
            peer.direct_bytes += total
            if not self.sink.udp_batch(view, stride, address):
                self._sending_failed(peer, address, now)
                by_relay = True
        if by_relay:
            self._relay(peer, [view[at : at + stride] for at in range(0, total, stride)])
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
            self._relay(peer, datagrams)
        # Keepalives do not make a session active: ten thousand idle peers, each kept alive every 25 s, would be pinged
        # every 3 s for ever, most of what they cost.
        if counts:
            self._note_sent(peer, now)

    def _sending_failed(self, peer: Peer, address: Address, now: float) -> None:
        self._do(peer, peer.paths.on_sending_failed(address, now), now)

    def _note_sent(self, peer: Peer, now: float) -> None:
        paths = peer.paths
        last = paths.last_send
        if last is not None and now - last < _LATELY and paths.trusted(now):
            paths.last_send = now  # all that `on_send` would do
            return
        was_quiet = not paths.active(now)
        actions = paths.on_send(now)
        if actions or was_quiet:
            self._do(peer, actions, now)

    def _relay(self, peer: Peer, packets: Sequence[bytes | memoryview]) -> None:
        region = self.routes.region(peer.config.public_key, peer.config.home_derp)
        if not region:
            return
        peer.relayed_bytes += sum(map(len, packets))
        is_short = self.sink.relay(region, peer.config.public_key, packets)
        if not is_short and peer not in self._paused and peer.paths.selector.state is not PathState.DIRECT:
            self._paused[peer] = region
            for address in peer.tunnel.allowed:
                self.stack.pause(address)

    # -- time -------------------------------------------------------------------------------------------------------
    def next_wake(self) -> float | None:
        """When `on_timer` has something to do."""
        wake = self.device.next_wake()
        # Asked after every datagram: written out, it costs half.
        at = self.stack.next_wake()
        if at is not None and (wake is None or at < wake):
            wake = at
        at = self._timer_queue.next()
        if at is not None and (wake is None or at < wake):
            wake = at
        return wake

    def on_timer(self, now: float) -> None:
        """Do what is due; `flush` is included."""
        for peer in self._timer_queue.pop_due(now):
            self._do(peer, peer.paths.on_timer(now), now)
        self._dispatch(self.device.on_timer(now), now)
        self.stack.on_timer(now)
        self.flush(now)


def _is_keepalive(datagram: bytes) -> bool:
    return datagram[0] == _TRANSPORT and len(datagram) == TRANSPORT_OVERHEAD
