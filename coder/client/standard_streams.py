"""Standard input and output of this process as trio streams.

The event loop drives pipes and sockets (an SSH ProxyCommand). Files and terminals use a thread, because they cannot be
polled or must not become non-blocking for the shell that shares them. On Windows all use a thread: its pipes of
standard streams cannot be polled either.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import sys

import trio

if sys.platform == "win32":
    from coder.client.windows_console import read_input
else:
    import fcntl

    def read_input() -> bytes:
        """Wait for some bytes of standard input; b'' at its end. Raises OSError."""
        return os.read(0, CHUNK)


CHUNK = 256 << 10
PIPE = 256 << 10
"""Capacity of a pipe in bytes. Linux limits all pipes of a user together (64 MiB), so a higher value would exhaust it
with many sessions."""


def _pollable(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    if not hasattr(trio.lowlevel, "FdStream"):  # Windows
        return False
    if stat.S_ISFIFO(mode):
        _widen(descriptor)
        return True
    return stat.S_ISSOCK(mode)


def _widen(descriptor: int) -> None:
    """Enlarge a pipe beyond its 64 KiB, which reduces context switches (Linux)."""
    if not sys.platform.startswith("linux"):
        return
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE)
    except OSError:
        pass  # above the system's limit: keep the default


class StandardInput:
    """Receive stream of descriptor 0."""

    def __init__(self) -> None:
        self._stream = trio.lowlevel.FdStream(os.dup(0)) if _pollable(0) else None

    async def receive_some(self) -> bytes:
        """Read some bytes; b'' at the end of input."""
        if self._stream is not None:
            return bytes(await self._stream.receive_some(CHUNK))
        return await trio.to_thread.run_sync(read_input, abandon_on_cancel=True)

    async def aclose(self) -> None:
        if self._stream is not None:
            await self._stream.aclose()


class StandardOutput:
    """Send stream of descriptor 1 or 2."""

    def __init__(self, descriptor: int = 1) -> None:
        self._descriptor = descriptor
        self._stream = trio.lowlevel.FdStream(os.dup(descriptor)) if _pollable(descriptor) else None

    async def send_all(self, data: bytes) -> None:
        """Write all data. Raise BrokenPipeError or trio.BrokenResourceError if the reader has closed it."""
        if self._stream is not None:
            await self._stream.send_all(data)
            return
        view = memoryview(data)
        while view:
            try:
                written = await trio.to_thread.run_sync(os.write, self._descriptor, view)
            except OSError as error:
                if error.errno == errno.EINVAL:  # of Windows, for a pipe whose reader has closed it
                    raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)) from error
                raise
            view = view[written:]

    async def wait_abandoned(self) -> None:
        """Return when a pipe's read end is closed; never for other files, which do not report it."""
        if self._stream is not None and hasattr(select, "poll") and stat.S_ISFIFO(os.fstat(self._descriptor).st_mode):
            # A pipe's write end is never readable, so only the close of the read end wakes this wait.
            await trio.lowlevel.wait_readable(self._stream.fileno())
            poll = select.poll()
            poll.register(self._stream.fileno(), 0)
            if any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0)):
                return
        await trio.sleep_forever()

    async def aclose(self) -> None:
        if self._stream is not None:
            await self._stream.aclose()
