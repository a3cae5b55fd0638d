# mypy: disable-error-code="attr-defined,unreachable,explicit-any"
"""Console of Windows 10 and later: raw mode, and keys as UTF-8 with escape sequences.

Source: "Console Virtual Terminal Sequences" and "High-Level Console Modes" of Microsoft. Bytes that a program reads
from a console are in a code page that lacks most letters; so keys are read as UTF-16.
"""

from __future__ import annotations

import codecs
import ctypes
import msvcrt
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ctypes import wintypes
from typing import Any

CHUNK = 256 << 10
_KEYS = 4096
"Size in UTF-16 units of one read of a console."
_kernel32: Any = ctypes.WinDLL("kernel32", use_last_error=True)
_kernel32.GetStdHandle.restype = ctypes.c_void_p
_INPUT, _OUTPUT = -10, -11
"STD_INPUT_HANDLE, STD_OUTPUT_HANDLE."
_PROCESSED_INPUT, _LINE_INPUT, _ECHO_INPUT, _ESCAPES_IN = 0x1, 0x2, 0x4, 0x200
_PROCESSED_OUTPUT, _ESCAPES_OUT, _NO_RETURN = 0x1, 0x4, 0x8
_UTF_8 = 65001
_END = "\x1a"
"Ctrl-Z at the start of a line: the end of the input."
for _number in (0, 1, 2):
    with suppress(OSError):  # closed
        msvcrt.setmode(_number, os.O_BINARY)  # line ends stay as they are
_decoder = codecs.getincrementaldecoder("utf-16-le")("replace")


def _handle(number: int) -> ctypes.c_void_p:
    return ctypes.c_void_p(_kernel32.GetStdHandle(number))


def _mode(handle: ctypes.c_void_p) -> int | None:
    """Return the mode of a console; None for a pipe or a file."""
    mode = wintypes.DWORD()
    return mode.value if _kernel32.GetConsoleMode(handle, ctypes.byref(mode)) else None


def read_input() -> bytes:
    """Wait for some bytes of standard input; b'' at its end. Keys of a console are UTF-8. Raises OSError."""
    handle = _handle(_INPUT)
    mode = _mode(handle)
    if mode is None:
        return os.read(0, CHUNK)
    units, count = ctypes.create_unicode_buffer(_KEYS), wintypes.DWORD()
    text = ""
    while not text:
        if not _kernel32.ReadConsoleW(handle, units, _KEYS, ctypes.byref(count), None):
            raise ctypes.WinError(ctypes.get_last_error())
        if not count.value:
            return b""
        text = _decoder.decode(ctypes.string_at(units, 2 * count.value))  # half a character waits for the next read
    if mode & _LINE_INPUT:
        return b"" if text.startswith(_END) else text.replace("\r\n", "\n").encode("utf-8", "replace")
    return text.encode("utf-8", "replace")


@contextmanager
def raw_console() -> Iterator[None]:
    """Pass every key on as it is, and show escape sequences and UTF-8, in the block."""
    source, sink = _handle(_INPUT), _handle(_OUTPUT)
    before_in, before_out = _mode(source), _mode(sink)
    page = _kernel32.GetConsoleOutputCP()
    try:
        if before_in is not None:
            raw = before_in & ~(_PROCESSED_INPUT | _LINE_INPUT | _ECHO_INPUT)
            # A console of before Windows 10 refuses escape sequences.
            _ = _kernel32.SetConsoleMode(source, raw | _ESCAPES_IN) or _kernel32.SetConsoleMode(source, raw)
        if before_out is not None:
            _kernel32.SetConsoleMode(sink, before_out | _PROCESSED_OUTPUT | _ESCAPES_OUT | _NO_RETURN)
            _kernel32.SetConsoleOutputCP(_UTF_8)
        yield
    finally:
        if before_in is not None:
            _kernel32.SetConsoleMode(source, before_in)
        if before_out is not None:
            _kernel32.SetConsoleMode(sink, before_out)
            _kernel32.SetConsoleOutputCP(page)
