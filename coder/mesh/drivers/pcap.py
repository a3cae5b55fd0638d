"""Capture file of inner packets, in libpcap format.

Lives here: the file format. The tap of `core/endpoint.py` sees the packets; both directions come in the order in which
the node processed them. Not here: outer datagrams (they are encrypted; a capture of the interface shows them). Format:
libpcap 2.4, big endian, link type RAW (101): each record is one IPv6 packet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import BinaryIO

MAGIC = 0xA1B2C3D4
LINKTYPE_RAW = 101
SNAP_LENGTH = 65_535
_HEADER = Struct("!IHHiIII")
_RECORD = Struct("!IIII")
_IP_HEADER = 40
_VERSION_6 = 6


class PcapWriter:
    """A tap (`NodeConfig.tap`) that writes every packet to `out`. `wall` gives Unix time in seconds."""

    def __init__(self, out: BinaryIO, wall: Callable[[], float]) -> None:
        self._out = out
        self._wall = wall
        out.write(_HEADER.pack(MAGIC, 2, 4, 0, 0, SNAP_LENGTH, LINKTYPE_RAW))

    def __call__(self, packets: Sequence[bytes], outbound: bool) -> None:
        seconds = self._wall()
        whole = int(seconds)
        micros = int((seconds - whole) * 1_000_000)
        self._out.writelines(
            _RECORD.pack(whole, micros, len(packet), len(packet)) + packet for packet in map(_unpadded, packets)
        )


def _unpadded(packet: bytes) -> bytes:
    """Remove the tunnel's padding: analysers call it trailing garbage."""
    if len(packet) < _IP_HEADER or packet[0] >> 4 != _VERSION_6:
        return packet
    return packet[: _IP_HEADER + (packet[4] << 8 | packet[5])]
