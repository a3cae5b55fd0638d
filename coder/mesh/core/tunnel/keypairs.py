"""Session keys: sealing and opening transport datagrams, and the three generations a peer may hold.

Lives here: the per-packet loops of the data plane, in both directions.
Does not live here: timers, statistics, handshakes (peer.py); memory layout of superbuffers (wire/batch.py).
Obeys: the WireGuard paper, sections 5.4.6 and 6.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

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

_HEADER_SIZE = 16
_pack_header = TRANSPORT_HEADER.pack
_pack_header_into = TRANSPORT_HEADER.pack_into
_unpack_header_from = TRANSPORT_HEADER.unpack_from
_nonce = NONCE.pack
_VERSION_MASK = 0xF0
_VERSION_6 = 0x60
_VERSION_4 = 0x40
# An IPv4 packet's source is compared as the IPv6 address it is mapped to (RFC 4291 section 2.5.5.2): one list of what a
# peer may bear serves both.
_MAPPED = bytes(10) + b"\xff\xff"
# Eight bytes of fixed header, sixteen of source address (RFC 8200 section 3).
_SOURCE_END = 24
_NO_HEAD = b"\0"  # no IPv6 packet begins with it


def _seal_nothing(*_: object, **__: object) -> Any:
    raise AssertionError("a retired keypair seals nothing")


class KeyOwner:
    """Whose keys they are, as far as the data plane cares: which source addresses its packets may bear (16 bytes)."""

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
        sealer = ChaCha20Poly1305(keys.send)
        # Bound once: three attribute look-ups per packet are a tenth of our own share of its cost.
        self._encrypt = sealer.encrypt
        self._encrypt_into = sealer.encrypt_into
        self._decrypt = ChaCha20Poly1305(keys.receive).decrypt
        self.local_index = local_index
        self.remote_index = remote_index
        self.is_initiator = is_initiator
        # By the caller's clock; `slept` makes up for what that did not count.
        self.created = now
        # Also the nonce (WireGuard paper, section 5.4.6): never set back, never shared.
        self.counter = 0
        "Of the next datagram sent."
        # For each pair of its own: counters begin anew with the keys.
        self.replay = ReplayWindow()
        self.forged = 0
        "Datagrams that did not open, were replayed or too old."

    # Asked once for all that is sent together: no batch comes near the 2**13 counters which the limit keeps free.
    def is_usable(self, now: float) -> bool:
        """Whether it may still seal and open."""
        # The same sum as first_expiry: a difference could round the other way and spin the timer.
        return now < self.created + REJECT_AFTER_TIME and self.counter < REJECT_AFTER_MESSAGES

    def wants_renewal(self, now: float) -> bool:
        """Whether sending with it should start a new handshake."""
        # Paper, section 6.2: by age only the initiator renews, or both would begin at the same moment.
        return self.counter > REKEY_AFTER_MESSAGES or (self.is_initiator and now - self.created > REKEY_AFTER_TIME)

    def retire(self) -> None:
        """Its successor is in use: it only opens what is still under way.

        The half that seals is a quarter of what an idle peer costs (2.4 KB of cipher state).
        """
        self._encrypt = _seal_nothing
        self._encrypt_into = _seal_nothing

    def seal_one(self, packet: bytes, mtu: int) -> bytes:
        """A datagram. The plaintext is padded to a multiple of 16, but not beyond the MTU."""
        counter = self.counter
        self.counter = counter + 1
        size = len(packet)
        # Paper, section 5.4.6: zeros up to the next sixteen bytes, so that lengths tell less. The reader finds the
        # end by the IP header.
        pad = -size & 15
        if pad and size < mtu:
            packet += bytes(min(pad, mtu - size))
        return _pack_header(TYPE_TRANSPORT, self.remote_index, counter) + self._encrypt(_nonce(counter), packet, None)

    def seal_into(self, txbuf: TxBuf, packets: int, size: int, last: int) -> int:
        """Seal the slots of a superbuffer in place; total bytes. `size` and `last` are padded plaintext sizes."""
        layout = txbuf.layout(size)
        stride = layout.stride
        buf = txbuf.buf
        encrypt = self._encrypt_into
        remote = self.remote_index
        counter = self.counter
        offset = 0
        full = packets if last == size else packets - 1
        # In place: the ciphertext takes the plaintext's room, and the tag what the stride leaves behind it
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

        Appends to `out` every plaintext from an allowed source address; padding is left at its end (the IP header
        says where the packet stops). Returns (offset of the first datagram not for us, genuine datagrams, those of
        them that carried data). The datagram at `offset` must be addressed to these keys.
        """
        decrypt = self._decrypt
        index = self.local_index
        replay = self.replay
        newest = replay.newest
        append = out.append
        head = _NO_HEAD
        genuine = data = 0
        # What the kernel put together (GRO): datagrams of one source end to end, equal in size but for the last.
        for at in range(offset, total, segment):
            end = at + segment
            if end > total:
                end = total
                # The last of a GRO batch may be shorter than all others, and then too short for anything.
                if end - at < TRANSPORT_OVERHEAD:
                    offset = total
                    break
            kind, receiver, counter = _unpack_header_from(view, at)
            # Another session's, or a handshake between: the caller looks anew from here.
            if receiver != index or kind != TYPE_TRANSPORT:
                offset = at
                break
            # WireGuard paper 5.4.6: the window is asked before opening, which is the cheap half, and told after it: a
            # forged counter must not move it.
            if counter <= newest or counter >= REJECT_AFTER_MESSAGES:
                replay.newest = newest
                if counter >= REJECT_AFTER_MESSAGES or not replay.is_new(counter):
                    self.forged += 1
                    continue
            try:
                plain = decrypt(_nonce(counter), view[at + _HEADER_SIZE : end], None)
            # Counted and nothing else. A forged datagram among genuine ones must not stop the run, or anybody could
            # slow a session down.
            except InvalidTag:
                self.forged += 1
                continue
            # The orderly case costs one addition; the window itself is touched only where something is missing.
            if counter == newest + 1:
                newest = counter
            else:
                replay.newest = newest
                replay.accept(counter)
                newest = replay.newest
            # Counted before the source address is looked at: the datagram was the peer's, whatever it put inside.
            genuine += 1
            # Packets of one stream begin alike, up to the end of the source address: one comparison instead of two.
            if plain.startswith(head):
                data += 1
                append(plain)
            elif plain:
                data += 1
                version = plain[0] & _VERSION_MASK
                # WireGuard paper section 2 (cryptokey routing): a peer may bear only the addresses that are its own.
                if version == _VERSION_6:
                    if plain.startswith(self.tunnel.allowed, 8):
                        head = plain[:_SOURCE_END]
                        append(plain)
                elif version == _VERSION_4 and _MAPPED + plain[12:16] in self.tunnel.allowed:
                    append(plain)
        else:
            offset = total
        replay.newest = newest
        return offset, genuine, data


class Keypairs(Generic[Owner]):
    """The sessions of one peer: the one in use, the one before it, and one the peer has yet to confirm."""

    __slots__ = ("current", "next", "previous")

    def __init__(self) -> None:
        self.previous: Keypair[Owner] | None = None
        self.current: Keypair[Owner] | None = None
        self.next: Keypair[Owner] | None = None

    def add_initiated(self, keypair: Keypair[Owner]) -> list[Keypair[Owner]]:
        """Our handshake was answered: use the keys at once. Returns keypairs that are no longer of use."""
        if self.next is not None:
            # A handshake of the peer's overlaps with ours: what it may already send with stays readable.
            gone = [self.previous, self.current]
            self.previous, self.next = self.next, None
        else:
            gone = [self.previous]
            self.previous = self.current
        self.current = keypair
        if self.previous is not None:
            self.previous.retire()
        return [k for k in gone if k is not None]

    def add_responded(self, keypair: Keypair[Owner]) -> list[Keypair[Owner]]:
        """We answered a handshake: wait until the peer uses the keys. Returns keypairs that are no longer of use."""
        # WireGuard paper 5.1: a responder must not send with new keys before it has heard with them, as its response
        # may have been lost; the initiator would not know them.
        gone = [self.next, self.previous]
        # The kernel's order as well: with three pairs at most a flood of initiations holds no memory.
        self.next, self.previous = keypair, None
        return [k for k in gone if k is not None]

    def confirm(self, keypair: Keypair[Owner]) -> list[Keypair[Owner]] | None:
        """A datagram opened with these keys: None unless they were waiting for it, else what is no longer of use."""
        if keypair is not self.next:
            return None
        gone = self.previous
        # The old keys go on opening: datagrams that were sealed with them may still be under way (WireGuard paper,
        # section 6).
        self.previous, self.current, self.next = self.current, keypair, None
        if self.previous is not None:
            self.previous.retire()
        # One handshake back and no further: who is two behind has missed a renewal.
        return [gone] if gone is not None else []

    def clear(self) -> list[Keypair[Owner]]:
        """Forget everything."""
        gone = [self.previous, self.current, self.next]
        self.previous = self.current = self.next = None
        return [k for k in gone if k is not None]

    def drop_expired(self, now: float) -> list[Keypair[Owner]]:
        """Forget keys that may no longer be used: they are most of what an idle peer costs."""
        gone = []
        for name in ("previous", "current", "next"):
            keypair: Keypair[Owner] | None = getattr(self, name)
            # By age or by count (WireGuard paper, section 6.2): both end a key for good.
            if keypair is not None and not keypair.is_usable(now):
                gone.append(keypair)
                setattr(self, name, None)
        return gone

    def slept(self, seconds: float) -> None:
        """The caller's clock stood still for so long: all keys are older than they look."""
        for keypair in (self.previous, self.current, self.next):
            if keypair is not None:
                # 180 s of age mean 180 s of the world's time: a peer that was awake has thrown its half away.
                keypair.created -= seconds

    def first_expiry(self) -> float | None:
        """When the oldest keys here become useless."""
        ages = [k.created for k in (self.previous, self.current, self.next) if k is not None]
        return min(ages) + REJECT_AFTER_TIME if ages else None
