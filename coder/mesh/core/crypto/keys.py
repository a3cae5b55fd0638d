"""Curve25519 keys as values, with the text and binary forms of the protocols.

Lives here: key pairs, Diffie-Hellman, `nodekey:`/`discokey:` texts, the 34-byte "np" form.
Does not live here: the use of a key; key storage.
Obeys: RFC 7748 (X25519); text forms as recorded in the wire vectors (keys.json). Why libsodium:
docs/decisions/nacl-box.md.
"""

from __future__ import annotations

from collections.abc import Callable

from coder.mesh.core.errors import CryptoError

Random = Callable[[int], bytes]
"""A source of the requested number of unpredictable bytes (os.urandom in production, seeded in tests)."""

KEY_SIZE = 32
NODE_PREFIX = "nodekey:"
DISCO_PREFIX = "discokey:"
MACHINE_PREFIX = "mkey:"
PRIVATE_PREFIX = "privkey:"
_BINARY_NODE = b"np"


_Multiply = Callable[[bytes, bytes], bytes]
_multiply: _Multiply | None = None
_multiply_base: Callable[[bytes], bytes] | None = None


def _load() -> tuple[_Multiply, Callable[[bytes], bytes]]:
    """Load X25519 of libsodium with the first key: `coder version` must not pay its 3 ms."""
    global _multiply, _multiply_base
    if _multiply is None or _multiply_base is None:
        from nacl.bindings import crypto_scalarmult, crypto_scalarmult_base

        _multiply, _multiply_base = crypto_scalarmult, crypto_scalarmult_base
    return _multiply, _multiply_base


class PublicKey(bytes):
    """A peer's key, 32 bytes.

    As it is a `bytes`, a raw slice of a frame finds the same dictionary entry without a copy.
    """

    __slots__ = ()

    def __new__(cls, raw: bytes) -> PublicKey:
        if len(raw) != KEY_SIZE:
            raise CryptoError("bad_key_length", "a public key has 32 bytes")
        return super().__new__(cls, raw)

    @classmethod
    def from_text(cls, text: str) -> PublicKey:
        """Accept any prefixed (`nodekey:` …) or bare form of 64 hex digits. Raises CryptoError otherwise."""
        return cls(_unhex(text, (NODE_PREFIX, DISCO_PREFIX, MACHINE_PREFIX, "")))

    @classmethod
    def from_disco_text(cls, text: str) -> PublicKey:
        """Accept `discokey:<64 hex>`. Raises CryptoError otherwise."""
        return cls(_unhex(text, (DISCO_PREFIX,)))

    @classmethod
    def from_binary_untrusted(cls, binary: bytes) -> PublicKey:
        """Accept the 34-byte form of coordination messages: "np" and the key. Raises CryptoError otherwise."""
        if len(binary) != 2 + KEY_SIZE or not binary.startswith(_BINARY_NODE):
            raise CryptoError("bad_binary_key", "a binary node key is 'np' and 32 bytes")
        return cls(binary[2:])

    @property
    def binary(self) -> bytes:
        """The 34-byte "np" form."""
        return _BINARY_NODE + self

    @property
    def node_text(self) -> str:
        """`nodekey:` and hex."""
        return NODE_PREFIX + self.hex()

    @property
    def disco_text(self) -> str:
        """`discokey:` and hex."""
        return DISCO_PREFIX + self.hex()

    @property
    def machine_text(self) -> str:
        """`mkey:` and hex."""
        return MACHINE_PREFIX + self.hex()

    @property
    def is_zero(self) -> bool:
        """Whether the key is absent (all zero), as in a disco ping without a node key."""
        return not any(self)

    @property
    def short(self) -> str:
        """`[abcde]`: the first five base64 characters, enough for people reading logs."""
        from base64 import b64encode

        return f"[{b64encode(self[:4]).decode()[:5]}]"

    @property
    def disco_short(self) -> str:
        """`d:` and the first 16 hex digits."""
        return "d:" + self[:8].hex()

    def __repr__(self) -> str:
        return f"PublicKey({self.short})"

    __str__ = __repr__


class PrivateKey:
    """A Curve25519 secret. Never shown by repr; `reveal()` returns the bytes."""

    __slots__ = ("_raw", "public")

    public: PublicKey
    """The public key."""

    def __init__(self, raw: bytes) -> None:
        if len(raw) != KEY_SIZE:
            raise CryptoError("bad_key_length", "a private key has 32 bytes")
        self._raw = bytes(raw)
        # 19 us; OpenSSL, which creates a key object on the way, needs 34.
        self.public = PublicKey((_multiply_base or _load()[1])(self._raw))

    @classmethod
    def generate(cls, random: Random) -> PrivateKey:
        """Return a fresh key from 32 random bytes, clamped as in RFC 7748 section 5."""
        raw = bytearray(random(KEY_SIZE))
        # RFC 7748 section 5: a multiple of the cofactor, so that a point of low order cannot reveal bits of the key,
        # and the highest bit set, so that each multiplication takes equally many steps. libsodium does so again; the
        # stored key is to look the same everywhere.
        raw[0] &= 248
        raw[31] = raw[31] & 127 | 64
        return cls(bytes(raw))

    @classmethod
    def from_text(cls, text: str) -> PrivateKey:
        """Accept `privkey:<64 hex>` or bare hex. Raises CryptoError otherwise."""
        return cls(_unhex(text, (PRIVATE_PREFIX, "")))

    def reveal(self) -> bytes:
        """Return the 32 secret bytes."""
        return self._raw

    @property
    def text(self) -> str:
        """`privkey:` and hex: as secret as the key."""
        return PRIVATE_PREFIX + self._raw.hex()

    def exchange(self, peer: bytes) -> bytes:
        """Return the X25519 shared secret.

        Raises CryptoError for a peer's point of low order (the result would be zero).
        """
        try:
            return (_multiply or _load()[0])(self._raw, peer)
        except (RuntimeError, ValueError) as error:
            raise CryptoError("low_order_point", "the peer's public key is unusable") from error

    def __eq__(self, other: object) -> bool:
        # Compared with keys we hold ourselves, never with a stranger's guess: constant time is not needed.
        return isinstance(other, PrivateKey) and other._raw == self._raw

    def __hash__(self) -> int:
        return hash(self._raw)

    def __repr__(self) -> str:
        return f"PrivateKey(of {self.public.short})"


def _unhex(text: str, prefixes: tuple[str, ...]) -> bytes:
    # The empty prefix, where it is allowed, comes last and matches everything.
    for prefix in prefixes:
        if text.startswith(prefix):
            digits = text[len(prefix) :]
            break
    else:
        raise CryptoError("bad_key_prefix", f"a key text starts with {prefixes[0]!r}")
    # bytes.fromhex skips blanks, hence the length check on the digits themselves
    if len(digits) != 2 * KEY_SIZE:
        raise CryptoError("bad_key_length", "a key text has 64 hex digits")
    try:
        raw = bytes.fromhex(digits)
    except ValueError as error:
        raise CryptoError("bad_key_digits", "a key text has 64 hex digits") from error
    if len(raw) != KEY_SIZE:
        raise CryptoError("bad_key_digits", "a key text has 64 hex digits")
    return raw
