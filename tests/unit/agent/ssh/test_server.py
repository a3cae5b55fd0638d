"""SSH server of the agent with the real OpenSSH client, on a loopback socket in place of the overlay stream."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio
import trio_asyncio
from trio_asyncio import aio_as_trio

from coder.agent.ssh.server import SshService
from coder.agent.state import AgentState
from coder.agent.workspace.environment import find_identity
from coder.net.ssh_library import asyncssh
from coder.rpc.proto import agent_pb2

OPTIONS = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-F", "none"]
PLAIN_CLIENT: dict[str, Any] = {"username": "u", "known_hosts": None, "config": None, "client_keys": None}


class Server:
    def __init__(self, port: int, state: AgentState, service: SshService) -> None:
        self.port, self.state, self.service = port, state, service

    async def ssh(
        self, *args: str, stdin: bytes = b"", options: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[bytes]:
        argv = ["ssh", *OPTIONS, *options, "-p", str(self.port), "u@127.0.0.1", *args]
        return await trio.run_process(argv, stdin=stdin, capture_stdout=True, capture_stderr=True, check=False)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    state = AgentState(identity=find_identity(), token="t", url="http://x", executable="/bin/coder")
    state.manifest = agent_pb2.Manifest(environment_variables={"FROM_MANIFEST": "$HOME/x"}, workspace_name="w")
    state.directory = tmp_path
    async with trio_asyncio.open_loop(), trio.open_nursery() as nursery:
        service = SshService(state)
        listeners = await nursery.start(trio.serve_tcp, service.serve, 0)
        yield Server(listeners[0].socket.getsockname()[1], state, service)
        nursery.cancel_scope.cancel()


async def test_command_runs_in_environment(server: Server, tmp_path: Path) -> None:
    done = await server.ssh("echo out; echo err >&2; echo $FROM_MANIFEST $CODER; pwd; exit 7")
    assert done.returncode == 7
    assert done.stdout.decode().splitlines() == ["out", f"{os.environ['HOME']}/x true", str(tmp_path)]
    assert done.stderr == b"err\n"


async def test_command_may_be_non_utf8(server: Server, tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9")).write_text("found")
    done = await server.ssh(os.fsdecode(b"cat caf\xe9"))
    assert (done.returncode, done.stdout) == (0, b"found"), done.stderr
    connection = await aio_as_trio(asyncssh.connect)("127.0.0.1", server.port, **PLAIN_CLIENT)
    shown = await aio_as_trio(connection.run)("printf %s $X", env={b"X": b"caf\xe9"}, encoding=None)
    assert shown.stdout == b"caf\xe9"
    connection.abort()


async def test_zero_byte_fails_own_session(server: Server) -> None:
    connection = await aio_as_trio(asyncssh.connect)("127.0.0.1", server.port, **PLAIN_CLIENT)
    other = await aio_as_trio(connection.create_process)("read line; echo $line")
    for term in (None, "xterm"):
        with trio.fail_after(60):
            refused = await aio_as_trio(connection.run)("echo \0", term_type=term)
            assert refused.exit_status == 229 and "could not be started: embedded null byte" in str(refused.stderr)
            odd = {b"NUL": b"\0", b"A=B": b"x", b"": b"x", b"FINE": b"fine"}
            done = await aio_as_trio(connection.run)("echo $FINE $A $NUL", env=odd, term_type=term)
            assert (done.exit_status, str(done.stdout).split()) == (0, ["fine"])
    other.stdin.write("still here\n")
    with trio.fail_after(60):
        assert await aio_as_trio(other.stdout.read)() == "still here\n"
    connection.abort()


async def test_stdin_arrives_complete(server: Server) -> None:
    body = os.urandom(3 << 20)
    done = await server.ssh("sha256sum", stdin=body)
    assert done.stdout.split()[0].decode() == hashlib.sha256(body).hexdigest()


async def test_large_output_arrives_complete(server: Server) -> None:
    done = await server.ssh("head -c 20000000 /dev/zero | tr '\\0' x")
    assert len(done.stdout) == 20_000_000


async def test_killed_command_reports_255(server: Server) -> None:
    assert (await server.ssh("kill -9 $$")).returncode == 255


async def test_terminal_has_size_and_name(server: Server) -> None:
    done = await server.ssh("stty size; test -t 0 && echo tty; echo $TERM", options=("-tt",))
    assert b"tty" in done.stdout
    assert done.returncode == 0


async def test_terminal_without_a_name_is_a_terminal(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TERM", raising=False)
    done = await server.ssh("test -t 0 && echo $TERM", options=("-tt",))
    assert done.stdout.strip() == b"dumb"


async def test_terminal_shell_exit_code(server: Server) -> None:
    done = await server.ssh(options=("-tt",), stdin=b"exit 5\n")
    assert done.returncode == 5


async def test_sftp_transfers_relative_paths(server: Server, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(os.urandom(5 << 20))
    back = tmp_path / "elsewhere"
    back.mkdir()
    batch = f"put {source} copied\nrename copied moved\nmkdir d\nls\nget moved {back}/again\n"
    argv = ["sftp", *OPTIONS, "-P", str(server.port), "-b", "-", "u@127.0.0.1"]
    await trio.run_process(argv, stdin=batch.encode(), capture_stdout=True, capture_stderr=True)
    assert (back / "again").read_bytes() == source.read_bytes()
    assert (tmp_path / "d").is_dir()


async def test_scp_ends_with_success(server: Server, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(os.urandom(1 << 20))
    for origin, target in ((str(source), "u@127.0.0.1:there"), ("u@127.0.0.1:there", str(tmp_path / "back"))):
        argv = ["scp", *OPTIONS, "-P", str(server.port), origin, target]
        done = await trio.run_process(argv, capture_stdout=True, capture_stderr=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "back").read_bytes() == source.read_bytes()


async def test_forwarding_ports_and_agent(server: Server) -> None:
    async def echo(stream: trio.SocketStream) -> None:
        async for data in stream:
            await stream.send_all(data.upper())

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, echo, 0)
        port = listeners[0].socket.getsockname()[1]
        done = await server.ssh(options=("-W", f"127.0.0.1:{port}"), stdin=b"hello")
        assert done.stdout == b"HELLO"
        nursery.cancel_scope.cancel()


async def test_local_forwarding_can_be_blocked(server: Server) -> None:
    async def echo(stream: trio.SocketStream) -> None:
        async for data in stream:
            await stream.send_all(data)

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, echo, 0)
        to = ("-W", f"127.0.0.1:{listeners[0].socket.getsockname()[1]}")
        server.state.block_local_forwarding = True
        assert (await server.ssh(options=to, stdin=b"hello")).returncode == 255
        server.state.block_local_forwarding = False
        assert (await server.ssh(options=to, stdin=b"hello")).stdout == b"hello"
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("socket", [False, True])
async def test_reverse_forwarding_can_be_blocked(server: Server, tmp_path: Path, socket: bool) -> None:
    here = str(tmp_path / "s") if socket else "127.0.0.1:0"
    options = ("-o", "ExitOnForwardFailure=yes", "-R", f"{here}:127.0.0.1:1")
    server.state.block_reverse_forwarding = True
    assert (await server.ssh("true", options=options)).returncode == 255
    server.state.block_reverse_forwarding = False
    assert (await server.ssh("true", options=options)).returncode == 0


async def test_unknown_subsystem_is_rejected(server: Server) -> None:
    assert (await server.ssh("netconf", options=("-s",))).returncode == 1


async def test_blocked_file_transfer(server: Server) -> None:
    server.state.block_file_transfer = True
    done = await server.ssh("scp -t /tmp")
    assert done.returncode == 65
    assert done.stdout == b"\x02File transfer has been disabled.\n"


async def test_concurrent_sessions_are_counted(server: Server) -> None:
    results: list[int] = []

    async def one() -> None:
        results.append((await server.ssh("true")).returncode)

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(one)
    assert results == [0] * 8
    assert server.state.sessions["ssh"] == 0


async def start_and_lose(server: Server, command: str, *options: str) -> None:
    """Run a command until it has printed something, then kill the client."""
    argv = ["ssh", *OPTIONS, *options, "-p", str(server.port), "u@127.0.0.1", command]
    client = await trio.lowlevel.open_process(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert client.stdout is not None
    await client.stdout.receive_some()
    client.kill()
    await client.wait()


async def read_fifo(path: Path) -> str:
    with trio.fail_after(60):
        return await trio.to_thread.run_sync(path.read_text, abandon_on_cancel=True)


async def test_disconnect_hangs_up_terminal(server: Server, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    command = f"trap 'echo hung up > {tmp_path}/pipe; exit' HUP; echo ready; while :; do sleep 0.05; done"
    await start_and_lose(server, command, "-tt")
    assert await read_fifo(tmp_path / "pipe") == "hung up\n"


async def test_empty_user_name_is_accepted(server: Server) -> None:
    """Go's clients send an empty user name by default."""

    async def run() -> str:
        async with asyncssh.connect("127.0.0.1", server.port, username="", known_hosts=None, config=None) as client:
            done = await client.run("echo in")
            return str(done.stdout)

    async with trio_asyncio.open_loop():
        assert await aio_as_trio(run)() == "in\n"


async def test_writing_after_disconnect_fails(server: Server) -> None:
    await start_and_lose(server, "echo ready; exec yes")
    with trio.fail_after(60):
        while server.service.runner.running:
            await trio.sleep(0.01)


async def test_command_outlives_its_session(server: Server, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    os.mkfifo(tmp_path / "pipe")
    command = f"echo ready; read x < {tmp_path}/gate; echo still here > {tmp_path}/pipe"
    await start_and_lose(server, command)
    with trio.fail_after(60):
        while server.state.sessions["ssh"]:
            await trio.sleep(0.01)
    await trio.to_thread.run_sync((tmp_path / "gate").write_text, "go\n")
    assert await read_fifo(tmp_path / "pipe") == "still here\n"
    with trio.fail_after(60):
        while server.service.runner.running:
            await trio.sleep(0.01)
