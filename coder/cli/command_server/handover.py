"""Requests of the launcher, and the takeover by a forked process (wire format: build/command_client.c)."""

from __future__ import annotations

import array
import fcntl
import io
import os
import signal
import socket
import struct
import sys
import time
from dataclasses import dataclass
from typing import TextIO

HEADER = struct.Struct("<8s6I2Q")
MAGIC = b"CODERCS2"
_CREDENTIALS = struct.Struct("3i")
REPORT = struct.Struct("<c3xi")
MAX_DESCRIPTORS = 64
MAX_BYTES = 64 << 20
"Maximum size of arguments and environment in bytes; Linux limits them to a quarter of the stack."
HIGH = 200
"First descriptor number for this process's own files; lower ones are the caller's."
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


class BadRequestError(Exception):
    """Invalid request; the launcher runs the command itself."""


@dataclass(frozen=True, slots=True)
class Request:
    identity: str
    argv: list[str]
    env: dict[bytes, bytes]
    mask: int
    ignored: int
    "Bitmask of ignored signals as in /proc: bit n-1 is signal n."
    blocked: int
    descriptors: list[tuple[int, int]]
    "Pairs of the caller's descriptor number and the local one."
    folder: int
    life_pipe: int
    "Read end of a pipe that closes when the caller exits. Nothing is ever written to it."


def receive(channel: socket.socket) -> Request:
    """Read one request. Raise BadRequestError or OSError."""
    ancillary_size = socket.CMSG_SPACE((MAX_DESCRIPTORS + 2) * array.array("i").itemsize)
    head, control, flags, _ = channel.recvmsg(HEADER.size, ancillary_size, socket.MSG_CMSG_CLOEXEC)
    received = array.array("i")
    for level, kind, data in control:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            received.frombytes(data[: len(data) - len(data) % received.itemsize])
    if len(head) != HEADER.size or flags & socket.MSG_CTRUNC:
        raise BadRequestError
    magic, size, mask, count, arguments, variables, _, ignored, blocked = HEADER.unpack(head)
    if magic != MAGIC or len(received) != count + 2 or size > MAX_BYTES:
        raise BadRequestError
    body = _read(channel, size)
    identity, zero, rest = body.partition(b"\0")
    numbers = array.array("I", rest[: 4 * count])
    texts = rest[4 * count :].split(b"\0")
    if max(numbers, default=0) >= HIGH:
        raise BadRequestError  # it would replace one of this process's descriptors
    if not zero or len(numbers) != count or len(texts) != arguments + variables + 1 or not arguments:
        raise BadRequestError
    env = dict(text.split(b"=", 1) for text in texts[arguments:-1] if b"=" in text)
    argv = [os.fsdecode(text) for text in texts[:arguments]]
    pairs = list(zip(numbers, received, strict=False))
    return Request(os.fsdecode(identity), argv, env, mask, ignored, blocked, pairs, *received[-2:])


def _read(channel: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        chunk = channel.recv(size - len(data))
        if not chunk:
            raise BadRequestError
        data += chunk
    return bytes(data)


def peer_of(channel: socket.socket) -> int:
    """Return the process id of the peer: the launcher, which connected itself."""
    return int(_CREDENTIALS.unpack(channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))[0])


def duplicate_above_limit(descriptor: int) -> int:
    """Duplicate the descriptor to a number above the caller's."""
    high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, HIGH)
    os.close(descriptor)
    return high


def take_over(request: Request) -> None:
    """Take over the caller's files, directory, umask, signals and environment. Raise OSError."""
    moved = [(number, duplicate_above_limit(descriptor)) for number, descriptor in request.descriptors]
    folder = duplicate_above_limit(request.folder)
    _kill_when_peer_closes(duplicate_above_limit(request.life_pipe))
    for number, descriptor in moved:
        os.dup2(descriptor, number, inheritable=True)
        os.close(descriptor)
    os.fchdir(folder)
    os.close(folder)
    os.umask(request.mask)
    os.environb.clear()
    os.environb.update(request.env)
    time.tzset()
    sys.argv[:] = request.argv
    _open_standard_streams()
    _take_signals(request)


def _kill_when_peer_closes(life_pipe: int) -> None:
    """Request SIGKILL when the peer closes: a killed launcher must not leave its command running.

    The channel itself cannot serve: incoming data raises the signal as well, and the signal of the launcher's last
    message can arrive after the message has been read.
    """
    fcntl.fcntl(life_pipe, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(life_pipe, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(life_pipe, fcntl.F_SETFL, fcntl.fcntl(life_pipe, fcntl.F_GETFL) | os.O_ASYNC)


def _open_standard_streams() -> None:
    """Open the standard streams as the interpreter does at its start; the type of the files decides the buffering."""
    reader = io.BufferedReader(io.FileIO(0, "r", closefd=False))
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(reader, sys.stdin.encoding, sys.stdin.errors)  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _output(1, sys.stdout)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _output(2, sys.stderr)  # type: ignore[misc]


def _output(number: int, before: TextIO) -> io.TextIOWrapper:
    raw = io.FileIO(number, "w", closefd=False)
    lines = number == 2 or raw.isatty()
    return io.TextIOWrapper(io.BufferedWriter(raw), before.encoding, before.errors, line_buffering=lines)


def _take_signals(request: Request) -> None:
    for number in signal.valid_signals():
        if number in (signal.SIGKILL, signal.SIGSTOP):
            continue
        ignored = request.ignored >> (number - 1) & 1
        usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN if ignored or number in _IGNORED_BY_PYTHON else usual)
    blocked = [number for number in signal.valid_signals() if request.blocked >> (number - 1) & 1]
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
