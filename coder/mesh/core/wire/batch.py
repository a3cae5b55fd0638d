"""The transmit superbuffer: the stack writes packets, the tunnel seals them in place, one datagram batch sends them.

Lives here: the memory layout that all three share.
Does not live here: filling (stack/tcp/tcp_output.py), sealing (tunnel/) and sending (drivers/udp.py).

A slot is a WireGuard transport message: 16 bytes header, the plaintext padded to a multiple of 16 (never beyond the
MTU), 16 bytes tag. All slots of a batch but the last have the same size, as UDP_SEGMENT requires.
"""

from __future__ import annotations

from typing import NamedTuple

HEADER = 16
OVERHEAD = 32
MAX_SLOTS = 44
"""Ours: below the 64 segments old kernels take per call, and 44 x 1452 still is one UDP payload."""
MAX_BYTES = 65_487
"""The largest UDP payload over IPv6 jumbo-less packets that every kernel takes (65 535 - 40 - 8)."""
_KEPT_LAYOUTS = 16


class Layout:
    """Pre-sliced views for one plaintext size. Slicing per packet would cost 0.07 us twice, a tenth of the packet."""

    __slots__ = ("cipher", "plain", "size", "slots", "stride", "upto")

    def __init__(self, view: memoryview, size: int) -> None:
        self.size = size
        "Bytes of plaintext per slot, padding included."
        # Header, plaintext and tag are in wire order, so sealing writes each in place and moves nothing.
        stride = size + OVERHEAD
        self.stride = stride
        "Bytes from one slot to the next."
        # At least one: a relayed packet may be half a buffer (`RELAY_PACKET` in peers/path_actions.py).
        slots = max(1, min(MAX_SLOTS, MAX_BYTES // stride))
        self.slots = slots
        self.plain = [view[i * stride + HEADER : i * stride + HEADER + size] for i in range(slots)]
        self.cipher = [view[i * stride + HEADER : (i + 1) * stride] for i in range(slots)]
        self.upto = [view[: (i + 1) * stride] for i in range(slots)]


class TxBuf:
    """A superbuffer with slots pre-sliced per plaintext size.

    `buf` and `view` are the memory; `layout(size)` the slices. The content is only valid between an emit and the next.
    """

    __slots__ = ("_layouts", "buf", "mtu", "view")

    def __init__(self, mtu: int = 1280) -> None:
        self.mtu = mtu
        # One buffer for the life of a node: the kernel copies it within the call, so the next batch may overwrite it.
        # 64 KiB: the largest UDP payload is a few bytes less, whatever the slots.
        self.buf = bytearray(65_536)
        self.view = memoryview(self.buf)
        self._layouts: dict[int, Layout] = {}
        self.layout(mtu)

    def layout(self, size: int) -> Layout:
        """Return the slices for plaintexts of `size` bytes (already padded)."""
        layout = self._layouts.get(size)
        if layout is None:
            if len(self._layouts) >= _KEPT_LAYOUTS:
                # a handful of sizes is normal; a peer that changes its MSS must not grow our memory
                self._layouts.clear()
            layout = self._layouts[size] = Layout(self.view, size)
        return layout


class Batch(NamedTuple):
    """Result of an emit into a TxBuf."""

    destination: bytes
    "Overlay address, 16 bytes."
    packets: int
    "Number of packets, at least one."
    size: int
    "Padded plaintext bytes of every packet but the last: `txbuf.layout(size)` has their slices."
    last: int
    "Padded plaintext bytes of the last packet, at most `size`; its slot begins at `(packets - 1) * stride`."


# Padding hides exact lengths. Beyond the MTU it would make a packet that the path does not carry.
def padded(size: int, mtu: int) -> int:
    """Return `size` rounded up to a multiple of 16, but not beyond the MTU (WireGuard paper, 5.4.6)."""
    up = (size + 15) & ~15
    return up if up <= mtu else max(size, mtu)
