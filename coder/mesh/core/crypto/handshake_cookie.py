"""mac1, mac2 and cookies: how a busy responder makes strangers prove where they are before it computes anything.

Lives here: the two MACs, the responder's rotating secret, the initiator's memory of a cookie.
Does not live here: deciding that we are under load, and the rate limit (tunnel/load.py).
Obeys: the WireGuard paper, sections 5.3, 5.4.4 and 5.4.7.
"""

from __future__ import annotations

from hashlib import blake2s
from hmac import compare_digest

from coder.mesh.core.crypto.aead import open_x, seal_x
from coder.mesh.core.crypto.keys import PublicKey, Random
from coder.mesh.core.errors import CryptoError

# Of mac1, of mac2, and of a cookie, which is a MAC as well (WireGuard paper, section 5.4.7).
MAC_SIZE = 16
# XChaCha20's, long enough to be drawn at random: all replies of one responder are sealed with one key.
COOKIE_NONCE_SIZE = 24
# WireGuard paper 5.4.7: the secret changes every two minutes, so no cookie is good for longer; both sides count for
# themselves.
COOKIE_LIFE = 120.0
"""Seconds a cookie, and the secret behind it, are good for."""
NO_MAC = bytes(MAC_SIZE)

# WireGuard paper, section 5.4: labels of eight bytes keep the two keys apart, which are made of the same public key.
_LABEL_MAC1 = b"mac1----"
_LABEL_COOKIE = b"cookie--"


def mac16(key: bytes, data: bytes) -> bytes:
    """Keyed BLAKE2s with a 16-byte result."""
    # BLAKE2's own keyed mode. HMAC is for the key derivation only (WireGuard paper, section 5.4).
    return blake2s(data, key=key, digest_size=MAC_SIZE).digest()


def mac1_key(receiver: PublicKey) -> bytes:
    """The key of mac1 in messages to this receiver: public knowledge, it only shows the sender knows whom it calls."""
    return blake2s(_LABEL_MAC1 + receiver).digest()


def cookie_key(responder: PublicKey) -> bytes:
    """The key this responder's cookie replies are encrypted with."""
    return blake2s(_LABEL_COOKIE + responder).digest()


class CookieMaker:
    """The responder's side: a secret that changes every 120 s, and cookies that depend on it and the source."""

    __slots__ = ("_born", "_key", "_random", "_secret")

    def __init__(self, local: PublicKey, random: Random) -> None:
        # Whoever knows our public key can make this one. What ties a reply to its message is mac1 beside it.
        self._key = cookie_key(local)
        self._random = random
        self._secret = b""
        self._born = 0.0

    def cookie(self, source: bytes, now: float) -> bytes:
        """What a sender at `source` (address and port bytes) must know to make a valid mac2."""
        # No secret is drawn before the first cookie, and a clock that ran backwards is a reason for a new one.
        if not self._secret or not 0 <= now - self._born < COOKIE_LIFE:
            self._secret = self._random(32)
            self._born = now
        # Nothing is kept for a source: it is the sender who remembers, and the secret that recognizes him (paper,
        # section 5.3).
        return mac16(self._secret, source)

    def is_mac2_valid(self, signed: bytes, mac2: bytes, source: bytes, now: float) -> bool:
        """Whether the message (up to mac2) was signed with this source's present cookie."""
        # In constant time: how many bytes were right must not be readable from the time a refusal takes.
        return compare_digest(mac16(self.cookie(source, now), signed), mac2)

    def seal_reply(self, mac1: bytes, source: bytes, now: float) -> tuple[bytes, bytes]:
        """(24-byte nonce, 32-byte encrypted cookie), tied to the mac1 of the message that is turned away."""
        nonce = self._random(COOKIE_NONCE_SIZE)
        # 5.4.7: sealed with mac1 as additional data: only who sent the message can tell a true reply from a forged one.
        return nonce, seal_x(self._key, nonce, self.cookie(source, now), mac1)


class CookieJar:
    """The initiator's side: the mac1 it sent last, and the cookie it got for it."""

    __slots__ = ("_born", "_cookie", "_key", "_mac1", "_mac1_key", "_remote")

    def __init__(self, remote: PublicKey) -> None:
        self._remote = remote
        self._mac1_key = mac1_key(remote)
        self._key = b""  # made with the first reply: most peers never send one
        self._mac1 = b""
        self._cookie = b""
        self._born = 0.0

    def sign(self, message: bytes, now: float) -> bytes:
        """The message with mac1, and mac2 when a fresh cookie is held; mac1 is remembered for the reply."""
        # 5.4.4: mac2 covers mac1, so a cookie proves the sender of just this message.
        self._mac1 = mac16(self._mac1_key, message)
        signed = message + self._mac1
        if self._cookie and 0 <= now - self._born < COOKIE_LIFE:
            return signed + mac16(self._cookie, signed)
        # 5.4.4: zeros stand for "no cookie". A responder without load does not look.
        return signed + NO_MAC

    def slept(self, seconds: float) -> None:
        """The caller's clock stood still for so long: the cookie is older than it looks."""
        # The responder's secret changed on time; an old cookie only earns another reply.
        self._born -= seconds

    def accept_reply_untrusted(self, nonce: bytes, sealed: bytes, now: float) -> None:
        """Keep the cookie of a reply to our last message; CryptoError when forged or nothing was sent."""
        # Whoever floods us with replies is stopped before any cryptography.
        if not self._mac1:
            raise CryptoError("no_message_sent", "a cookie reply to nothing")
        if not self._key:
            self._key = cookie_key(self._remote)
        # The next initiation comes with its retry, not now (paper, section 6.6): a cookie makes nobody speak.
        self._cookie = open_x(self._key, nonce, sealed, self._mac1)
        self._born = now
        # One reply per message: a second one would be a replay.
        self._mac1 = b""
