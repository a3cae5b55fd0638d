"""Our own standard input and output as trio streams.

Pipes and sockets (an SSH ProxyCommand) are driven by the event loop; files and terminals go through a thread, because
they cannot be polled or must not be made non-blocking for the shell that shares them.
"""

from __future__ import annotations

import os
import stat
import sys

import trio

if sys.platform == "linux":
    import fcntl

CHUNK = 256 << 10
PIPE_BYTES = 1 << 20  # /proc/sys/fs/pipe-max-size as shipped; more is refused to an ordinary user


def _pollable(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _stream(descriptor: int) -> trio.lowlevel.FdStream | None:
    if not _pollable(descriptor):
        return None
    if sys.platform == "linux" and stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        # 64 KiB hold two SSH packets: both sides would wake up for each. Refused where a user has too many large pipes.
        try:
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        except OSError:
            pass
    return trio.lowlevel.FdStream(os.dup(descriptor))


class StandardInput:
    """Reads descriptor 0."""

    def __init__(self) -> None:
        self._stream = _stream(0)

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
        self._stream = _stream(descriptor)

    async def send_all(self, data: bytes) -> None:
        """Raises BrokenPipeError or trio.BrokenResourceError when the reader is gone."""
        if self._stream is not None:
            await self._stream.send_all(data)
            return
        view = memoryview(data)
        while view:
            written = await trio.to_thread.run_sync(os.write, self._descriptor, view)
            view = view[written:]

    async def aclose(self) -> None:
        if self._stream is not None:
            await self._stream.aclose()
