"""mac1, mac2 and cookies: a busy responder makes strangers prove their address before any key agreement.

Lives here: the two MACs, the responder's rotating secret, the initiator's stored cookie.
Does not live here: the decision that we are under load, and the rate limit (tunnel/load.py).
Obeys: the WireGuard paper, sections 5.3, 5.4.4 and 5.4.7.
"""

from __future__ import annotations

from hashlib import blake2s
from hmac import compare_digest

from coder.mesh.core.crypto.aead import open_x, seal_x
from coder.mesh.core.crypto.keys import PublicKey, Random
from coder.mesh.core.errors import CryptoError

# Size of mac1, of mac2, and of a cookie, which is a MAC as well (WireGuard paper, section 5.4.7).
MAC_SIZE = 16
# Nonce size of XChaCha20, long enough to be random: one key seals all replies of a responder.
COOKIE_NONCE_SIZE = 24
# WireGuard paper 5.4.7: the secret changes every two minutes, so no cookie is valid for longer; each side counts for
# itself.
COOKIE_LIFE = 120.0
"""Seconds for which a cookie and its secret are valid."""
NO_MAC = bytes(MAC_SIZE)

# WireGuard paper, section 5.4: labels of eight bytes separate the two keys, which derive from the same public key.
_LABEL_MAC1 = b"mac1----"
_LABEL_COOKIE = b"cookie--"


def mac16(key: bytes, data: bytes) -> bytes:
    """Return keyed BLAKE2s with a 16-byte result."""
    # BLAKE2's own keyed mode. HMAC is for the key derivation only (WireGuard paper, section 5.4).
    return blake2s(data, key=key, digest_size=MAC_SIZE).digest()


def mac1_key(receiver: PublicKey) -> bytes:
    """Return the key of mac1 for this receiver: public, it only shows that the sender knows the receiver's key."""
    return blake2s(_LABEL_MAC1 + receiver).digest()


def cookie_key(responder: PublicKey) -> bytes:
    """Return the key that encrypts this responder's cookie replies."""
    return blake2s(_LABEL_COOKIE + responder).digest()


class CookieMaker:
    """The responder's side: a secret that changes every 120 s, and cookies that depend on it and the source."""

    __slots__ = ("_born", "_key", "_random", "_secret")

    def __init__(self, local: PublicKey, random: Random) -> None:
        # Anyone with our public key can derive this key. The mac1 in the reply's additional data ties it to its
        # message.
        self._key = cookie_key(local)
        self._random = random
        self._secret = b""
        self._born = 0.0

    def cookie(self, source: bytes, now: float) -> bytes:
        """Return the cookie that a sender at `source` (address and port bytes) needs for a valid mac2."""
        # No secret is drawn before the first cookie; a clock that ran backwards requires a new one.
        if not self._secret or not 0 <= now - self._born < COOKIE_LIFE:
            self._secret = self._random(32)
            self._born = now
        # No state per source: the sender remembers, and the secret verifies it (paper, section 5.3).
        return mac16(self._secret, source)

    def is_mac2_valid(self, signed: bytes, mac2: bytes, source: bytes, now: float) -> bool:
        """Return whether the message (up to mac2) was signed with this source's current cookie."""
        # In constant time: the time of a refusal must not reveal how many bytes were right.
        return compare_digest(mac16(self.cookie(source, now), signed), mac2)

    def seal_reply(self, mac1: bytes, source: bytes, now: float) -> tuple[bytes, bytes]:
        """Return (24-byte nonce, 32-byte encrypted cookie), tied to the mac1 of the refused message."""
        nonce = self._random(COOKIE_NONCE_SIZE)
        # 5.4.7: sealed with mac1 as additional data: only the message's sender can tell a genuine reply from a forged
        # one.
        return nonce, seal_x(self._key, nonce, self.cookie(source, now), mac1)


class CookieJar:
    """The initiator's side: the mac1 it sent last, and the cookie it received for it."""

    __slots__ = ("_born", "_cookie", "_key", "_mac1", "_mac1_key", "_remote")

    def __init__(self, remote: PublicKey) -> None:
        self._remote = remote
        self._mac1_key = mac1_key(remote)
        self._key = b""  # derived with the first reply: most peers never send one
        self._mac1 = b""
        self._cookie = b""
        self._born = 0.0

    def sign(self, message: bytes, now: float) -> bytes:
        """Return the message with mac1, and mac2 when a fresh cookie is held; mac1 is kept for the reply."""
        # 5.4.4: mac2 covers mac1, so a cookie authenticates the sender of this message only.
        self._mac1 = mac16(self._mac1_key, message)
        signed = message + self._mac1
        if self._cookie and 0 <= now - self._born < COOKIE_LIFE:
            return signed + mac16(self._cookie, signed)
        # 5.4.4: zeros stand for "no cookie". A responder without load does not check them.
        return signed + NO_MAC

    def slept(self, seconds: float) -> None:
        """Age the cookie by a time during which the caller's clock stood still."""
        # The responder's secret changed on time; an old cookie only causes another reply.
        self._born -= seconds

    def accept_reply_untrusted(self, nonce: bytes, sealed: bytes, now: float) -> None:
        """Keep the cookie of a reply to our last message. Raises CryptoError when forged or nothing was sent."""
        # A flood of replies is refused before any cryptography.
        if not self._mac1:
            raise CryptoError("no_message_sent", "an unexpected cookie reply")
        if not self._key:
            self._key = cookie_key(self._remote)
        # The next initiation comes with its retry, not now (paper, section 6.6): a cookie triggers no message.
        self._cookie = open_x(self._key, nonce, sealed, self._mac1)
        self._born = now
        # One reply per message: a second one would be a replay.
        self._mac1 = b""
