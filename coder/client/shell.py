"""Shell or command in a workspace: an asyncssh client on an overlay stream, with the local terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import trio
import trio_asyncio
from trio_asyncio import aio_as_trio

from coder.base.errors import CoderError
from coder.client.gpg import Finished, forward_gpg
from coder.client.standard_streams import StandardInput, StandardOutput
from coder.client.terminal_mode import raw_terminal, terminal_size, watch_size
from coder.net.ssh_library import asyncssh
from coder.net.ssh_transport import StreamTransport

CHUNK = 256 << 10
LOST = 255
"Exit code if the connection ends before the command, as ssh's."
CONNECTION_LOST = "The connection to the workspace was lost before the command ended.\n"
OUTPUT_CLOSED = 141
"Exit code after the output's reader has closed it: that of a program killed by SIGPIPE, as for all commands."


@dataclass(frozen=True, slots=True)
class ShellRequest:
    """Parameters of a shell or command."""

    command: str | None = None
    tty: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    forward_agent: bool = False
    agent_path: str = ""
    forward_gpg: bool = False
    "Whether to forward the local GPG agent."
    remote_forwards: tuple[tuple[str, str], ...] = ()
    "Pairs of the workspace's listener and the local target: host:port or /path of a socket."


async def run_shell(stream: trio.abc.HalfCloseableStream, request: ShellRequest) -> int:
    """Run the shell and return its exit code. Raise CoderError if the SSH connection fails."""
    async with trio_asyncio.open_loop(), _connection(stream, request) as connection:
        for listen, target in request.remote_forwards:
            await _forward(connection, listen, target)
        if request.forward_gpg:
            await forward_gpg(_AsyncsshGpg(connection))
        return await _session(connection, request)


@asynccontextmanager
async def _connection(
    stream: trio.abc.HalfCloseableStream, request: ShellRequest
) -> AsyncIterator[asyncssh.SSHClientConnection]:
    transport = StreamTransport(stream)
    options = asyncssh.SSHClientConnectionOptions(
        known_hosts=None,  # the agent's overlay address authenticates it
        username="coder",
        client_keys=None,
        preferred_auth="none",
        agent_path=request.agent_path or (os.environ.get("SSH_AUTH_SOCK") if request.forward_agent else None),
        agent_forwarding=request.forward_agent,
        encryption_algs=["aes128-gcm@openssh.com", "chacha20-poly1305@openssh.com", "aes128-ctr"],
        compression_algs=["none"],
        config=None,
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(transport.pump)
        try:
            connection = await aio_as_trio(asyncssh.connect)("overlay", 22, tunnel=transport, options=options)
        except (asyncssh.Error, OSError) as error:
            raise CoderError("ssh", "the workspace's agent does not speak SSH") from error
        try:
            yield connection
        finally:
            connection.abort()
            nursery.cancel_scope.cancel()


async def _session(connection: asyncssh.SSHClientConnection, request: ShellRequest) -> int:
    size = terminal_size() if request.tty else (0, 0)
    # Passed as typed, since a file's name can have any encoding.
    env = {os.fsencode(name): os.fsencode(value) for name, value in request.env.items()}
    command = None if request.command is None else os.fsencode(request.command)
    create = partial(aio_as_trio(connection.create_process), command, env=env, encoding=None)
    try:
        if request.tty:
            process = await create(term_type=os.environ.get("TERM", "xterm-256color"), term_size=size)
        else:
            process = await create()
    except asyncssh.Error as error:
        raise CoderError("ssh", "the session was rejected") from error
    with raw_terminal(request.tty):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_feed, process)
            if request.tty:
                nursery.start_soon(_watch_size, process)
            was_read = await _drain(process)
            if was_read:
                await aio_as_trio(process.wait_closed)()
            nursery.cancel_scope.cancel()
    if not was_read:
        return OUTPUT_CLOSED
    code = process.returncode
    if code is None:
        sys.stderr.write(CONNECTION_LOST)
    return LOST if code is None or code < 0 else code


async def _feed(process: asyncssh.SSHClientProcess[bytes]) -> None:
    source = StandardInput()
    try:
        while data := await source.receive_some():
            process.stdin.write(data)
            await aio_as_trio(process.stdin.drain)()
        process.stdin.write_eof()
    except (OSError, BrokenPipeError, asyncssh.Error, trio.BrokenResourceError):
        pass  # the command has ended, or does not read
    finally:
        with trio.CancelScope(shield=True):
            await source.aclose()


async def _drain(process: asyncssh.SSHClientProcess[bytes]) -> bool:
    """Copy the command's output until it ends. Return False if the output's reader closed it earlier."""
    closed = trio.Event()
    output, errors = StandardOutput(1), StandardOutput(2)

    def leave() -> None:
        """Request the end of the command without waiting, because the output's reader has closed it."""
        process.terminate()
        closed.set()
        nursery.cancel_scope.cancel()

    async def copy(pipe: asyncssh.SSHReader[bytes], sink: StandardOutput) -> None:
        try:
            while data := await aio_as_trio(pipe.read)(CHUNK):
                await sink.send_all(data)
        except (BrokenPipeError, trio.BrokenResourceError):
            leave()
        except asyncssh.Error:
            pass  # the connection ended; the exit code reports that

    async def watch() -> None:
        """Detect a closed reader also while the command prints nothing."""
        await output.wait_abandoned()
        leave()

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            async with trio.open_nursery() as copying:
                copying.start_soon(copy, process.stdout, output)
                copying.start_soon(copy, process.stderr, errors)
            nursery.cancel_scope.cancel()
    finally:
        with trio.CancelScope(shield=True):
            await output.aclose()
            await errors.aclose()
    return not closed.is_set()


async def _watch_size(process: asyncssh.SSHClientProcess[bytes]) -> None:
    async def report(columns: int, lines: int) -> None:
        process.change_terminal_size(columns, lines)

    await watch_size(report)


async def _forward(connection: asyncssh.SSHClientConnection, listen: str, target: str) -> None:
    """Forward connections to `listen` in the workspace to the local `target`."""
    try:
        if listen.startswith("/"):
            forward = connection.forward_remote_path(listen, target)
        else:
            host, _, port = target.rpartition(":")
            host = host.removeprefix("[").removesuffix("]")  # an IPv6 address
            forward = connection.forward_remote_port("127.0.0.1", int(listen), host or "127.0.0.1", int(port))
        await aio_as_trio(_awaited)(forward)
    except (asyncssh.Error, OSError) as error:
        raise CoderError("remote_forward", f"cannot forward {listen} from the workspace") from error


class _AsyncsshGpg:
    """GPG forwarding over an asyncssh connection."""

    def __init__(self, connection: asyncssh.SSHClientConnection) -> None:
        self._connection = connection

    async def run(self, command: str, stdin: bytes) -> Finished:
        try:
            done = await aio_as_trio(self._connection.run)(command, input=stdin, encoding=None)
        except (asyncssh.Error, OSError) as error:
            raise CoderError("gpg", "a command for GPG could not be run in the workspace") from error
        return Finished(done.exit_status, bytes(done.stdout or b""), bytes(done.stderr or b""))

    async def forward_socket(self, remote: str, local: str) -> None:
        await _forward(self._connection, remote, local)


T = TypeVar("T")


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable
