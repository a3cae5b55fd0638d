"""A sign of overload for clients: whether this server closed or refused connections lately because it had no room.

A client whose upgrade was not answered cannot tell a middlebox that strips upgrades from a server that sheds load, and
what gets past the first is dear for the second (`coder/net/carried_stream.py`). `/latency-check`, which is always
cheap, tells it by the header `Coder-Overloaded`. An address with too many connections gets the sign alone: no client
sets it for others. The processes of one server share it.
"""

from __future__ import annotations

import math
import mmap
import struct
import time
import zlib

from coder.appproxy.http.client_address import network_of
from coder.net.carried_stream import OVERLOADED

SHED_FOR = 30.0
"""Seconds (ours) that the sign remains. Refused agents come back within a minute, and are refused again."""
_SLOTS = 1024
"""Times that are kept: the first one of refusals for want of room altogether, the others of those of an address, by a
checksum: addresses that have the same get each other's sign."""
_TIME = struct.Struct("<d")
HEADER = (OVERLOADED, "1")


class OverloadSign:
    """Times of the last refusals, in anonymous shared memory. Create it before forking."""

    __slots__ = ("_memory",)

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _SLOTS * _TIME.size)
        self._memory[:] = _TIME.pack(-math.inf) * _SLOTS

    def set(self, address: str = "") -> None:
        """Record that a connection was closed or refused for want of room: of one address, or altogether."""
        _TIME.pack_into(self._memory, _slot_of(address), time.monotonic())

    def is_set(self, address: str) -> bool:
        """Return whether that happened to this address within the last SHED_FOR seconds."""
        times: list[float] = [_TIME.unpack_from(self._memory, at)[0] for at in (0, _slot_of(address))]
        return 0 <= time.monotonic() - max(times) < SHED_FOR


def _slot_of(address: str) -> int:
    if not address:
        return 0
    return (1 + zlib.crc32(network_of(address).encode()) % (_SLOTS - 1)) * _TIME.size
