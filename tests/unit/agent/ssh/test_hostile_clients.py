"""SSH clients that send what is no SSH: only their connection ends, without an error of the agent."""

from __future__ import annotations

import pytest
import trio
from trio_asyncio import aio_as_trio

from coder.net.ssh_library import asyncssh
from tests.attacks.strangers.tables.agent import IDENT, KEXINIT, kexinit, number, raw
from tests.unit.agent.ssh.test_server import PLAIN_CLIENT, Server, server

__all__ = ["server"]


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"SSH-2.0-\xff\xfe\r\n", id="version-is-no-text"),
        pytest.param(IDENT + raw(4, b"\1"), id="debug-packet-is-cut"),
        pytest.param(IDENT + raw(KEXINIT, bytes(16)), id="key-exchange-without-lists"),
        pytest.param(IDENT + raw(KEXINIT, kexinit(b"\xff\xfe")), id="list-is-no-text"),
        pytest.param(IDENT + raw(KEXINIT, bytes(16) + number(5000) + b"x"), id="list-exceeds-packet"),
    ],
)
async def test_invalid_packets_end_connection(server: Server, sent: bytes) -> None:
    async with await trio.open_tcp_stream("127.0.0.1", server.port) as stream:
        await stream.send_all(sent)
        while await stream.receive_some():
            pass
    done = await server.ssh("echo fine")  # an exception of `serve` would have ended the fixture's nursery
    assert done.stdout == b"fine\n", done.stderr


@pytest.mark.parametrize("path", ["/tmp/" + "a" * 200, "/tmp/\x1b[2J", "/tmp/a\nb", ""])
async def test_impossible_socket_paths_are_refused(
    server: Server, path: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    client = await aio_as_trio(asyncssh.connect)("127.0.0.1", server.port, **PLAIN_CLIENT)
    try:
        with pytest.raises(asyncssh.ChannelListenError):
            await aio_as_trio(client.forward_remote_path)(path, "/no/such")
        done = await aio_as_trio(client.run)("echo fine")
        assert done.stdout == "fine\n"
    finally:
        client.close()
        await aio_as_trio(client.wait_closed)()
    assert [record for record in caplog.records if record.name == "asyncio"] == []
    assert capfd.readouterr().err == ""
