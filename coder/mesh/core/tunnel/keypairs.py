"""Session keys: sealing and opening transport datagrams, and the three generations per peer.

Lives here: the per-packet loops of the data plane, in both directions.
Does not live here: timers, statistics, handshakes (peer.py); memory layout of superbuffers (wire/batch.py).
Obeys: the WireGuard paper, sections 5.4.6 and 6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar, cast

from coder.mesh.core.crypto import batches
from coder.mesh.core.crypto.aead import NONCE, ChaCha20Poly1305, InvalidTag
from coder.mesh.core.crypto.noise import TransportKeys
from coder.mesh.core.tunnel.constants import (
    REJECT_AFTER_MESSAGES,
    REJECT_AFTER_TIME,
    REKEY_AFTER_MESSAGES,
    REKEY_AFTER_TIME,
)
from coder.mesh.core.tunnel.replay import ReplayWindow
from coder.mesh.core.wire.batch import TxBuf
from coder.mesh.core.wire.wireguard import TRANSPORT_HEADER, TRANSPORT_OVERHEAD, TYPE_TRANSPORT

if TYPE_CHECKING:
    from coder.mesh.core.crypto._batch_cipher import BatchCipher

_HEADER_SIZE = 16
_pack_header = TRANSPORT_HEADER.pack
_pack_header_into = TRANSPORT_HEADER.pack_into
_unpack_header_from = TRANSPORT_HEADER.unpack_from
_nonce = NONCE.pack
_VERSION_MASK = 0xF0
_VERSION_6 = 0x60
_VERSION_4 = 0x40
# The source of an IPv4 packet is compared as its mapped IPv6 address (RFC 4291 section 2.5.5.2): one list of allowed
# addresses serves both.
_MAPPED = bytes(10) + b"\xff\xff"
# Eight bytes of fixed header, sixteen of source address (RFC 8200 section 3).
_SOURCE_END = 24
_NO_HEAD = b"\0"  # no IPv6 packet begins with it
_Cipher = Callable[[bytes, bytes | memoryview, None], bytes]
_CipherInto = Callable[[bytes, memoryview, None, memoryview], int]


def _cannot_seal(*_: bytes | memoryview | None) -> NoReturn:
    raise AssertionError("a retired keypair cannot seal")


class KeyOwner:
    """Owner of keys, as the data plane sees it: the source addresses its packets may have (16 bytes)."""

    __slots__ = ("allowed",)

    def __init__(self) -> None:
        self.allowed: tuple[bytes, ...] = ()


Owner = TypeVar("Owner", bound=KeyOwner)


class Keypair(Generic[Owner]):
    """The keys of one handshake, seen from one side."""

    __slots__ = (
        "_decrypt",
        "_encrypt",
        "_encrypt_into",
        "_opener",
        "_sealer",
        "counter",
        "created",
        "forged",
        "is_initiator",
        "local_index",
        "remote_index",
        "replay",
        "tunnel",
    )

    def __init__(
        self,
        tunnel: Owner,
        keys: TransportKeys,
        local_index: int,
        remote_index: int,
        *,
        is_initiator: bool,
        now: float,
    ) -> None:
        self.tunnel = tunnel
        self._sealer: BatchCipher | None = None
        self._opener: BatchCipher | None = None
        self._encrypt: _Cipher = _cannot_seal
        self._encrypt_into: _CipherInto = _cannot_seal
        self._decrypt: _Cipher = _cannot_seal
        if batches.BATCH_CIPHER is not None:
            self._sealer = batches.BATCH_CIPHER(keys.send)
            self._opener = batches.BATCH_CIPHER(keys.receive)
        else:
            sealer = ChaCha20Poly1305(keys.send)
            # Bound once: three attribute lookups per packet are a tenth of our own share of its cost.
            self._encrypt = sealer.encrypt
            self._encrypt_into = sealer.encrypt_into
            self._decrypt = ChaCha20Poly1305(keys.receive).decrypt
        self.local_index = local_index
        self.remote_index = remote_index
        self.is_initiator = is_initiator
        # By the caller's clock; `slept` adds the time it did not count.
        self.created = now
        # Also the nonce (WireGuard paper, section 5.4.6): never set back, never shared.
        self.counter = 0
        "Counter of the next datagram to send."
        # One window per keypair: counters restart with the keys.
        self.replay = ReplayWindow()
        self.forged = 0
        "Datagrams that did not open, were replayed or too old."

    # Checked once per batch: no batch comes near the 2**13 counters which the limit keeps free.
    def is_usable(self, now: float) -> bool:
        """Return whether the keys may still seal and open."""
        # The same sum as first_expiry: a difference could round the other way and spin the timer.
        return now < self.created + REJECT_AFTER_TIME and self.counter < REJECT_AFTER_MESSAGES

    def needs_renewal(self, now: float) -> bool:
        """Return whether sending with the keys should start a new handshake."""
        # Paper, section 6.2: by age only the initiator renews, or both would begin at the same moment.
        return self.counter > REKEY_AFTER_MESSAGES or (self.is_initiator and now - self.created > REKEY_AFTER_TIME)

    def retire(self) -> None:
        """Retire keys whose successor is in use: they only open packets still in flight.

        The sealing half is a quarter of an idle peer's memory (2.4 KB of cipher state).
        """
        self._sealer = None
        self._encrypt = _cannot_seal
        self._encrypt_into = _cannot_seal

    def seal_one(self, packet: bytes, mtu: int) -> bytes:
        """Return a datagram. The plaintext is padded to a multiple of 16, but not beyond the MTU."""
        counter = self.counter
        self.counter = counter + 1
        size = len(packet)
        # Paper, section 5.4.6: zeros up to the next sixteen bytes hide exact lengths. The reader finds the end by the
        # IP header.
        pad = -size & 15
        if self._sealer is not None:
            # Never more than the MTU, unless the packet itself is.
            padded = size + pad if size + pad <= mtu else max(size, mtu)
            return self._sealer.seal_packet(packet, padded, self.remote_index, counter)
        if pad and size < mtu:
            packet += bytes(min(pad, mtu - size))
        sealed: bytes = self._encrypt(_nonce(counter), packet, None)
        return _pack_header(TYPE_TRANSPORT, self.remote_index, counter) + sealed

    def seal_into(self, txbuf: TxBuf, packets: int, size: int, last: int) -> int:
        """Seal the slots of a superbuffer in place; return total bytes.

        `size` and `last` are padded plaintext sizes.
        """
        if self._sealer is not None:
            total = self._sealer.seal(txbuf.buf, packets, size, last, self.remote_index, self.counter)
            self.counter += packets
            return total
        layout = txbuf.layout(size)
        stride = layout.stride
        buf = txbuf.buf
        encrypt = self._encrypt_into
        remote = self.remote_index
        counter = self.counter
        offset = 0
        full = packets if last == size else packets - 1
        # In place: the ciphertext replaces the plaintext, and the tag uses the space that the stride leaves behind it
        # (wire/batch.py).
        for plain, cipher in zip(layout.plain[:full], layout.cipher, strict=False):
            _pack_header_into(buf, offset, TYPE_TRANSPORT, remote, counter)
            encrypt(_nonce(counter), plain, None, cipher)
            counter += 1
            offset += stride
        if full != packets:
            _pack_header_into(buf, offset, TYPE_TRANSPORT, remote, counter)
            start = offset + _HEADER_SIZE
            view = txbuf.view
            encrypt(_nonce(counter), view[start : start + last], None, view[start : start + last + 16])
            counter += 1
            offset += last + TRANSPORT_OVERHEAD
        self.counter = counter
        return offset

    def open_run(
        self, view: memoryview, offset: int, total: int, segment: int, out: list[bytes]
    ) -> tuple[int, int, int]:
        """Open datagrams of `segment` bytes from `offset` on, as long as they are for these keys.

        Appends to `out` every plaintext from an allowed source address; padding is left at its end (the IP header has
        the length). Returns (offset of the first datagram for other keys, genuine datagrams, those of them that carried
        data). The datagram at `offset` must be addressed to these keys.
        """
        if self._opener is not None:
            return self._open_batches(self._opener, view, offset, total, segment, out)
        decrypt, index = self._decrypt, self.local_index
        replay = self.replay
        newest = replay.newest
        append = out.append
        head, genuine, data = _NO_HEAD, 0, 0
        # A GRO batch of the kernel: datagrams of one source end to end, equal in size but for the last.
        for at in range(offset, total, segment):
            end = at + segment
            if end > total:
                end = total
                # The last of a GRO batch may be shorter than all others, and then too short to be valid.
                if end - at < TRANSPORT_OVERHEAD:
                    offset = total
                    break
            kind, receiver, counter = _unpack_header_from(view, at)
            # Another session, or a handshake in between: the caller dispatches again from here.
            if receiver != index or kind != TYPE_TRANSPORT:
                offset = at
                break
            # WireGuard paper 5.4.6: the window is checked before opening, which is the cheap half, and updated after
            # it: a forged counter must not move it.
            if counter <= newest or counter >= REJECT_AFTER_MESSAGES:
                replay.newest = newest
                if counter >= REJECT_AFTER_MESSAGES or not replay.is_new(counter):
                    self.forged += 1
                    continue
            try:
                plain = decrypt(_nonce(counter), view[at + _HEADER_SIZE : end], None)
            # Only counted. A forged datagram among genuine ones must not stop the run, or an attacker could slow a
            # session down.
            except InvalidTag:
                self.forged += 1
                continue
            # The in-order case costs one addition; the window itself is updated only after a gap.
            if counter == newest + 1:
                newest = counter
            else:
                replay.newest = newest
                replay.accept(counter)
                newest = replay.newest
            # Counted before the source address is checked: the datagram was the peer's, whatever it contains.
            genuine += 1
            # Packets of one stream are equal up to the end of the source address: one comparison instead of two.
            if plain.startswith(head):
                data += 1
                append(plain)
            elif plain:
                data += 1
                version = plain[0] & _VERSION_MASK
                # WireGuard paper section 2 (cryptokey routing): a peer may use only its own addresses.
                if version == _VERSION_6:
                    if plain.startswith(self.tunnel.allowed, 8) and not plain.startswith(_MAPPED, 8):
                        head = plain[:_SOURCE_END]
                        append(plain)
                elif version == _VERSION_4 and _MAPPED + plain[12:16] in self.tunnel.allowed:
                    append(plain)
        else:
            offset = total
        replay.newest = newest
        return offset, genuine, data

    def _open_batches(
        self, opener: BatchCipher, view: memoryview, offset: int, total: int, segment: int, out: list[bytes]
    ) -> tuple[int, int, int]:
        """Do what `open_run` does, a batch per call of the cipher."""
        replay = self.replay
        genuine = data = 0
        while offset < total:
            # It stops at other keys, and at a counter that needs a look into the window.
            after, plaintexts, counters, alike = opener.open(
                view, offset, total, segment, self.local_index, replay.newest + 1
            )
            if not plaintexts:
                if after > offset:
                    offset = after
                    break
                kind, receiver, counter = _unpack_header_from(view, offset)
                if receiver != self.local_index or kind != TYPE_TRANSPORT:
                    break
                after = min(offset + segment, total)
                # Checked before opening, as in `open_run`.
                if counter >= REJECT_AFTER_MESSAGES or not replay.is_new(counter):
                    self.forged += 1
                    offset = after
                    continue
                _, plaintexts, counters, alike = opener.open(view, offset, after, segment, self.local_index, counter)
                counters = [counter]
            offset = after
            if counters is None:
                replay.newest += len(plaintexts)
                genuine += len(plaintexts)
                # The usual batch, packets of one stream: the first represents all.
                if alike and self._is_allowed(plaintexts[0]):
                    data += len(plaintexts)
                    out += cast("list[bytes]", plaintexts)
                    continue
            else:
                plaintexts = self._accepted(plaintexts, counters)
                genuine += len(plaintexts)
            for plain in plaintexts:
                if plain:
                    data += 1
                    if self._is_allowed(plain):
                        out.append(plain)
        return offset, genuine, data

    def _accepted(self, plaintexts: list[bytes | None], counters: list[int]) -> list[bytes | None]:
        """Return the genuine plaintexts whose counters the window accepts."""
        accepted: list[bytes | None] = []
        replay = self.replay
        for plain, counter in zip(plaintexts, counters, strict=True):
            # Once more, as a batch can have a datagram twice.
            if plain is None or not replay.is_new(counter):
                self.forged += 1
            else:
                replay.accept(counter)
                accepted.append(plain)
        return accepted

    def _is_allowed(self, plain: bytes | None) -> bool:
        """Return whether the peer may use the packet's source address (WireGuard paper, section 2)."""
        if not plain:
            return False
        version = plain[0] & _VERSION_MASK
        if version == _VERSION_6:
            # RFC 4291 section 2.5.5.2: a mapped address stands for IPv4 inside a node and is never on the wire. An
            # answer to such a packet, which may be larger than any of IPv4, could not be translated.
            return plain.startswith(self.tunnel.allowed, 8) and not plain.startswith(_MAPPED, 8)
        return version == _VERSION_4 and _MAPPED + plain[12:16] in self.tunnel.allowed


class Keypairs(Generic[Owner]):
    """The sessions of one peer: the current, the previous, and one the peer has yet to confirm."""

    __slots__ = ("current", "next", "previous")

    def __init__(self) -> None:
        self.previous: Keypair[Owner] | None = None
        self.current: Keypair[Owner] | None = None
        self.next: Keypair[Owner] | None = None

    def add_initiated(self, keypair: Keypair[Owner]) -> list[Keypair[Owner]]:
        """Use the keys of our answered handshake immediately. Returns discarded keypairs."""
        if self.next is not None:
            # A handshake of the peer overlaps with ours: the keys it may already send with stay readable.
            discarded = [self.previous, self.current]
            self.previous, self.next = self.next, None
        else:
            discarded = [self.previous]
            self.previous = self.current
        self.current = keypair
        if self.previous is not None:
            self.previous.retire()
        return [k for k in discarded if k is not None]

    def add_responded(self, keypair: Keypair[Owner]) -> list[Keypair[Owner]]:
        """Keep the keys of a handshake we answered until the peer uses them. Returns discarded keypairs."""
        # WireGuard paper 5.1: a responder must not send with new keys before it has received with them. Its response
        # may have been lost, and the initiator would not know them.
        discarded = [self.next, self.previous]
        # The kernel's order as well: with at most three pairs a flood of initiations uses no memory.
        self.next, self.previous = keypair, None
        return [k for k in discarded if k is not None]

    def confirm(self, keypair: Keypair[Owner]) -> list[Keypair[Owner]] | None:
        """Confirm keys by which a datagram opened: return None unless they were waiting for it, else discarded keys."""
        if keypair is not self.next:
            return None
        discarded = self.previous
        # The old keys still open: datagrams sealed with them may be in flight (WireGuard paper, section 6).
        self.previous, self.current, self.next = self.current, keypair, None
        if self.previous is not None:
            self.previous.retire()
        # Only one handshake back: a peer two behind has missed a renewal.
        return [discarded] if discarded is not None else []

    def clear(self) -> list[Keypair[Owner]]:
        """Discard all keys."""
        discarded = [self.previous, self.current, self.next]
        self.previous = self.current = self.next = None
        return [k for k in discarded if k is not None]

    def drop_expired(self, now: float) -> list[Keypair[Owner]]:
        """Discard expired keys: they are most of the memory of an idle peer."""
        discarded = []
        for name in ("previous", "current", "next"):
            keypair: Keypair[Owner] | None = getattr(self, name)
            # By age or by count (WireGuard paper, section 6.2): both end a key for good.
            if keypair is not None and not keypair.is_usable(now):
                discarded.append(keypair)
                setattr(self, name, None)
        return discarded

    def slept(self, seconds: float) -> None:
        """Age all keys by a time during which the caller's clock stood still."""
        for keypair in (self.previous, self.current, self.next):
            if keypair is not None:
                # 180 s of age mean 180 s of real time: a peer that was awake has discarded its half.
                keypair.created -= seconds

    def first_expiry(self) -> float | None:
        """Return when the oldest keys expire."""
        ages = [k.created for k in (self.previous, self.current, self.next) if k is not None]
        return min(ages) + REJECT_AFTER_TIME if ages else None
