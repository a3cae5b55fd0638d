"""The key agreement of WireGuard, field by field: Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s, both roles.

Lives here: the transcript (chain key and hash) and what each side adds to it.
Does not live here: message layout (wire/wireguard.py), mac1/mac2 (handshake_cookie.py), who may talk to whom (tunnel/).
Obeys: the WireGuard paper, sections 5.4.1-5.4.5; the Noise framework, pattern IKpsk2. Ephemeral keys and timestamps
are arguments, so every step can be checked against recorded transcripts.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2s

from coder.mesh.core.crypto.aead import open_zero, seal_zero
from coder.mesh.core.crypto.keys import PrivateKey, PublicKey

# WireGuard paper, section 5.4: both strings are hashed into everything that follows. Whoever has another one is
# understood by nobody.
CONSTRUCTION = b"Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s"
IDENTIFIER = b"WireGuard v1 zx2c4 Jason@zx2c4.com"
HASH_SIZE = 32
# The paper, section 5.4: without a preshared key its place is all zeros.
NO_PSK = bytes(32)

# BLAKE2s works on 64 bytes; a key is padded to that for HMAC, which the paper (section 5.4) builds all keys with.
_BLOCK = 64
_INNER = bytes(x ^ 0x36 for x in range(256))
_OUTER = bytes(x ^ 0x5C for x in range(256))


def hash32(data: bytes) -> bytes:
    """BLAKE2s-256."""
    return blake2s(data).digest()


def _hmac(key: bytes, data: bytes) -> bytes:
    # Written out: hmac.new costs 1.3 us and hmac.digest 1.6 us for BLAKE2s, this 0.8 us, and a handshake does 20.
    padded = key.ljust(_BLOCK, b"\0")
    inner = blake2s(padded.translate(_INNER) + data).digest()
    return blake2s(padded.translate(_OUTER) + inner).digest()


def kdf1(chain: bytes, data: bytes) -> bytes:
    """One derived key."""
    return _hmac(_hmac(chain, data), b"\x01")


def kdf2(chain: bytes, data: bytes) -> tuple[bytes, bytes]:
    """Two derived keys."""
    seed = _hmac(chain, data)
    first = _hmac(seed, b"\x01")
    # HKDF as the Noise framework has it in section 4.3: each output is keyed by the seed and fed with the one before.
    return first, _hmac(seed, first + b"\x02")


def kdf3(chain: bytes, data: bytes) -> tuple[bytes, bytes, bytes]:
    """Three derived keys."""
    seed = _hmac(chain, data)
    first = _hmac(seed, b"\x01")
    second = _hmac(seed, first + b"\x02")
    return first, second, _hmac(seed, second + b"\x03")


# Both are constants of the protocol (WireGuard paper, section 5.4), made once: a handshake begins behind them.
INITIAL_CHAIN = hash32(CONSTRUCTION)
INITIAL_HASH = hash32(INITIAL_CHAIN + IDENTIFIER)


def initial_hash(responder: PublicKey) -> bytes:
    """The transcript hash after "initiation 1": worth remembering per responder."""
    return hash32(INITIAL_HASH + responder)


@dataclass(frozen=True, slots=True)
class TransportKeys:
    """What both sides know when the handshake is done, seen from one of them."""

    send: bytes
    "Seals what we send."
    receive: bytes
    "Opens what we receive."


@dataclass(frozen=True, slots=True)
class Transcript:
    """Everything said so far."""

    chain: bytes
    # Secret: all keys are made from it, and it is made new with each agreement.
    "The chain key, 32 bytes."
    hash: bytes
    # Not secret: what it holds has travelled.
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
    """What the initiator keeps until the response comes."""

    transcript: Transcript
    ephemeral: PrivateKey


@dataclass(frozen=True, slots=True)
class Heard:
    """What a responder knows after the static key was opened and before the timestamp was."""

    transcript: Transcript
    key: bytes
    "Opens nothing yet: the chain key is still without the static-static agreement."
    remote: PublicKey
    "Who claims to speak; proven only by the timestamp."
    ephemeral: PublicKey


@dataclass(frozen=True, slots=True)
class Accepted:
    """What a responder knows after a genuine initiation."""

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
    # Every public field goes into the hash, which is the additional data of whatever is sealed next: a changed field
    # anywhere makes all that follows unreadable.
    transcript = hash32(initial_hash(remote) + public)
    chain, key = kdf2(chain, ephemeral.exchange(remote))
    # The only field that says who calls, and readable for nobody but the owner of the key that is called.
    static = seal_zero(key, local, transcript)
    transcript = hash32(transcript + static)
    # ss proves the initiator's static key in its first message already, so a responder may believe what it opens.
    chain, key = kdf2(chain, static_shared)
    stamp = seal_zero(key, timestamp, transcript)
    transcript = hash32(transcript + stamp)
    fields = InitiationFields(bytes(public), static, stamp)
    return fields, Initiated(Transcript(chain, transcript), ephemeral)


def read_initiation_untrusted(local: PrivateKey, ephemeral: bytes, static: bytes) -> Heard:
    """Open the sender's static key, so that the peer can be looked up; CryptoError when forged.

    This costs one X25519 (25 us): check mac1 first.
    """
    # A key the sender made for this handshake alone, so it tells nothing of who calls. That stands in `static`, sealed
    # with a key that is made of this one and ours.
    peer = PublicKey(ephemeral)
    chain = kdf1(INITIAL_CHAIN, ephemeral)
    transcript = hash32(initial_hash(local.public) + ephemeral)
    # `es`, from the responder's side: whoever has no private key of the two cannot follow from here on. `exchange`
    # refuses keys of low order, with which the shared secret is zeros whatever our key is, and known to everybody
    # (RFC 7748 section 6.1 leaves that check to the protocol).
    chain, key = kdf2(chain, local.exchange(peer))
    remote = PublicKey(open_zero(key, static, transcript))
    # The hash takes fields as they travelled, sealed: both sides have seen the same bytes of them.
    return Heard(Transcript(chain, hash32(transcript + static)), key, remote, peer)


def read_timestamp_untrusted(heard: Heard, static_shared: bytes, timestamp: bytes) -> tuple[bytes, Accepted]:
    """Open the 12-byte timestamp, which proves the sender's static key; CryptoError when forged."""
    chain, key = kdf2(heard.transcript.chain, static_shared)
    # The static key was opened with `es` alone, which anybody can make; only `ss` in this key shows that its owner
    # speaks.
    opened = open_zero(key, timestamp, heard.transcript.hash)
    transcript = Transcript(chain, hash32(heard.transcript.hash + timestamp))
    return opened, Accepted(transcript, heard.remote, heard.ephemeral)


def write_response(accepted: Accepted, ephemeral: PrivateKey, psk: bytes) -> tuple[bytes, TransportKeys]:
    """Answer: the encrypted nothing (16 bytes) to send beside our ephemeral public key, and the session's keys."""
    transcript = _mix_response(
        accepted.transcript,
        ephemeral.public,
        ephemeral.exchange(accepted.ephemeral),
        ephemeral.exchange(accepted.remote),
    )
    # 5.4.3: the preshared key is mixed in last. Ours is all zeros, which keeps the construction as it is.
    chain, tau, key = kdf3(transcript.chain, psk)
    empty = seal_zero(key, b"", hash32(transcript.hash + tau))
    # 5.4.5: the first key is the initiator's to send with, the second ours. Ephemeral keys and chain die with this
    # call.
    # Two keys, one for each direction, so that both sides may count from zero.
    theirs, ours = kdf2(chain, b"")
    return empty, TransportKeys(send=ours, receive=theirs)


def read_response_untrusted(
    initiated: Initiated, local: PrivateKey, ephemeral: bytes, empty: bytes, psk: bytes
) -> TransportKeys:
    """The session's keys when the response is genuine; CryptoError when forged."""
    transcript = _mix_response(
        initiated.transcript, ephemeral, initiated.ephemeral.exchange(ephemeral), local.exchange(ephemeral)
    )
    chain, tau, key = kdf3(transcript.chain, psk)
    # Nothing is sealed but nothing: the tag is the proof that the responder owns the static key we called.
    open_zero(key, empty, hash32(transcript.hash + tau))
    # 5.4.5 from the other side: the initiator sends with the first key.
    ours, theirs = kdf2(chain, b"")
    return TransportKeys(send=ours, receive=theirs)


# ee and se of the pattern: with both ephemeral keys in the chain, losing the static ones later opens nothing that was
# said.
def _mix_response(transcript: Transcript, ephemeral: bytes, ee: bytes, se: bytes) -> Transcript:
    chain = kdf1(transcript.chain, ephemeral)
    return Transcript(kdf1(kdf1(chain, ee), se), hash32(transcript.hash + ephemeral))
