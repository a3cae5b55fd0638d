"""One peer's handshakes, datagram by datagram: Noise fields, MACs and replay protection put together.

Lives here: both roles; what must be remembered between the messages of a handshake.
Does not live here: when to start one and what to do with the keys (peer.py); checking mac1 of what arrives, which comes
before any peer is known (device.py).
Obeys: the WireGuard paper, sections 5.1 and 5.4.

The two roles do not share state: when both peers start at once both handshakes complete (a single state, as in other
implementations, loses both and waits for the retry).
"""

from __future__ import annotations

from struct import Struct

from coder.mesh.core.crypto.handshake_cookie import CookieJar
from coder.mesh.core.crypto.keys import PrivateKey, PublicKey, Random
from coder.mesh.core.crypto.noise import (
    Accepted,
    Heard,
    Initiated,
    TransportKeys,
    read_response_untrusted,
    read_timestamp_untrusted,
    write_initiation,
    write_response,
)
from coder.mesh.core.errors import CryptoError
from coder.mesh.core.tunnel.constants import MIN_INITIATION_INTERVAL
from coder.mesh.core.wire.wireguard import HandshakeResponse, Initiation

_TAI64N = Struct(">QI")
# TAI64 counts from 2**62 at 1970; the 10 s are TAI's lead over UTC, leap seconds left out. Only the order matters to
# a responder.
_TAI_EPOCH = 0x400000000000000A
# Nanoseconds are whitened to 16.7 ms so that the timestamp tells nobody how precisely our clock ticks.
_COARSE = 1 << 24
_SECOND = 1_000_000_000


def tai64n(seconds: int, nanoseconds: int) -> bytes:
    """The 12-byte label of a Unix time; nanoseconds lose their low 24 bits."""
    # 5.1: a responder takes only timestamps greater than the last of that peer, which is what stops replayed
    # initiations.
    return _TAI64N.pack(_TAI_EPOCH + seconds, nanoseconds // _COARSE * _COARSE)


class Handshaker:
    """Handshakes with one peer. Construction fails with CryptoError when the peer's key is unusable."""

    __slots__ = (
        "_heard_at",
        "_heard_stamp",
        "_initiated",
        "_local",
        "_psk",
        "_random",
        "_remote",
        "_said",
        "_shared",
        "jar",
        "pending_index",
    )

    def __init__(self, local: PrivateKey, remote: PublicKey, psk: bytes, random: Random) -> None:
        self._local = local
        self._remote = remote
        self._psk = psk
        self._random = random
        # The static agreement is the same for all handshakes of two peers: 25 us once instead of each time. It is as
        # secret as the private key and lives as long.
        self._shared = local.exchange(remote)
        self.jar = CookieJar(remote)
        # What only our side knows of an initiation; the answer is nothing without it.
        self._initiated: Initiated | None = None
        self.pending_index: int | None = None
        "Under which the answer to our last initiation will come."
        # The last timestamp we sent, as (seconds, nanoseconds).
        self._said = (0, 0)
        # Zeros are less than any timestamp. Kept in memory only: after a restart a recorded initiation is answered
        # once, and comes to nothing, as who plays it back has not the keys to go on.
        self._heard_stamp = bytes(12)
        self._heard_at: float | None = None

    def initiate(self, index: int, unix_time: float, now: float) -> bytes:
        """An initiation; any earlier one of ours is forgotten."""
        fields, self._initiated = write_initiation(
            self._local.public,
            self._remote,
            self._shared,
            PrivateKey.generate(self._random),
            self._timestamp(unix_time),
        )
        self.pending_index = index
        message = Initiation(index, fields.ephemeral, fields.static, fields.timestamp)
        return self.jar.sign(message.encode_unsigned(), now)

    def accept_response_untrusted(self, message: HandshakeResponse) -> TransportKeys:
        """The keys our initiation led to; CryptoError when forged or not awaited."""
        # An answer to an initiation we have replaced: its ephemeral key is gone, and that is the point.
        # Not an error to tell: who guesses an index learns nothing from silence.
        if self._initiated is None or message.receiver != self.pending_index:
            raise CryptoError("not_awaited")
        keys = read_response_untrusted(self._initiated, self._local, message.ephemeral, message.empty, self._psk)
        self.forget_initiation()
        return keys

    def accept_initiation_untrusted(self, heard: Heard, message: Initiation, now: float) -> Accepted:
        """Prove the sender; CryptoError when forged, replayed, or within 20 ms of the one before."""
        stamp, accepted = read_timestamp_untrusted(heard, self._shared, message.timestamp)
        # WireGuard paper 5.1: only ever later ones, or a recorded initiation would throw the peer out of its session.
        if stamp <= self._heard_stamp:
            raise CryptoError("replayed_initiation")
        # A genuine but mad peer could make us compute two key agreements per datagram; 50 a second are enough for any.
        if self._heard_at is not None and now - self._heard_at < MIN_INITIATION_INTERVAL:
            raise CryptoError("initiation_flood")
        self._heard_stamp = stamp
        self._heard_at = now
        # Noted only here, behind the proof: a stranger moves neither.
        return accepted

    def respond(
        self, accepted: Accepted, initiation: Initiation, index: int, now: float
    ) -> tuple[bytes, TransportKeys]:
        """The response and the keys."""
        # A key for this session alone; with it goes, when the session ends, what could open a recording of it.
        ephemeral = PrivateKey.generate(self._random)
        # Our own initiation, if one is under way, is left alone: see the head of this file.
        empty, keys = write_response(accepted, ephemeral, self._psk)
        message = HandshakeResponse(index, initiation.sender, bytes(ephemeral.public), empty)
        return self.jar.sign(message.encode_unsigned(), now), keys

    def forget_initiation(self) -> None:
        """No answer is awaited any more; the ephemeral key is gone."""
        self._initiated = None
        self.pending_index = None

    def _timestamp(self, unix_time: float) -> bytes:
        seconds = int(unix_time)
        nanoseconds = int((unix_time - seconds) * _SECOND) // _COARSE * _COARSE
        if (seconds, nanoseconds) <= self._said:
            # Also after a clock was set back: from the last one said on, time goes on in the smallest steps.
            # The responder takes only later ones, and within a tick of the coarse clock there are none.
            seconds, nanoseconds = self._said
            nanoseconds += _COARSE
            if nanoseconds >= _SECOND:
                seconds, nanoseconds = seconds + 1, 0
        self._said = (seconds, nanoseconds)
        return tai64n(seconds, nanoseconds)
