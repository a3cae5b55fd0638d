"""Clients that make the agent keep more and more: refused, or joined; the sessions of other clients go on."""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
import trio
from trio_asyncio import aio_as_trio

from coder.agent.ssh import limits
from coder.net.ssh_library import asyncssh
from tests.unit.agent.ssh.test_server import PLAIN_CLIENT, Server, server

__all__ = ["server"]

REQUEST, GLOBAL_REQUEST, DATA = 98, 80, 94
ENV = b"env"


def text(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def connected(server: Server) -> Any:
    return await aio_as_trio(asyncssh.connect)("127.0.0.1", server.port, **PLAIN_CLIENT, agent_path=None)


async def opened(client: Any) -> tuple[Any, bytes]:
    """Open a session without a command; return it with the agent's number of it."""
    channel = asyncssh.SSHClientChannel(client, asyncio.get_running_loop(), "strict", None, "strict", 1 << 21, 1 << 15)
    await aio_as_trio(channel._open)(b"session")
    channel._session = asyncssh.SSHClientSession()
    return channel, channel._send_chan.to_bytes(4, "big")  # type: ignore[union-attr]


async def asked(channel: Any, request: bytes, *values: bytes) -> bool:
    return bool(await aio_as_trio(channel._make_request)(request, *map(text, values)))


async def never(_connection: Any) -> bool:
    return bool(await asyncio.get_running_loop().create_future())


async def works(server: Server) -> bool:
    client = await connected(server)
    done = await aio_as_trio(client.run)("echo fine")
    client.abort()
    return bool(done.stdout == "fine\n")


async def test_variables_are_limited(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_ENVIRONMENT", 1000)
    client = await connected(server)
    channel, _ = await opened(client)
    results = [await asked(channel, ENV, b"NAME", b"x" * 300) for _ in range(5)]
    assert results == [True, True, True, False, False]
    assert await asked(channel, ENV, b"A", b"b")  # there is room for it
    client.abort()


async def test_channels_are_limited(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    client = await connected(server)
    other = await connected(server)
    monkeypatch.setattr(limits, "MAX_CHANNELS", 3)
    channels = [(await opened(client))[0] for _ in range(3)]
    with pytest.raises(asyncssh.ChannelOpenError, match="too many open channels"):
        await opened(client)
    done = await aio_as_trio(other.run)("echo fine")
    assert done.stdout == "fine\n"
    channels[0].close()
    await aio_as_trio(channels[0].wait_closed)()
    assert await opened(client)
    client.abort()
    other.abort()


async def test_listeners_are_limited(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_LISTENERS", 2)
    client = await connected(server)
    first = await aio_as_trio(client.forward_remote_port)("127.0.0.1", 0, "127.0.0.1", 9)
    await aio_as_trio(client.forward_remote_path)(str(tmp_path / "a"), "/no/such")
    for refused in (("127.0.0.1", 0, "127.0.0.1", 9), (str(tmp_path / "b"), "/no/such")):
        forward = client.forward_remote_port if len(refused) == 4 else client.forward_remote_path
        with pytest.raises(asyncssh.ChannelListenError):
            await aio_as_trio(forward)(*refused)
    first.close()
    await aio_as_trio(first.wait_closed)()
    assert await aio_as_trio(client.forward_remote_port)("127.0.0.1", 0, "127.0.0.1", 9)
    client.abort()


async def test_open_files_are_limited(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_HANDLES", 3)
    (tmp_path / "f").touch()
    client = await connected(server)
    sftp = await aio_as_trio(client.start_sftp_client)()
    files = [await aio_as_trio(sftp.open)(str(tmp_path / "f"), "rb") for _ in range(3)]
    with pytest.raises(asyncssh.SFTPFailure, match="too many open files"):
        await aio_as_trio(sftp.open)(str(tmp_path / "f"), "rb")
    with pytest.raises(asyncssh.SFTPFailure, match="too many open files"):
        await aio_as_trio(sftp.listdir)(str(tmp_path))
    for file in files:
        await aio_as_trio(file.close)()
    assert "f" in await aio_as_trio(sftp.listdir)(str(tmp_path))
    sftp.exit()
    await aio_as_trio(sftp.wait_closed)()
    client.abort()


async def test_waiting_requests_are_answered_in_order(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests behind one that takes longer were answered inside each other: Python's recursion limit ended the
    connection."""
    received = trio.Event()

    async def late(_connection: Any) -> bool:
        while not received.is_set():
            await asyncio.sleep(0.01)
        return False

    monkeypatch.setattr(asyncssh.SSHServerConnection, "create_agent_listener", late)
    client = await connected(server)
    channel, number = await opened(client)
    client.send_packet(REQUEST, number + text(b"auth-agent-req@openssh.com") + b"\0")
    for index in range(2000):
        client.send_packet(REQUEST, number + text(ENV) + b"\0" + text(b"V%d" % index) + text(b"x"))
    assert (await aio_as_trio(client.run)("echo fine")).stdout == "fine\n"  # sent later: the others have arrived
    received.set()
    with trio.fail_after(60):
        assert await asked(channel, ENV, b"LAST", b"x")
    client.close()
    await aio_as_trio(client.wait_closed)()


@pytest.mark.parametrize("limit", ["MAX_QUEUED_REQUESTS", "MAX_QUEUED_BYTES"])
async def test_too_many_waiting_requests_end_connection(
    server: Server, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, limit, 200)
    monkeypatch.setattr(asyncssh.SSHServerConnection, "create_agent_listener", never)
    client = await connected(server)
    _, number = await opened(client)
    client.send_packet(REQUEST, number + text(b"auth-agent-req@openssh.com") + b"\0")
    for _ in range(300):
        client.send_packet(REQUEST, number + text(ENV) + b"\0" + text(b"V") + text(b"x"))
    with trio.fail_after(60):
        await aio_as_trio(client.wait_closed)()
    assert await works(server)


@pytest.mark.parametrize("waits", [False, True])
async def test_late_listeners_are_closed(
    server: Server, waits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client leaves before the listeners that it asked for are open."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("XAUTHORITY", str(tmp_path / "xauthority"))
    before = descriptors()
    client = await connected(server)
    _, number = await opened(client)
    path = tmp_path / "socket"
    for request in (b"auth-agent-req@openssh.com", b"x11-req"):
        more = b"\0" + text(b"MIT-MAGIC-COOKIE-1") + text(b"00" * 16) + bytes(4) if request == b"x11-req" else b""
        client.send_packet(REQUEST, number + text(request) + b"\0" + more)
    client.send_packet(GLOBAL_REQUEST, text(b"tcpip-forward") + b"\0" + text(b"127.0.0.1") + bytes(4))
    client.send_packet(GLOBAL_REQUEST, text(b"streamlocal-forward@openssh.com") + b"\0" + text(bytes(path)))
    if waits:
        with trio.fail_after(60):
            while not path.exists() or not (tmp_path / "xauthority").exists():
                await trio.sleep(0.01)
        assert (tmp_path / "xauthority").stat().st_mode & 0o777 == 0o600
    client.close()
    with trio.fail_after(60):
        await aio_as_trio(client.wait_closed)()
        while descriptors() > before or any(folder.iterdir()):
            await trio.sleep(0.01)
    assert await works(server)


async def test_unread_input_is_joined(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Single bytes, sizes and signals for a program that does not read: few objects, everything in order."""
    kept: list[Any] = []
    original = asyncssh.SSHServerProcess.connection_made

    def note(process: Any, channel: Any) -> None:
        kept.append(process)
        original(process, channel)

    monkeypatch.setattr(asyncssh.SSHServerProcess, "connection_made", note)
    client = await connected(server)
    os.mkfifo(tmp_path / "go")
    process = await aio_as_trio(client.create_process)(f": <{tmp_path}/go; sha256sum", encoding=None)
    number = process.channel._send_chan.to_bytes(4, "big")
    sent = bytes(1 << 20) + b"0123456789" * 300  # more than the pipe and the command's buffers hold
    process.stdin.write(sent[: 1 << 20])
    for index in range(1 << 20, len(sent)):
        client.send_packet(DATA, number + text(sent[index : index + 1]))
    for columns in range(1, 3000):
        size = columns.to_bytes(4, "big") + bytes(12)
        client.send_packet(REQUEST, number + text(b"window-change") + b"\0" + size)
    assert await asked(process.channel, ENV, b"LAST", b"x")
    [session] = kept
    assert len(session._recv_buf[None]) + len(session.channel._recv_buf) < 60
    process.stdin.write_eof()
    await trio.to_thread.run_sync((tmp_path / "go").write_bytes, b"")
    assert (await aio_as_trio(process.stdout.read)()).split()[0].decode() == hashlib.sha256(sent).hexdigest()
    client.abort()


async def test_unread_signals_are_dropped(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_NOTICES", 5)
    session = asyncssh.SSHServerProcess(lambda _: None, None, 3, False)
    for _ in range(10):
        session.exception_received(asyncssh.SignalReceived("USR1"))
    session.exception_received(asyncssh.TerminalSizeChanged(80, 24, 0, 0))
    assert len(session._recv_buf[None]) == 5
