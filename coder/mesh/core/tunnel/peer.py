"""Tunnel of a peer: sealing, opening, and renewing keys.

Lives here: the reaction to each event and each due timer.
Does not live here: assigning datagrams to peers, cookies for strangers (device.py); paths to the peer.
Obeys: the WireGuard paper, section 6.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from coder.mesh.core.crypto.keys import PrivateKey, PublicKey, Random
from coder.mesh.core.crypto.noise import NO_PSK, OpenedInitiation, TransportKeys
from coder.mesh.core.tunnel import timers as facts
from coder.mesh.core.tunnel.constants import (
    MAX_ATTEMPTS,
    MAX_STAGED,
    MAX_UNDELIVERED,
    REKEY_JITTER,
    REKEY_ON_RECEIVE,
    REKEY_TIMEOUT,
    UNDELIVERED_RETRY,
)
from coder.mesh.core.tunnel.events import Event, HandshakeCompleted, HandshakeGaveUp, KeysExpired, Roamed, Source
from coder.mesh.core.tunnel.handshake import Handshaker
from coder.mesh.core.tunnel.index import IndexTable
from coder.mesh.core.tunnel.keypairs import KeyOwner, Keypair, Keypairs
from coder.mesh.core.tunnel.timers import SessionTimers, Timer
from coder.mesh.core.wire.batch import Batch, TxBuf
from coder.mesh.core.wire.wireguard import CookieReply, HandshakeResponse, Initiation

_KEEPALIVE = b""
_HEADER_SIZE = 16


@dataclass(slots=True)
class TunnelStats:
    """Counters since the tunnel was created."""

    rx_bytes: int = 0
    "Genuine datagrams, UDP payload bytes."
    tx_bytes: int = 0
    last_handshake: float | None = None
    "Time of the last completed handshake, caller's clock."
    staged_lost: int = 0
    "Packets dropped because no session was established."


@dataclass(slots=True)
class Outcome:
    """Result of a step of a tunnel."""

    datagrams: list[bytes]
    "Datagrams for the peer."
    events: list[Event]


class Tunnel(KeyOwner):
    """A peer. `announce` is called with each deadline earlier than all before (the device's heap)."""

    __slots__ = (
        "_attempts",
        "_handshaker",
        "_indices",
        "_initiated_at",
        "_is_retry_early",
        "_keypairs",
        "_mtu",
        "_needs_another_keepalive",
        "_random",
        "_renewed_late",
        "_staged",
        "_timers",
        "_undelivered",
        "_wall_offset",
        "remote",
        "source",
        "stats",
    )

    def __init__(
        self,
        local: PrivateKey,
        remote: PublicKey,
        random: Random,
        indices: IndexTable[Keypair[Tunnel], Tunnel],
        *,
        psk: bytes = NO_PSK,
        mtu: int = 1280,
        wall_offset: float = 0.0,
        announce: Callable[[float], None] = lambda _: None,
    ) -> None:
        super().__init__()
        self.remote = remote
        self.source: Source | None = None
        "Source of its last genuine datagram."
        self.stats = TunnelStats()
        self._handshaker = Handshaker(local, remote, psk, random)
        self._indices = indices
        self._random = random
        self._mtu = mtu
        self._wall_offset = wall_offset
        self._timers = SessionTimers(announce)
        self._keypairs: Keypairs[Tunnel] = Keypairs()
        self._staged: deque[bytes] = deque()
        self._attempts = 0
        self._initiated_at = -inf
        self._is_retry_early = False
        self._undelivered = 0
        self._needs_another_keepalive = False
        self._renewed_late = False

    def __repr__(self) -> str:
        return f"Tunnel({self.remote.short})"

    # -- sending ----------------------------------------------------------------------------------------------------
    def is_ready(self, now: float) -> bool:
        """Return whether packets sealed now leave immediately."""
        return self._sending_keys(now) is not None

    def seal(self, packets: list[bytes], now: float) -> list[bytes]:
        """Return datagrams for these IP packets; without a session stage them and return an initiation, if due."""
        keypair = self._sending_keys(now)
        if keypair is None:
            self._stage(packets)
            return self._initiate(now)
        mtu = self._mtu
        # The common case of a keystroke: no list of one packet to sum over.
        if len(packets) == 1:
            packet = packets[0]
            datagrams = [keypair.seal_one(packet, mtu)]
            self._sent(len(datagrams[0]), now, data=bool(packet))
        else:
            datagrams = [keypair.seal_one(packet, mtu) for packet in packets]
            self._sent(sum(map(len, datagrams)), now, data=any(packets))
        if keypair.needs_renewal(now):
            datagrams += self._initiate(now)
        return datagrams

    def seal_into(self, txbuf: TxBuf, batch: Batch, now: float) -> int:
        """Seal an emitted batch in place; return total bytes to send.

        0 without a session: the packets are staged, and the next on_timer, due immediately, returns the initiation.
        """
        keypair = self._sending_keys(now)
        if keypair is None:
            self._stage(_plaintexts(txbuf, batch))
            self._initiate_soon(now)
            return 0
        # Counted after sealing, as whole datagrams: stats count bytes on the wire.
        total = keypair.seal_into(txbuf, batch.packets, batch.size, batch.last)
        self._sent(total, now, data=True)
        if keypair.needs_renewal(now):
            self._initiate_soon(now)
        return total

    def start_handshake(self, now: float) -> list[bytes]:
        """Return an initiation, unless there is a session or an initiation was sent recently."""
        return [] if self.is_ready(now) else self._initiate(now)

    def set_persistent_keepalive(self, seconds: float, now: float) -> None:
        """Send keepalives after so many seconds of silence in both directions, the first immediately; 0 disables
        them."""
        was = self._timers.interval
        self._timers.interval = seconds
        if not seconds:
            self._timers.disarm(Timer.PERSISTENT_KEEPALIVE)
        elif not was:
            self._timers.arm(Timer.PERSISTENT_KEEPALIVE, now)

    def _sending_keys(self, now: float) -> Keypair[Tunnel] | None:
        # `next` holds keys that were answered and not confirmed; sending with them would give data to a replayer.
        keypair = self._keypairs.current
        return keypair if keypair is not None and keypair.is_usable(now) else None

    def _stage(self, packets: list[bytes]) -> None:
        # Kept as plaintext: the keys that will seal them are not known yet.
        self._staged.extend(packets)
        # The oldest is dropped first: it is the least useful to its sender.
        while len(self._staged) > MAX_STAGED:
            self._staged.popleft()
            self.stats.staged_lost += 1

    def _sent(self, size: int, now: float, *, data: bool) -> None:
        self.stats.tx_bytes += size
        if data:
            self._timers.data_sent(now)
        else:
            self._timers.apply(facts.PACKET_SENT, now)

    def _send_staged(self, now: float, *, keepalive: bool) -> list[bytes]:
        """Return the staged packets; without any, a keepalive if one is needed."""
        if not self._staged:
            return self.seal([_KEEPALIVE], now) if keepalive else []
        packets = list(self._staged)
        self._staged.clear()
        return self.seal(packets, now)

    def _initiate(self, now: float, *, is_retry: bool = False) -> list[bytes]:
        """Return an initiation, unless the last one is younger than 5 s."""
        if not is_retry:
            # Every request for a handshake restarts the ninety seconds; a retry does not (paper, section 6.4).
            self._attempts = 1
        # WireGuard paper, section 6: at most one initiation in five seconds to a peer, whatever requests it.
        if now < self._initiated_at + REKEY_TIMEOUT:
            self._initiate_soon(now)
            return []
        self._initiated_at = now
        self._is_retry_early = False
        # New jitter for each attempt, from the caller's randomness: two peers that restart together would otherwise
        # cross their initiations again and again, each discarding the other's. WireGuard paper, section 6.1 has the
        # third of a second.
        self._timers.jitter = int.from_bytes(self._random(2), "little") / 0xFFFF * REKEY_JITTER
        self._forget_initiation()
        index = self._indices.allocate()
        self._indices.handshakes[index] = self
        datagram = self._handshaker.initiate(index, now + self._wall_offset, now)
        self.stats.tx_bytes += len(datagram)
        self._timers.apply(facts.INITIATION_SENT, now)
        return [datagram]

    def _initiate_soon(self, now: float) -> None:
        """Let the retry timer initiate at the earliest moment: now, or 5 s after the last handshake message.

        For callers without room for a second datagram, and when one side has sent just now: should the other's answer
        get lost, one of them has to continue.
        """
        at = max(now, self._initiated_at + REKEY_TIMEOUT)
        # One retry serves all requests; a later one would only postpone it.
        if not self._timers.is_armed(Timer.RETRY):
            self._attempts = 0
            self._timers.arm(Timer.RETRY, at if at == now else at + self._timers.jitter)

    def undelivered(self, now: float) -> None:
        """Retry earlier: a relay reports that the peer is not there to receive an initiation.

        Two nodes that meet for the first time may learn of each other before the later one has reached its relay. The
        pauses double from a quarter of a second to the five seconds of any lost initiation, so a false report causes
        only a handful of datagrams.
        """
        if self._handshaker.pending_index is None or self._undelivered >= MAX_UNDELIVERED:
            return
        # A second report about one initiation: its retry is scheduled already.
        due = self._initiated_at + REKEY_TIMEOUT
        sooner = now + UNDELIVERED_RETRY * 2**self._undelivered
        if self._is_retry_early or sooner >= due:
            return
        self._is_retry_early = True
        self._undelivered += 1
        self._attempts = max(0, self._attempts - 1)
        self._initiated_at = sooner - REKEY_TIMEOUT
        self._timers.arm(Timer.RETRY, sooner)

    def _forget_initiation(self) -> None:
        if self._handshaker.pending_index is not None:
            self._indices.handshakes.pop(self._handshaker.pending_index, None)
            self._handshaker.forget_initiation()

    # -- handshakes, called by the device -----------------------------------------------------------------------------
    def accept_initiation_untrusted(
        self, heard: OpenedInitiation, message: Initiation, source: Source, now: float, events: list[Event]
    ) -> bytes:
        """Return the response to an initiation of this peer. Raises CryptoError when it is not genuine or too soon."""
        accepted = self._handshaker.accept_initiation_untrusted(heard, message, now)
        index = self._indices.allocate()
        response, keys = self._handshaker.respond(accepted, message, index, now)
        # With an index of its own; the peer's index goes into our headers.
        keypair = Keypair(self, keys, index, message.sender, is_initiator=False, now=now)
        self._adopt(keypair, self._keypairs.add_responded(keypair), now)
        # A later initiation of ours would only create a second session of the same moment.
        self._initiated_at = now  # the peer is renewing the keys: we need not
        self._timers.apply(facts.PACKET_RECEIVED, now)
        self._timers.apply(facts.PACKET_SENT, now)
        self._heard_from(source, events)
        self.stats.tx_bytes += len(response)
        return response

    def accept_response_untrusted(
        self, message: HandshakeResponse, source: Source, now: float, events: list[Event]
    ) -> list[bytes]:
        """Return the packets staged for the session, or a confirming keepalive. Raises CryptoError when not genuine."""
        keys: TransportKeys = self._handshaker.accept_response_untrusted(message)
        # The same index now identifies the session; the response used it.
        self._indices.handshakes.pop(message.receiver, None)
        keypair = Keypair(self, keys, message.receiver, message.sender, is_initiator=True, now=now)
        self._adopt(keypair, self._keypairs.add_initiated(keypair), now)
        self._timers.apply(facts.PACKET_RECEIVED, now)
        self._heard_from(source, events)
        self._completed(now, events)
        # A packet is required even without data: the responder may not use its keys before it received one.
        return self._send_staged(now, keepalive=True)

    def accept_cookie_untrusted(self, message: CookieReply, now: float) -> None:
        """Keep the cookie for the next initiation. Raises CryptoError when it is not genuine."""
        self._handshaker.jar.accept_reply_untrusted(message.nonce, message.cookie, now)

    def _adopt(self, keypair: Keypair[Tunnel], discarded: list[Keypair[Tunnel]], now: float) -> None:
        self._release(discarded)
        self._indices.sessions[keypair.local_index] = keypair
        self._timers.apply(facts.SESSION_DERIVED, now)
        self._expect_expiry()

    def _release(self, discarded: list[Keypair[Tunnel]]) -> None:
        self._indices.release([keypair.local_index for keypair in discarded])

    def _completed(self, now: float, events: list[Event]) -> None:
        self._timers.apply(facts.HANDSHAKE_COMPLETED, now)
        self._attempts = self._undelivered = 0
        self._renewed_late = False
        self.stats.last_handshake = now
        events.append(HandshakeCompleted(self.remote))

    def _heard_from(self, source: Source, events: list[Event]) -> None:
        # Paper, section 2.1: a peer's address is the source of its last genuine datagram. That is all of roaming.
        if source != self.source:
            self.source = source
            events.append(Roamed(self.remote, source))

    # -- receiving, called by the device ----------------------------------------------------------------------------
    def is_settled(self, keypair: Keypair[Tunnel], source: Source, now: float) -> bool:
        """Return whether datagrams of these keys from this source change only counters and timers (for `heard`)."""
        return (
            keypair is self._keypairs.current
            and source == self.source
            and keypair.is_usable(now)
            and (self._renewed_late or not keypair.is_initiator or now - keypair.created <= REKEY_ON_RECEIVE)
        )

    def heard(self, size: int, data: int, now: float) -> None:
        """Record genuine datagrams of `size` bytes in total, `data` of them not keepalives."""
        self.stats.rx_bytes += size
        if not data:
            self._timers.apply(facts.PACKET_RECEIVED, now)
        elif self._timers.data_received(now):
            self._needs_another_keepalive = True

    def received(
        self, keypair: Keypair[Tunnel], size: int, data: int, source: Source, now: float, events: list[Event]
    ) -> list[bytes]:
        """Record genuine datagrams as `heard` does; return what has to be sent now."""
        datagrams: list[bytes] = []
        if source != self.source:
            self._heard_from(source, events)
        # The first packet under new keys is the confirmation; the handshake has no third message (WireGuard paper,
        # section 5).
        if keypair is self._keypairs.next:
            self._release(self._keypairs.confirm(keypair) or [])
            self._completed(now, events)
            datagrams = self._send_staged(now, keepalive=False)
        self.heard(size, data, now)
        # Paper, section 6.2: a peer that only receives renews nothing by sending, so receiving does it once, before the
        # keys are refused.
        current = self._keypairs.current
        if (
            not self._renewed_late
            and current is not None
            and current.is_initiator
            and now - current.created > REKEY_ON_RECEIVE
        ):
            # Once for each session: every later packet would request it again.
            self._renewed_late = True
            datagrams += self._initiate(now)
        return datagrams

    # -- time -------------------------------------------------------------------------------------------------------
    def next_wake(self) -> float | None:
        """Return when `on_timer` should be called; nothing may be due then."""
        return None if self._timers.wake == inf else self._timers.wake

    def on_timer(self, now: float) -> Outcome:
        """Run all due timers."""
        outcome = Outcome([], [])
        for timer in self._timers.take_due(now):
            _ON_DUE[timer](self, now, outcome)
        self._timers.settle()
        return outcome

    def _on_retry(self, now: float, outcome: Outcome) -> None:
        # WireGuard paper 6.4: ninety seconds of retries. Staged packets are dropped, not kept for a peer that may never
        # come.
        if self._attempts >= MAX_ATTEMPTS:
            self._forget_initiation()
            self._undelivered = 0
            self.stats.staged_lost += len(self._staged)
            self._staged.clear()
            self._timers.apply(facts.GAVE_UP, now)
            outcome.events.append(HandshakeGaveUp(self.remote))
            return
        self._attempts += 1
        # With new ephemeral keys and a new timestamp: a repeated message would be refused as a replay.
        outcome.datagrams += self._initiate(now, is_retry=True)

    def _on_passive_keepalive(self, now: float, outcome: Outcome) -> None:
        outcome.datagrams += self._send_staged(now, keepalive=True)
        # For data that came while the answer was already due, the ten seconds count from now, as with genuine peers.
        if self._needs_another_keepalive:
            self._needs_another_keepalive = False
            self._timers.apply(facts.DATA_RECEIVED, now)

    def _on_new_handshake(self, now: float, outcome: Outcome) -> None:
        outcome.datagrams += self._initiate(now)

    def _on_persistent_keepalive(self, now: float, outcome: Outcome) -> None:
        if not self._timers.interval:
            return
        # Armed first: without a session nothing may be sent, and the next keepalive has to follow all the same.
        self._timers.arm(Timer.PERSISTENT_KEEPALIVE, now + self._timers.interval)
        outcome.datagrams += self._send_staged(now, keepalive=True)

    def _on_drop_keys(self, now: float, _: Outcome) -> None:
        self._release(self._keypairs.drop_expired(now))
        self._expect_expiry()

    def _on_zero_keys(self, _: float, outcome: Outcome) -> None:
        # Paper, section 6.3: after three lifetimes without a new session its secrets are erased.
        self._forget_initiation()
        self._release(self._keypairs.clear())
        self._timers.disarm(Timer.DROP_KEYS)
        outcome.events.append(KeysExpired(self.remote))

    def _expect_expiry(self) -> None:
        at = self._keypairs.first_expiry()
        if at is None:
            self._timers.disarm(Timer.DROP_KEYS)
        else:
            self._timers.arm(Timer.DROP_KEYS, at)

    def slept(self, seconds: float) -> None:
        """Expire sessions after a sleep during which the caller's clock stood still: the peer has forgotten them.

        The next packet starts a handshake instead of being lost until the silence is noticed.
        """
        # By the caller's clock the last initiation is still recent, and would delay the next.
        self._initiated_at -= seconds
        # A cookie's age counts by the responder's clock, which did not stand still.
        self._handshaker.jar.slept(seconds)
        self._keypairs.slept(seconds)
        self._timers.slept(seconds)

    def close(self) -> None:
        """Discard all keys and deadlines; the tunnel is not usable afterwards."""
        self._forget_initiation()
        self._release(self._keypairs.clear())
        self._staged.clear()
        self._timers.clear()


_ON_DUE: dict[Timer, Callable[[Tunnel, float, Outcome], None]] = {
    Timer.RETRY: Tunnel._on_retry,
    Timer.PASSIVE_KEEPALIVE: Tunnel._on_passive_keepalive,
    Timer.NEW_HANDSHAKE: Tunnel._on_new_handshake,
    Timer.PERSISTENT_KEEPALIVE: Tunnel._on_persistent_keepalive,
    Timer.DROP_KEYS: Tunnel._on_drop_keys,
    Timer.ZERO_KEYS: Tunnel._on_zero_keys,
}


def _plaintexts(txbuf: TxBuf, batch: Batch) -> list[bytes]:
    """Return copies of the packets of an unsealed batch, padding included."""
    stride = txbuf.layout(batch.size).stride
    view = txbuf.view
    sizes = [batch.size] * (batch.packets - 1) + [batch.last]
    starts = [i * stride + _HEADER_SIZE for i in range(batch.packets)]
    return [bytes(view[start : start + size]) for start, size in zip(starts, sizes, strict=True)]
