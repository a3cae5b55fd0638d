"""The key agreement of WireGuard: Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s, both roles.

Lives here: the transcript (chain key and hash) and what each side adds to it.
Does not live here: message layout (wire/wireguard.py), mac1/mac2 (handshake_cookie.py), the choice of peers (tunnel/).
Obeys: the WireGuard paper, sections 5.4.1-5.4.5; the Noise framework, pattern IKpsk2. Ephemeral keys and timestamps are
arguments, so every step can be checked against recorded transcripts.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2s

from coder.mesh.core.crypto.aead import open_zero, seal_zero
from coder.mesh.core.crypto.keys import PrivateKey, PublicKey

# WireGuard paper, section 5.4: both strings are hashed into everything that follows. Peers with different strings
# cannot communicate.
CONSTRUCTION = b"Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s"
IDENTIFIER = b"WireGuard v1 zx2c4 Jason@zx2c4.com"
HASH_SIZE = 32
# The paper, section 5.4: without a preshared key all zeros take its place.
NO_PSK = bytes(32)

# BLAKE2s works on 64 bytes; HMAC pads a key to that, and the paper (section 5.4) derives all keys with it.
_BLOCK = 64
_INNER = bytes(x ^ 0x36 for x in range(256))
_OUTER = bytes(x ^ 0x5C for x in range(256))


def hash32(data: bytes) -> bytes:
    """Return BLAKE2s-256."""
    return blake2s(data).digest()


def _hmac(key: bytes, data: bytes) -> bytes:
    # Written out: hmac.new costs 1.3 us and hmac.digest 1.6 us for BLAKE2s, this 0.8 us, and a handshake does 20.
    padded = key.ljust(_BLOCK, b"\0")
    inner = blake2s(padded.translate(_INNER) + data).digest()
    return blake2s(padded.translate(_OUTER) + inner).digest()


def kdf1(chain: bytes, data: bytes) -> bytes:
    """Derive one key."""
    return _hmac(_hmac(chain, data), b"\x01")


def kdf2(chain: bytes, data: bytes) -> tuple[bytes, bytes]:
    """Derive two keys."""
    seed = _hmac(chain, data)
    first = _hmac(seed, b"\x01")
    # HKDF as in section 4.3 of the Noise framework: each output is keyed by the seed and contains the one before.
    return first, _hmac(seed, first + b"\x02")


def kdf3(chain: bytes, data: bytes) -> tuple[bytes, bytes, bytes]:
    """Derive three keys."""
    seed = _hmac(chain, data)
    first = _hmac(seed, b"\x01")
    second = _hmac(seed, first + b"\x02")
    return first, second, _hmac(seed, second + b"\x03")


# Both are constants of the protocol (WireGuard paper, section 5.4), computed once: a handshake starts from them.
INITIAL_CHAIN = hash32(CONSTRUCTION)
INITIAL_HASH = hash32(INITIAL_CHAIN + IDENTIFIER)


def initial_hash(responder: PublicKey) -> bytes:
    """Return the transcript hash after "initiation 1": worth caching per responder."""
    return hash32(INITIAL_HASH + responder)


@dataclass(frozen=True, slots=True)
class TransportKeys:
    """The keys of both directions, seen from one side."""

    send: bytes
    "Seals what we send."
    receive: bytes
    "Opens what we receive."


@dataclass(frozen=True, slots=True)
class Transcript:
    """State of the transcript."""

    chain: bytes
    # Secret: all keys derive from it, and each agreement changes it.
    "The chain key, 32 bytes."
    hash: bytes
    # Not secret: its input was public.
    "The hash of all public fields, 32 bytes."


@dataclass(frozen=True, slots=True)
class InitiationFields:
    """The secret-bearing fields of an initiation."""

    ephemeral: bytes
    "The initiator's ephemeral public key, 32 bytes."
    static: bytes
    "The initiator's static public key, encrypted, 48 bytes."
    timestamp: bytes
    "A TAI64N timestamp, encrypted, 28 bytes."


@dataclass(frozen=True, slots=True)
class Initiated:
    """State of the initiator until the response comes."""

    transcript: Transcript
    ephemeral: PrivateKey


@dataclass(frozen=True, slots=True)
class OpenedInitiation:
    """State of a responder after the static key was opened and before the timestamp was."""

    transcript: Transcript
    key: bytes
    "Decrypts nothing yet: the chain key is still without the static-static agreement."
    remote: PublicKey
    "The claimed sender; only the timestamp proves it."
    ephemeral: PublicKey


@dataclass(frozen=True, slots=True)
class Accepted:
    """State of a responder after a genuine initiation."""

    transcript: Transcript
    remote: PublicKey
    ephemeral: PublicKey


def write_initiation(
    local: PublicKey, remote: PublicKey, static_shared: bytes, ephemeral: PrivateKey, timestamp: bytes
) -> tuple[InitiationFields, Initiated]:
    """Start a handshake. `static_shared` is DH(local static, remote static), computed once per peer."""
    # WireGuard paper 5.4.2, in its order: e, es, s, ss, then the timestamp.
    public = ephemeral.public
    chain = kdf1(INITIAL_CHAIN, public)
    # Every public field goes into the hash, which is the additional data of the next sealed field: a changed field
    # makes all that follows unreadable.
    transcript = hash32(initial_hash(remote) + public)
    chain, key = kdf2(chain, ephemeral.exchange(remote))
    # The only field that identifies the caller; only the owner of the called key can read it.
    static = seal_zero(key, local, transcript)
    transcript = hash32(transcript + static)
    # ss proves the initiator's static key in its first message already, so a responder may trust what it opens.
    chain, key = kdf2(chain, static_shared)
    stamp = seal_zero(key, timestamp, transcript)
    transcript = hash32(transcript + stamp)
    fields = InitiationFields(bytes(public), static, stamp)
    return fields, Initiated(Transcript(chain, transcript), ephemeral)


def read_initiation_untrusted(local: PrivateKey, ephemeral: bytes, static: bytes) -> OpenedInitiation:
    """Open the sender's static key, so that the peer can be looked up. Raises CryptoError when forged.

    This costs one X25519 (25 us): check mac1 first.
    """
    # A key for this handshake alone, so it does not identify the caller. `static` does, sealed with a key derived from
    # this one and ours.
    peer = PublicKey(ephemeral)
    chain = kdf1(INITIAL_CHAIN, ephemeral)
    transcript = hash32(initial_hash(local.public) + ephemeral)
    # `es`, from the responder's side: without one of the two private keys nothing can be read from here on. `exchange`
    # refuses keys of low order, with which the shared secret is zeros whatever our key is, and publicly known (RFC 7748
    # section 6.1 leaves that check to the protocol).
    chain, key = kdf2(chain, local.exchange(peer))
    remote = PublicKey(open_zero(key, static, transcript))
    # The hash takes fields as transmitted, sealed: both sides have the same bytes of them.
    return OpenedInitiation(Transcript(chain, hash32(transcript + static)), key, remote, peer)


def read_timestamp_untrusted(heard: OpenedInitiation, static_shared: bytes, timestamp: bytes) -> tuple[bytes, Accepted]:
    """Open the 12-byte timestamp, which proves the sender's static key. Raises CryptoError when forged."""
    chain, key = kdf2(heard.transcript.chain, static_shared)
    # The static key was opened with `es` alone, which any sender can compute; only `ss` in this key shows that its
    # owner sent it.
    opened = open_zero(key, timestamp, heard.transcript.hash)
    transcript = Transcript(chain, hash32(heard.transcript.hash + timestamp))
    return opened, Accepted(transcript, heard.remote, heard.ephemeral)


def write_response(accepted: Accepted, ephemeral: PrivateKey, psk: bytes) -> tuple[bytes, TransportKeys]:
    """Return the response: the encrypted empty text (16 bytes), our ephemeral key with it, and the session's keys."""
    transcript = _mix_response(
        accepted.transcript,
        ephemeral.public,
        ephemeral.exchange(accepted.ephemeral),
        ephemeral.exchange(accepted.remote),
    )
    # 5.4.3: the preshared key is mixed in last. Ours is all zeros, which keeps the construction unchanged.
    chain, tau, key = kdf3(transcript.chain, psk)
    empty = seal_zero(key, b"", hash32(transcript.hash + tau))
    # 5.4.5: the initiator sends with the first key, we with the second. Ephemeral keys and chain are discarded with
    # this call. Two keys, one for each direction, so that both sides may count from zero.
    receive_key, send_key = kdf2(chain, b"")
    return empty, TransportKeys(send=send_key, receive=receive_key)


def read_response_untrusted(
    initiated: Initiated, local: PrivateKey, ephemeral: bytes, empty: bytes, psk: bytes
) -> TransportKeys:
    """Return the session's keys when the response is genuine. Raises CryptoError when forged."""
    transcript = _mix_response(
        initiated.transcript, ephemeral, initiated.ephemeral.exchange(ephemeral), local.exchange(ephemeral)
    )
    chain, tau, key = kdf3(transcript.chain, psk)
    # An empty text is sealed: the tag proves that the responder owns the static key we called.
    open_zero(key, empty, hash32(transcript.hash + tau))
    # 5.4.5 from the other side: the initiator sends with the first key.
    send_key, receive_key = kdf2(chain, b"")
    return TransportKeys(send=send_key, receive=receive_key)


# ee and se of the pattern: with both ephemeral keys in the chain, losing the static ones later reveals no past session.
def _mix_response(transcript: Transcript, ephemeral: bytes, ee: bytes, se: bytes) -> Transcript:
    chain = kdf1(transcript.chain, ephemeral)
    return Transcript(kdf1(kdf1(chain, ee), se), hash32(transcript.hash + ephemeral))
