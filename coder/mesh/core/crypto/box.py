"""NaCl's crypto_box, which seals disco messages and the DERP handshake.

Lives here: X25519 + HSalsa20 key agreement and XSalsa20-Poly1305, tag first.
Does not live here: packet layouts (wire/disco.py, wire/derp.py); nonces, which callers draw at random.
Obeys: "Cryptography in NaCl" (Bernstein 2009). Why PyNaCl: docs/decisions/nacl-box.md.
"""

from __future__ import annotations

from coder.mesh.core.crypto.keys import PrivateKey, PublicKey
from coder.mesh.core.errors import CryptoError

# 192 bits: random ones do not repeat, which is why there is no counter here (the purpose of XSalsa20).
NONCE_SIZE = 24
# Size of Poly1305's tag, which precedes the ciphertext on the wire.
OVERHEAD = 16
"""Bytes a box is longer than its plaintext."""


class SharedBox:
    """A box between two keys with the agreement (27 us) done once; both ends derive the same one."""

    __slots__ = ("_key",)

    def __init__(self, private: PrivateKey, peer: PublicKey) -> None:
        # Imported late: only nodes that communicate need libsodium, and `coder version` must not pay its 3 ms.
        from nacl.bindings import crypto_box_beforenm
        from nacl.exceptions import CryptoError as SodiumError

        try:
            self._key = crypto_box_beforenm(bytes(peer), private.reveal())
        # A point of low order: the shared key would be the same for all (RFC 7748 section 6.1).
        except (SodiumError, RuntimeError) as error:
            raise CryptoError("low_order_point", "the peer's public key is unusable") from error

    def seal(self, nonce: bytes, plaintext: bytes) -> bytes:
        """Return tag and ciphertext. The 24-byte nonce must never repeat between these two keys."""
        from nacl.bindings import crypto_box_easy_afternm

        # `easy`: tag first, without the zero bytes around both texts of NaCl's original interface.
        return crypto_box_easy_afternm(plaintext, nonce, self._key)

    def open_untrusted(self, nonce: bytes, box: bytes) -> bytes:
        """Return the plaintext. Raises CryptoError when too short or forged."""
        from nacl.bindings import crypto_box_open_easy_afternm
        from nacl.exceptions import CryptoError as SodiumError

        # Checked here, as the binding reports wrong lengths with its own errors.
        if len(box) < OVERHEAD or len(nonce) != NONCE_SIZE:
            raise CryptoError("short_box")
        try:
            return crypto_box_open_easy_afternm(box, nonce, self._key)
        except SodiumError as error:
            raise CryptoError("forged") from error


def seal(private: PrivateKey, peer: PublicKey, nonce: bytes, plaintext: bytes) -> bytes:
    """Seal one message between two keys that will not be used again; see SharedBox for many."""
    # The agreement is most of the cost: a caller with further messages keeps the box.
    return SharedBox(private, peer).seal(nonce, plaintext)


def open_untrusted(private: PrivateKey, peer: PublicKey, nonce: bytes, box: bytes) -> bytes:
    """Return the plaintext of one message. Raises CryptoError when forged or the peer's key is unusable."""
    return SharedBox(private, peer).open_untrusted(nonce, box)
