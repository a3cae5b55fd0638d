"""Handshakes of one peer: Noise fields, MACs and replay protection combined.

Lives here: both roles; the state between the messages of a handshake.
Does not live here: when to start a handshake and how to use the keys (peer.py); the mac1 check of arriving messages,
which comes before any peer is known (device.py).
Obeys: the WireGuard paper, sections 5.1 and 5.4.

The two roles do not share state: when both peers start at the same time both handshakes complete (a single state, as in
other implementations, loses both and waits for the retry).
"""

from __future__ import annotations

from struct import Struct

from coder.mesh.core.crypto.handshake_cookie import CookieJar
from coder.mesh.core.crypto.keys import PrivateKey, PublicKey, Random
from coder.mesh.core.crypto.noise import (
    Accepted,
    Initiated,
    OpenedInitiation,
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
# TAI64 counts from 2**62 at 1970; the 10 s are TAI's lead over UTC, leap seconds left out. Only the order matters to a
# responder.
_TAI_EPOCH = 0x400000000000000A
# Nanoseconds are rounded to 16.7 ms so that the timestamp does not reveal the precision of our clock.
_COARSE = 1 << 24
_SECOND = 1_000_000_000


def tai64n(seconds: int, nanoseconds: int) -> bytes:
    """Return the 12-byte label of a Unix time; nanoseconds lose their low 24 bits."""
    # 5.1: a responder accepts only timestamps greater than the last of that peer, which stops replayed initiations.
    return _TAI64N.pack(_TAI_EPOCH + seconds, nanoseconds // _COARSE * _COARSE)


class Handshaker:
    """Handshakes with one peer. The constructor raises CryptoError when the peer's key is unusable."""

    __slots__ = (
        "_heard_at",
        "_heard_stamp",
        "_initiated",
        "_last_timestamp",
        "_local",
        "_psk",
        "_random",
        "_remote",
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
        # Our secret state of an initiation; the response is useless without it.
        self._initiated: Initiated | None = None
        self.pending_index: int | None = None
        "Index under which the response to our last initiation will arrive."
        # The last timestamp we sent, as (seconds, nanoseconds).
        self._last_timestamp = (0, 0)
        # Zeros are less than any timestamp. Kept in memory only: after a restart a replayed initiation is answered
        # once. That has no effect, as the attacker lacks the keys to continue.
        self._heard_stamp = bytes(12)
        self._heard_at: float | None = None

    def initiate(self, index: int, unix_time: float, now: float) -> bytes:
        """Return an initiation; an earlier one is discarded."""
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
        """Return the keys of a response. Raises CryptoError when it is forged or unexpected."""
        # A response to an initiation we have replaced: its ephemeral key is gone, and that is intended. The sender gets
        # no error: an attacker who guesses an index learns nothing from silence.
        if self._initiated is None or message.receiver != self.pending_index:
            raise CryptoError("not_awaited")
        keys = read_response_untrusted(self._initiated, self._local, message.ephemeral, message.empty, self._psk)
        self.forget_initiation()
        return keys

    def accept_initiation_untrusted(self, heard: OpenedInitiation, message: Initiation, now: float) -> Accepted:
        """Authenticate the sender. Raises CryptoError when forged, replayed, or within 20 ms of the one before."""
        stamp, accepted = read_timestamp_untrusted(heard, self._shared, message.timestamp)
        # WireGuard paper 5.1: only later timestamps, or a replayed initiation would end the peer's session.
        if stamp <= self._heard_stamp:
            raise CryptoError("replayed_initiation")
        # A faulty genuine peer could make us compute two key agreements per datagram; 50 a second are enough.
        if self._heard_at is not None and now - self._heard_at < MIN_INITIATION_INTERVAL:
            raise CryptoError("initiation_flood")
        self._heard_stamp = stamp
        self._heard_at = now
        # Recorded only after authentication: a stranger changes neither.
        return accepted

    def respond(
        self, accepted: Accepted, initiation: Initiation, index: int, now: float
    ) -> tuple[bytes, TransportKeys]:
        """Return the response and the keys."""
        # An ephemeral key for this session alone; when it is discarded with the session, a recording cannot be
        # decrypted any more.
        ephemeral = PrivateKey.generate(self._random)
        # Our own initiation in progress is left alone: see the head of this file.
        empty, keys = write_response(accepted, ephemeral, self._psk)
        message = HandshakeResponse(index, initiation.sender, bytes(ephemeral.public), empty)
        return self.jar.sign(message.encode_unsigned(), now), keys

    def forget_initiation(self) -> None:
        """Discard the pending initiation and its ephemeral key."""
        self._initiated = None
        self.pending_index = None

    def _timestamp(self, unix_time: float) -> bytes:
        seconds = int(unix_time)
        nanoseconds = int((unix_time - seconds) * _SECOND) // _COARSE * _COARSE
        if (seconds, nanoseconds) <= self._last_timestamp:
            # Also after a clock was set back: the timestamp then advances from the last one in the smallest steps. The
            # responder accepts only later ones, and within a tick of the coarse clock there are none.
            seconds, nanoseconds = self._last_timestamp
            nanoseconds += _COARSE
            if nanoseconds >= _SECOND:
                seconds, nanoseconds = seconds + 1, 0
        self._last_timestamp = (seconds, nanoseconds)
        return tai64n(seconds, nanoseconds)
