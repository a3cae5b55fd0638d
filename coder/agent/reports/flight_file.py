"""File that preserves a flight recorder across processes: two slots of fixed size, written alternately.

A slot is a checksum, a sequence number, a length and JSON. The space is allocated at creation, so a disk that fills up
later loses nothing, and a crash in the middle of a write leaves the other slot.
"""

from __future__ import annotations

import errno
import json
import os
import struct
import zlib
from pathlib import Path

from coder.agent.disk import OpenDescriptor
from coder.base.atomic_file import BINARY
from coder.base.json_types import JsonObject, as_list
from coder.base.private_files import open_private

SLOT_SIZE = 32 << 10
_HEADER = struct.Struct(">IQI")


class FlightFile(OpenDescriptor):
    """Open record, created by `open_file`; all methods may raise OSError and block for a moment."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        self._number = 0

    @classmethod
    def open_file(cls, path: Path) -> FlightFile:
        """Open the file; create it (0600, its folders 0700) when missing. Raises OSError."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = open_private(path, os.O_RDWR | os.O_CREAT | BINARY)
        try:
            if os.fstat(descriptor).st_size < 2 * SLOT_SIZE:
                _put(descriptor, bytes(2 * SLOT_SIZE), 0)
        except OSError:
            os.close(descriptor)
            raise
        return cls(descriptor)

    def read(self) -> JsonObject:
        """Return the newest document; empty when neither slot is readable."""
        newest: tuple[int, JsonObject] = (0, {})
        for slot in (0, 1):
            decoded = _slot_untrusted(_get(self.descriptor, slot * SLOT_SIZE))
            if decoded is not None and decoded[0] > newest[0]:
                newest = decoded
        self._number = newest[0]
        return newest[1]

    def write(self, document: JsonObject) -> None:
        """Write the document; the oldest of `document["events"]` are dropped until it has room."""
        events = list(as_list(document.get("events")))
        body = _encoded(document | {"events": events})
        while len(body) > SLOT_SIZE - _HEADER.size and events:
            del events[: max(1, len(events) // 4)]
            body = _encoded(document | {"events": events})
        self._number += 1
        rest = _HEADER.pack(0, self._number, len(body))[4:] + body
        _put(self.descriptor, struct.pack(">I", zlib.crc32(rest)) + rest, (self._number % 2) * SLOT_SIZE)


def _put(descriptor: int, data: bytes, offset: int) -> None:
    os.lseek(descriptor, offset, os.SEEK_SET)  # Windows has no pwrite
    if os.write(descriptor, data) != len(data):
        raise OSError(errno.ENOSPC, "the disk is full")


def _get(descriptor: int, offset: int) -> bytes:
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.read(descriptor, SLOT_SIZE)


def _encoded(document: JsonObject) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def _slot_untrusted(data: bytes) -> tuple[int, JsonObject] | None:
    if len(data) < _HEADER.size:
        return None
    checksum, number, length = _HEADER.unpack_from(data)
    end = _HEADER.size + length
    if number == 0 or end > len(data) or zlib.crc32(data[4:end]) != checksum:
        return None
    try:
        decoded = json.loads(data[_HEADER.size : end])
    except (ValueError, RecursionError):
        return None
    return (number, decoded) if isinstance(decoded, dict) else None
