"""Ciphers with the real OpenSSH client: the fast one by default, any other on the user's request."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio
import trio_asyncio

from coder.agent.ssh.negotiation import encryption_untrusted
from coder.agent.ssh.server import ENCRYPTION, SshService
from coder.agent.state import AgentState
from coder.agent.workspace.environment import find_identity

OPTIONS = ["-v", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-F", "none"]


@pytest.fixture
async def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    monkeypatch.setattr("coder.agent.ssh.server._has_aes", lambda: True)
    state = AgentState(identity=find_identity(), token="t", url="http://x", executable="/bin/coder")
    state.directory = tmp_path
    async with trio_asyncio.open_loop(), trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, SshService(state).serve, 0)
        yield listeners[0].socket.getsockname()[1]
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("options", "cipher"),
    [
        ((), "aes128-gcm@openssh.com"),
        (("-c", "aes256-gcm@openssh.com"), "aes256-gcm@openssh.com"),
        (("-c", "aes192-ctr"), "aes192-ctr"),
    ],
)
async def test_gcm_unless_client_insists(port: int, options: tuple[str, ...], cipher: str) -> None:
    argv = ["ssh", *OPTIONS, *options, "-p", str(port), "u@127.0.0.1", "echo hello"]
    done = await trio.run_process(argv, capture_stdout=True, capture_stderr=True, check=False)
    assert done.stdout == b"hello\n"
    assert f"client->server cipher: {cipher}".encode() in done.stderr
    assert f"server->client cipher: {cipher}".encode() in done.stderr


async def test_waiting_client_gets_full_list(port: int) -> None:
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await stream.send_all(b"SSH-2.0-Waits_1.0\r\n")
        heard = b""
        while ENCRYPTION[-1].encode() not in heard:
            data = await stream.receive_some()
            assert data
            heard += data


def _kexinit(*lists: bytes) -> bytes:
    payload = b"\x04\x14" + os.urandom(16) + b"".join(len(names).to_bytes(4, "big") + names for names in lists)
    return len(payload).to_bytes(4, "big") + payload


def test_incomplete_kexinit_waits() -> None:
    whole = _kexinit(b"kex", b"key", b"a,b", b"c")
    assert encryption_untrusted(whole) == [[b"a", b"b"], [b"c"]]
    assert all(encryption_untrusted(whole[:size]) is None for size in range(len(whole)))
    nothing: list[list[Any]] = [[], []]
    assert encryption_untrusted(b"\xff" * 40) == nothing
    assert encryption_untrusted(b"\0\0\0\x14\x04\x15" + bytes(40)) == nothing
    assert encryption_untrusted(_kexinit(b"kex", b"key")) == nothing
