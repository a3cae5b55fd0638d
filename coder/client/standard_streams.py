"""Our own standard input and output as trio streams.

Pipes and sockets (an SSH ProxyCommand) are driven by the event loop; files and terminals go through a thread, because
they cannot be polled or must not be made non-blocking for the shell that shares them.
"""

from __future__ import annotations

import os
import select
import stat
import sys

import trio

if sys.platform != "win32":
    import fcntl

CHUNK = 256 << 10
PIPE = 256 << 10
"What a pipe of ours holds. Linux counts all pipes of a user together (64 MiB): not more, or many sessions use it up."


def _pollable(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISFIFO(mode):
        _widen(descriptor)
        return True
    return stat.S_ISSOCK(mode)


def _widen(descriptor: int) -> None:
    """Let a pipe hold more than its 64 KiB, so that its ends take turns less often (Linux)."""
    if not sys.platform.startswith("linux"):
        return
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE)
    except OSError:
        pass  # more than this system grants: it works as it is


class StandardInput:
    """Reads descriptor 0."""

    def __init__(self) -> None:
        self._stream = trio.lowlevel.FdStream(os.dup(0)) if _pollable(0) else None

    async def receive_some(self) -> bytes:
        """b'' at the end of input."""
        if self._stream is not None:
            return bytes(await self._stream.receive_some(CHUNK))
        return await trio.to_thread.run_sync(os.read, 0, CHUNK, abandon_on_cancel=True)

    async def aclose(self) -> None:
        if self._stream is not None:
            await self._stream.aclose()


class StandardOutput:
    """Writes descriptor 1 or 2."""

    def __init__(self, descriptor: int = 1) -> None:
        self._descriptor = descriptor
        self._stream = trio.lowlevel.FdStream(os.dup(descriptor)) if _pollable(descriptor) else None

    async def send_all(self, data: bytes) -> None:
        """Raises BrokenPipeError or trio.BrokenResourceError when the reader is gone."""
        if self._stream is not None:
            await self._stream.send_all(data)
            return
        view = memoryview(data)
        while view:
            written = await trio.to_thread.run_sync(os.write, self._descriptor, view)
            view = view[written:]

    async def wait_abandoned(self) -> None:
        """Returns when nobody can read any more what is written. Never for anything but a pipe: it would not tell."""
        if self._stream is not None and hasattr(select, "poll") and stat.S_ISFIFO(os.fstat(self._descriptor).st_mode):
            # Its writing end has nothing to read, ever: what wakes us is that the other end has been closed.
            await trio.lowlevel.wait_readable(self._stream.fileno())
            poll = select.poll()
            poll.register(self._stream.fileno(), 0)
            if any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0)):
                return
        await trio.sleep_forever()

    async def aclose(self) -> None:
        if self._stream is not None:
            await self._stream.aclose()
