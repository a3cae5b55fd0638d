"""Authenticated encryption as WireGuard uses it.

Lives here: ChaCha20-Poly1305 with counter nonces, XChaCha20-Poly1305 for cookie replies.
Does not live here: NaCl boxes (box.py), nonce bookkeeping (tunnel/keypairs.py).
Obeys: RFC 8439; draft-irtf-cfrg-xchacha-03.
"""

from __future__ import annotations

from struct import Struct

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from coder.mesh.core.errors import CryptoError

__all__ = ["NONCE", "TAG_SIZE", "ChaCha20Poly1305", "InvalidTag", "open_x", "open_zero", "seal_x", "seal_zero"]

# Poly1305's tag size; the tag follows the ciphertext, unlike in NaCl's boxes.
TAG_SIZE = 16
NONCE = Struct("<4xQ")
"""A 96-bit nonce: four zero bytes, then the 64-bit counter, little endian."""

_ZERO_NONCE = bytes(12)
_WORDS4 = Struct("<4I")
_WORDS16 = Struct("<16I")
# RFC 8439 section 2.3: the four constant words every ChaCha state begins with.
_SIGMA = _WORDS4.unpack(b"expand 32-byte k")
# ChaCha adds words of 32 bits; Python's integers do not wrap.
_M32 = 0xFFFFFFFF


def seal_zero(key: bytes, plaintext: bytes, associated: bytes) -> bytes:
    """Encrypt the single message of a one-time key (nonce 0), as handshakes do."""
    # A handshake key seals once, so its nonce may be the same each time (WireGuard paper, section 5.4).
    return ChaCha20Poly1305(key).encrypt(_ZERO_NONCE, plaintext, associated)


def open_zero(key: bytes, ciphertext: bytes, associated: bytes) -> bytes:
    """Undo `seal_zero`. Raises CryptoError when forged."""
    try:
        return ChaCha20Poly1305(key).decrypt(_ZERO_NONCE, ciphertext, associated)
    except InvalidTag as error:
        raise CryptoError("forged") from error


def seal_x(key: bytes, nonce: bytes, plaintext: bytes, associated: bytes) -> bytes:
    """Encrypt with XChaCha20-Poly1305 and a 24-byte nonce."""
    # Twenty-four random bytes practically never repeat; the first sixteen derive a key, the last eight are its nonce
    # (the draft's section 2.3).
    return ChaCha20Poly1305(_hchacha20(key, nonce[:16])).encrypt(bytes(4) + nonce[16:], plaintext, associated)


def open_x(key: bytes, nonce: bytes, ciphertext: bytes, associated: bytes) -> bytes:
    """Undo `seal_x`. Raises CryptoError when forged."""
    try:
        return ChaCha20Poly1305(_hchacha20(key, nonce[:16])).decrypt(bytes(4) + nonce[16:], ciphertext, associated)
    except InvalidTag as error:
        raise CryptoError("forged") from error


def _hchacha20(key: bytes, nonce: bytes) -> bytes:
    # The library offers no HChaCha20, but a ChaCha20 block is rounds(state) + state and HChaCha20 is the first and last
    # rows of rounds(state): encrypt one block of zeros and subtract the known words (draft section 2.2). Its nonce has
    # sixteen bytes, the block counter included: the size of HChaCha20's input.
    block = Cipher(ChaCha20(key, nonce), mode=None).encryptor().update(bytes(64))
    words = _WORDS16.unpack(block)
    first = [(a - b) & _M32 for a, b in zip(words[:4], _SIGMA, strict=True)]
    last = [(a - b) & _M32 for a, b in zip(words[12:], _WORDS4.unpack(nonce), strict=True)]
    return _WORDS4.pack(*first) + _WORDS4.pack(*last)
