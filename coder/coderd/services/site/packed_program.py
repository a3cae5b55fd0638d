"""The slim program inside a full program's file.

`build/packing.py` writes launcher, slim payload, the rest and a trailer. The slim program's file is the first two and a
trailer of its own. So a server in a single file serves a smaller program without a second copy on its disk.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

MAGIC = b"CODERPK2"
KEY_LENGTH = 32
TRAILER = struct.Struct(f"<QQ{KEY_LENGTH}s{KEY_LENGTH}s{len(MAGIC)}s")


@dataclass(frozen=True, slots=True)
class ProgramSlice:
    """The first bytes of a file, and the bytes to append."""

    size: int
    tail: bytes


@dataclass(frozen=True, slots=True)
class PackedLayout:
    """Layout of a file, as its trailer says."""

    is_slim: bool
    slim: ProgramSlice | None
    "Bytes of the slim program, cut from a full one."


def read_packed(path: Path, size: int) -> PackedLayout:
    """Read the trailer of a file of that size. A file packed by another build has no slim program. Raises OSError."""
    data = b""
    if size > TRAILER.size:
        with path.open("rb") as file:
            file.seek(size - TRAILER.size)
            data = file.read(TRAILER.size)
    if len(data) != TRAILER.size or not data.endswith(MAGIC):
        return PackedLayout(False, None)
    offset, end, slim_key, _, _ = TRAILER.unpack(data)
    if not offset < end <= size - TRAILER.size:
        return PackedLayout(end == 0, None)
    return PackedLayout(False, ProgramSlice(end, TRAILER.pack(offset, 0, b"\0" * KEY_LENGTH, slim_key, MAGIC)))
