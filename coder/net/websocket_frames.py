"""Binary messages of one frame, split from a WebSocket's bytes; everything else is left to the general parser.

Nearly all messages of RPC links are such frames. The general parser's objects for each cost ten times the frame.
"""

from __future__ import annotations

import os

_BINARY = 0x82
"First byte of a binary message in one frame."
_MASKED = 0x80
_FINISHED = 0x80
_CONTROL = 0x08
_OPCODES = frozenset({0, 1, 2, 8, 9, 10})
_HEADS = {126: 4, 127: 10}
"Bytes of a head without its mask, by the first length; 2 for any other."
_EVERYTHING = 1 << 62
"Rest of a frame that violates the protocol: the parser gets all that follows, and refuses it."


def encode_binary(data: bytes, *, masked: bool) -> bytes:
    """Encode a binary message as one frame; `masked` as clients have to."""
    size, bit = len(data), _MASKED if masked else 0
    if size < 126:
        head = bytes((_BINARY, bit | size))
    elif size < 1 << 16:
        head = bytes((_BINARY, bit | 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((_BINARY, bit | 127)) + size.to_bytes(8, "big")
    if not masked:
        return head + data
    mask = os.urandom(4)
    return b"".join((head, mask, _mask(data, mask)))


def _mask(data: bytes, mask: bytes) -> bytes:
    """Return the exclusive or of data and the repeated mask."""
    size = len(data)
    repeated = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "big") ^ int.from_bytes(repeated, "big")).to_bytes(size, "big")


class FrameSplitter:
    """Received bytes of one direction, divided by frames. `masked`: the frames of a client."""

    def __init__(self, *, masked: bool, max_message: int | None = None) -> None:
        self._masked = masked
        self._most = _EVERYTHING if max_message is None else max_message
        self._data = b""
        self._at = 0
        self._rest = 0
        "Bytes left of the frame that the parser gets."
        self._is_fragmented = False
        "Whether the parser has a part of a message."

    def receive_untrusted(self, data: bytes) -> None:
        """Add received bytes."""
        self._data = self._data[self._at :] + data if self._at < len(self._data) else data
        self._at = 0

    def next_part(self) -> tuple[bool, bytes] | None:
        """Return the next (True, message) or (False, bytes for the parser); None when more has to be received."""
        data, at = self._data, self._at
        size = len(data) - at
        if not self._rest:
            if size < 2:
                return None
            first, second = data[at], data[at + 1]
            if self._violates(first, second):
                self._rest = _EVERYTHING
            else:
                head = _HEADS.get(second & 0x7F, 2) + 4 * self._masked
                if size < head:
                    return None
                length = second & 0x7F
                if length > 125:
                    length = int.from_bytes(data[at + 2 : at + _HEADS[length]], "big")
                end = at + head + length
                if first == _BINARY and self._is_plain(second, length) and end <= len(data):
                    self._at = end
                    payload = data[at + head : end]
                    return True, _mask(payload, data[at + head - 4 : at + head]) if self._masked else payload
                self._rest = head + length
                if not first & _CONTROL:
                    self._is_fragmented = not first & _FINISHED
        elif not size:
            return None
        part = data[at : at + self._rest]
        self._at += len(part)
        self._rest -= len(part)
        return False, part

    def _is_plain(self, second: int, length: int) -> bool:
        """Return whether a binary frame is taken as it is: in turn, small enough, its length in the shortest form."""
        shortest = second & 0x7F < 126 or length > (125 if second & 0x7F == 126 else 0xFFFF)
        return shortest and length <= self._most and not self._is_fragmented

    def _violates(self, first: int, second: int) -> bool:
        is_bad_control = bool(first & _CONTROL) and (not first & _FINISHED or second & 0x7F > 125)
        return first & 0x7F not in _OPCODES or bool(second & _MASKED) is not self._masked or is_bad_control
