"""A sign of overload for clients: whether this server closed or refused connections lately because it had no room.

A client whose upgrade was not answered cannot tell a middlebox that strips upgrades from a server that sheds load, and
what gets past the first is dear for the second (`coder/net/carried_stream.py`). `/latency-check`, which is always
cheap, tells it by the header `Coder-Overloaded`. The processes of one server share the sign.
"""

from __future__ import annotations

import math
import mmap
import struct
import time

from coder.net.carried_stream import OVERLOADED

SHED_FOR = 30.0
"""Seconds (ours) that the sign remains. Refused agents come back within a minute, and are refused again."""
_TIME = struct.Struct("<d")
HEADER = (OVERLOADED, "1")


class OverloadSign:
    """The time of the last refusal, in anonymous shared memory. Create it before forking."""

    __slots__ = ("_memory",)

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _TIME.size)
        _TIME.pack_into(self._memory, 0, -math.inf)

    def set(self) -> None:
        """Record that a connection was closed or refused for want of room."""
        _TIME.pack_into(self._memory, 0, time.monotonic())

    @property
    def is_set(self) -> bool:
        """Return whether that happened within the last SHED_FOR seconds."""
        last: float = _TIME.unpack_from(self._memory, 0)[0]
        return time.monotonic() - last < SHED_FOR
