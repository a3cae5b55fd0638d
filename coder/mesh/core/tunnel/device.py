"""A WireGuard device: one identity, its peers, and the dispatch of datagrams to them.

Lives here: the use of the index table, under-load defence, allowed addresses, the timers of all peers in one heap.
Does not live here: sockets, paths, the choice of peers (core/endpoint.py and above).
Obeys: the WireGuard paper, sections 4, 5.3 and 6. No state is kept about a sender before its mac1 is valid, and none at
all about a sender without a known static key.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2s
from heapq import heappop, heappush
from hmac import compare_digest
from struct import Struct

from coder.mesh.core.crypto.handshake_cookie import MAC_SIZE, CookieMaker, mac1_key
from coder.mesh.core.crypto.keys import PrivateKey, PublicKey, Random
from coder.mesh.core.crypto.noise import NO_PSK, read_initiation_untrusted
from coder.mesh.core.errors import CryptoError, WireError
from coder.mesh.core.tunnel.events import Event, Source
from coder.mesh.core.tunnel.index import IndexTable
from coder.mesh.core.tunnel.keypairs import Keypair
from coder.mesh.core.tunnel.load import LoadGauge, SourceLimiter
from coder.mesh.core.tunnel.peer import Tunnel
from coder.mesh.core.wire.address import endpoint
from coder.mesh.core.wire.wireguard import (
    INITIATION_SIZE,
    RESPONSE_SIZE,
    TRANSPORT_HEADER,
    TRANSPORT_OVERHEAD,
    TYPE_TRANSPORT,
    CookieReply,
    HandshakeResponse,
    Initiation,
    Transport,
    parse_untrusted,
    split_macs,
)

_unpack_header_from = TRANSPORT_HEADER.unpack_from
_IPV6_PREFIX = 8
"""Bytes of an IPv6 address that identify a network (RFC 4291 section 2.5.4)."""
# The other two have no mac1: a cookie reply is authenticated by the mac1 of the message it answers, data by its tag.
_SIGNED_SIZES = (INITIATION_SIZE, RESPONSE_SIZE)
_SIGNED_INITIATION = Struct(f"{INITIATION_SIZE - 2 * MAC_SIZE}s{MAC_SIZE}s").unpack_from
_SIGNED_RESPONSE = Struct(f"{RESPONSE_SIZE - 2 * MAC_SIZE}s{MAC_SIZE}s").unpack_from
"""(range covered by mac1, mac1)."""


@dataclass(slots=True)
class Received:
    """Result of a batch of datagrams, or of due timers."""

    deliveries: list[tuple[Tunnel, list[bytes]]] = field(default_factory=list)
    "Plaintext IPv6 packets; up to 15 bytes of padding may follow where the IP header says it ends."
    sends: list[tuple[Tunnel, bytes]] = field(default_factory=list)
    "Datagrams to peers, by their current path."
    replies: list[bytes] = field(default_factory=list)
    "Datagrams back to the source address (cookie replies: the sender is not authenticated yet)."
    events: list[Event] = field(default_factory=list)


@dataclass(slots=True)
class DeviceStats:
    """Counts of dropped datagrams by reason."""

    malformed: int = 0
    "Wrong size or type for WireGuard, or handshakes with a wrong mac1."
    unknown_receiver: int = 0
    "Datagrams for an unknown or expired index."
    refused: int = 0
    "Handshakes of strangers, forged, replayed or too fast."
    cookies_sent: int = 0
    "Handshakes answered with a cookie because we were under load."
    limited: int = 0
    "Handshakes beyond 20/s of one source while under load."


class Device:
    """All tunnels of one private key. `wall_offset` is Unix time minus the clock of `now`."""

    def __init__(self, local: PrivateKey, random: Random, *, wall_offset: float, mtu: int = 1280) -> None:
        self.local = local
        self.peers: dict[bytes, Tunnel] = {}
        self.stats = DeviceStats()
        self.always_under_load = False
        "Require cookies of all senders (tests; an operator under attack)."
        self._random = random
        self._mtu = mtu
        # Only handshakes need wall-clock time: the peer compares their timestamps, across our restarts.
        self._wall_offset = wall_offset
        self._indices: IndexTable[Keypair[Tunnel], Tunnel] = IndexTable(random)
        # The table itself: used for each batch, without a call.
        self._sessions = self._indices.sessions
        self._routes: dict[bytes, Tunnel] = {}
        # The mac1 key of our public key is constant: every arriving handshake is checked with it.
        self._mac1 = blake2s(key=mac1_key(local.public), digest_size=MAC_SIZE)
        "Keyed already: copying it costs half of building it."
        self._cookies = CookieMaker(local.public, random)
        self._gauge = LoadGauge()
        self._limiter = SourceLimiter()
        # Heap of all tunnels. The serial number keeps it from comparing tunnels.
        self._heap: list[tuple[float, int, Tunnel]] = []
        self._serial = 0

    # -- peers ------------------------------------------------------------------------------------------------------
    def add_peer(
        self,
        remote: PublicKey,
        now: float,
        *,
        allowed: Iterable[bytes] = (),
        psk: bytes = NO_PSK,
        persistent_keepalive: float = 0.0,
    ) -> Tunnel:
        """Add a peer with these overlay addresses (16 bytes each). Raises CryptoError when its key is unusable."""
        # A defect of the caller, not of the peer: hence no WireError.
        if remote in self.peers:
            raise ValueError("the peer already exists")

        # Entries are never moved: a nearer deadline gets its own entry, and `next_wake` drops stale entries when they
        # surface.
        def announce(at: float) -> None:
            self._serial += 1
            heappush(self._heap, (at, self._serial, tunnel))

        tunnel = Tunnel(
            self.local,
            remote,
            self._random,
            self._indices,
            psk=psk,
            mtu=self._mtu,
            wall_offset=self._wall_offset,
            announce=announce,
        )
        self.peers[remote] = tunnel
        self.set_allowed(tunnel, allowed)
        tunnel.set_persistent_keepalive(persistent_keepalive, now)
        return tunnel

    def remove_peer(self, remote: PublicKey) -> None:
        """Remove a peer and its keys; does nothing when there is none."""
        # Out of the table first, so that no arriving datagram finds it.
        tunnel = self.peers.pop(remote, None)
        if tunnel is not None:
            self.set_allowed(tunnel, ())
            tunnel.close()

    def set_allowed(self, tunnel: Tunnel, allowed: Iterable[bytes]) -> None:
        """Replace a peer's overlay addresses. An address of another peer moves to this one."""
        # WireGuard paper, section 2 (cryptokey routing): one table says which peer gets the packets for an address and
        # which peer may send from it, so an address has one owner.
        owned = tuple(dict.fromkeys(bytes(address) for address in allowed))
        for address in tunnel.allowed:
            if self._routes.get(address) is tunnel:
                del self._routes[address]
        for address in owned:
            before = self._routes.get(address)
            if before is not None:
                # Both directions in one step, or two peers could claim one address in between.
                before.allowed = tuple(a for a in before.allowed if a != address)
            self._routes[address] = tunnel
        tunnel.allowed = owned

    def tunnel_to(self, destination: bytes) -> Tunnel | None:
        """Return the peer that owns an overlay address (16 bytes)."""
        return self._routes.get(destination)

    def slept(self, seconds: float) -> None:
        """Account for a sleep of the machine, during which the caller's clock stood still; `on_timer` is due now."""
        for tunnel in self.peers.values():
            tunnel.slept(seconds)

    # -- receiving --------------------------------------------------------------------------------------------------
    def receive_untrusted(self, datagram: bytes, source: Source, now: float) -> Received:
        """Process one WireGuard datagram."""
        size = len(datagram)
        return self.receive_batch_untrusted(memoryview(datagram), size, max(size, 1), source, now)

    def receive_batch_untrusted(
        self, view: memoryview, total: int, segment: int, source: Source, now: float
    ) -> Received:
        """Process consecutive datagrams of `segment` bytes each (the last may be shorter) in `view[:total]`."""
        result = Received()
        offset = 0
        while offset < total:
            end = min(offset + segment, total)
            if end - offset >= TRANSPORT_OVERHEAD:
                kind, receiver, _ = _unpack_header_from(view, offset)
                if kind == TYPE_TRANSPORT:
                    offset = self._open_run(view, offset, total, segment, receiver, source, now, result)
                    continue
            self._handshake(bytes(view[offset:end]), source, now, result)
            offset = end
        return result

    def open_fast_untrusted(
        self, view: memoryview, total: int, segment: int, source: Source, now: float, out: list[bytes]
    ) -> int:
        """Open datagrams of a current session that come from the peer's known source; packets are appended to `out`.

        Returns the offset where `receive_batch_untrusted` continues: of the first datagram that is something else. The
        fast path of nearly every datagram, at a third less than the slow path.
        """
        if total < TRANSPORT_OVERHEAD or segment < TRANSPORT_OVERHEAD:
            return 0
        # The first datagram represents all: `open_run` stops at a different one.
        kind, receiver, _ = _unpack_header_from(view, 0)
        keypair = self._sessions.get(receiver)
        if kind != TYPE_TRANSPORT or keypair is None or not keypair.tunnel.is_settled(keypair, source, now):
            return 0
        after, genuine, data = keypair.open_run(view, 0, total, segment, out)
        if genuine:
            keypair.tunnel.heard(after, data, now)
        return after

    def _open_run(
        self,
        view: memoryview,
        offset: int,
        total: int,
        segment: int,
        receiver: int,
        source: Source,
        now: float,
        result: Received,
    ) -> int:
        keypair = self._sessions.get(receiver)
        # Silence (paper, section 5.1): a sender that cannot authenticate learns nothing about us.
        if keypair is None or not keypair.is_usable(now):
            self.stats.unknown_receiver += 1
            # This datagram; the next may be for other keys.
            return min(offset + segment, total)
        packets: list[bytes] = []
        after, genuine, data = keypair.open_run(view, offset, total, segment, packets)
        if genuine:
            tunnel = keypair.tunnel
            # Even without packets for us: the datagrams were genuine, and timers count those.
            sends = tunnel.received(keypair, after - offset, data, source, now, result.events)
            if packets:
                result.deliveries.append((tunnel, packets))
            if sends:
                result.sends += [(tunnel, datagram) for datagram in sends]
        return after

    def _handshake(self, datagram: bytes, source: Source, now: float, result: Received) -> None:
        if self.refuses_untrusted(datagram, 0, len(datagram)):
            return
        try:
            message = parse_untrusted(datagram)
        except WireError:
            self.stats.malformed += 1
            return
        try:
            if isinstance(message, CookieReply):
                self._cookie_reply(message, now)
            elif not isinstance(message, Transport) and self._is_admitted(datagram, message, source, now, result):
                # The two messages that cost key agreements; both have passed mac1.
                if isinstance(message, Initiation):
                    self._initiation(message, source, now, result)
                else:
                    self._response(message, source, now, result)
        except CryptoError:
            self.stats.refused += 1

    def refuses_untrusted(self, buffer: bytes | bytearray, at: int, size: int) -> bool:
        """Return whether the datagram at an offset has a handshake message's size and a wrong mac1; if so, count it.

        Done before any parsing: a flood of garbage is refused at 1 us per datagram.
        """
        if size not in _SIGNED_SIZES:
            return False
        covered, mac1 = (_SIGNED_INITIATION if size == INITIATION_SIZE else _SIGNED_RESPONSE)(buffer, at)
        mac = self._mac1.copy()
        mac.update(covered)
        if compare_digest(mac.digest(), mac1):
            return False
        self.stats.malformed += 1
        return True

    def _is_admitted(
        self, datagram: bytes, message: Initiation | HandshakeResponse, source: Source, now: float, result: Received
    ) -> bool:
        """Check mac2 under load (else send a cookie) and the source's rate."""
        # A cookie proves that the sender receives at its address (paper, section 5.3). Only then is a rate per address
        # meaningful, and both come before the first key agreement.
        if not self._gauge.count(now) and not self.always_under_load:
            return True
        _, mac1, covered2, mac2 = split_macs(datagram)
        # With its port: a cookie belongs to one sender. The rate below is per host, which has many ports.
        cookie_source = _source_bytes(source)
        if not self._cookies.is_mac2_valid(covered2, mac2, cookie_source, now):
            nonce, cookie = self._cookies.seal_reply(mac1, cookie_source, now)
            result.replies.append(CookieReply(message.sender, nonce, cookie).encode())
            self.stats.cookies_sent += 1
            return False
        if not self._limiter.allow(_source_host(source), now):
            self.stats.limited += 1
            return False
        return True

    def _initiation(self, message: Initiation, source: Source, now: float, result: Received) -> None:
        # WireGuard paper 5.3: everything up to here cost a hash. This is the first key agreement. Only senders that
        # know our public key (mac1) and, under load, proved their address (mac2) reach it.
        heard = read_initiation_untrusted(self.local, message.ephemeral, message.static)
        # A stranger's key opens as well as a peer's: it proves nothing, and is not answered.
        tunnel = self.peers.get(heard.remote)
        if tunnel is None:
            raise CryptoError("unknown_peer")
        response = tunnel.accept_initiation_untrusted(heard, message, source, now, result.events)
        result.sends.append((tunnel, response))

    def _response(self, message: HandshakeResponse, source: Source, now: float, result: Received) -> None:
        tunnel = self._indices.handshakes.get(message.receiver)
        if tunnel is None:
            self.stats.unknown_receiver += 1
            return
        sends = tunnel.accept_response_untrusted(message, source, now, result.events)
        result.sends += [(tunnel, datagram) for datagram in sends]

    def _cookie_reply(self, message: CookieReply, now: float) -> None:
        tunnel = self._indices.handshakes.get(message.receiver)
        if tunnel is None:
            keypair = self._sessions.get(message.receiver)  # the peer rejected our response
            if keypair is None:
                self.stats.unknown_receiver += 1
                return
            tunnel = keypair.tunnel
        # Not checked for load: a forged one costs an XChaCha20 and changes nothing.
        tunnel.accept_cookie_untrusted(message, now)

    # -- time -------------------------------------------------------------------------------------------------------
    def next_wake(self) -> float | None:
        """Return when `on_timer` should be called next."""
        heap = self._heap
        # An entry is stale when its tunnel has been served since: then a nearer or a later one replaced it.
        while heap and heap[0][2].next_wake() != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else None

    def on_timer(self, now: float) -> Received:
        """Serve every tunnel whose deadline has passed."""
        result = Received()
        heap = self._heap
        while heap and heap[0][0] <= now:
            at, _, tunnel = heappop(heap)
            # A nearer entry served it meanwhile, and pushed its next deadline.
            if tunnel.next_wake() != at:
                continue
            outcome = tunnel.on_timer(now)
            result.sends += [(tunnel, datagram) for datagram in outcome.datagrams]
            result.events += outcome.events
        return result


def _source_bytes(source: Source) -> bytes:
    return source if isinstance(source, bytes) else endpoint(*source[:2]).cookie_source


def _source_host(source: Source) -> Hashable:
    if isinstance(source, bytes):
        return source
    # For IPv6 the first half, as in the kernel's WireGuard: one subscriber holds 2**64 addresses and can prove as many
    # as it likes by cookie, each with a bucket of its own.
    ip = endpoint(*source[:2]).ip
    return ip.packed if ip.version == 4 else ip.packed[:_IPV6_PREFIX]
