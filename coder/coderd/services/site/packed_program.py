"""The slim program inside a full program's file.

`build/packing.py` writes launcher, slim payload, the rest and a trailer; the slim program's file is the first two and a
trailer of its own. So a server that is one file hands out a smaller one without a second copy on its disk.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

MAGIC = b"CODERPK2"
KEY_LENGTH = 32
TRAILER = struct.Struct(f"<QQ{KEY_LENGTH}s{KEY_LENGTH}s{len(MAGIC)}s")


@dataclass(frozen=True, slots=True)
class Cut:
    """A file's first bytes and what comes after them."""

    size: int
    tail: bytes


@dataclass(frozen=True, slots=True)
class Packed:
    """What a file's end says."""

    is_slim: bool
    slim: Cut | None
    "How the slim program is made from a full one."


def read_packed(path: Path, size: int) -> Packed:
    """Of a file of that size; one not packed by us is neither slim nor has a slim one inside. Raises OSError."""
    data = b""
    if size > TRAILER.size:
        with path.open("rb") as file:
            file.seek(size - TRAILER.size)
            data = file.read(TRAILER.size)
    if len(data) != TRAILER.size or not data.endswith(MAGIC):
        return Packed(False, None)
    offset, end, slim_key, _, _ = TRAILER.unpack(data)
    if not offset < end <= size - TRAILER.size:
        return Packed(end == 0, None)
    return Packed(False, Cut(end, TRAILER.pack(offset, 0, b"\0" * KEY_LENGTH, slim_key, MAGIC)))
