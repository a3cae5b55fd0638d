"""A broken or hostile workspace affects only itself, with one clear log line."""

from __future__ import annotations

import math
import os
import random
import resource
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
import trio_asyncio
from trio_asyncio import aio_as_trio

from coder.agent.reports.metadata import MAX_OUTPUT, MetadataCollector
from coder.agent.ssh import sessions
from coder.agent.ssh.server import SshService
from coder.agent.state import AgentState
from coder.agent.workspace import children, script_log, scripts
from coder.agent.workspace.environment import find_identity
from coder.agent.workspace.logs import QUEUE_BYTES, LogQueue
from coder.agent.workspace.scripts import ScriptRunner, Stage, Status
from coder.net.ssh_library import asyncssh
from coder.rpc.proto import agent_pb2
from tests.kit.event_loop_probes import no_threads


class Runner:
    """Script runner whose lines and results the test reads."""

    def __init__(self, log_dir: Path, workdir: Path) -> None:
        self.state = _state(workdir)
        self.queue = LogQueue(lambda: datetime.now(UTC))
        self.timings: list[agent_pb2.Timing] = []
        self.runner = ScriptRunner(self.state, self.queue, self._report, log_dir, log_dir)
        self.runner.prepare()

    async def _report(self, timing: agent_pb2.Timing) -> None:
        self.timings.append(timing)

    async def run(self, text: str, log_path: str = "") -> Any:
        script = agent_pb2.WorkspaceAgentScript(script=text, log_path=log_path, log_source_id=bytes(16))
        with trio.fail_after(60):
            return await self.runner.run(script, Stage.START)

    def lines(self) -> list[str]:
        return [entry.output for _, entry in self.queue._lines]


def _state(workdir: Path) -> AgentState:
    state = AgentState(identity=find_identity(), token="t", url="http://x", executable="/bin/coder")
    state.manifest = agent_pb2.Manifest(workspace_name="w")
    state.directory = workdir
    return state


# ---- scripts


async def test_full_disk_keeps_script(tmp_path: Path) -> None:
    runner = Runner(tmp_path, tmp_path)
    assert await runner.run("echo one; echo two >&2; seq 1000", "/dev/full") == Status.OK
    assert {"one", "two", "1000"} <= set(runner.lines())


async def test_unwritable_folder_keeps_script(tmp_path: Path) -> None:
    runner = Runner(Path("/proc/nowhere"), tmp_path)
    assert await runner.run("echo one") == Status.OK
    assert runner.lines() == ["one"]


async def test_unread_pipe_keeps_script(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    runner = Runner(tmp_path, tmp_path)
    assert await runner.run("echo one", str(tmp_path / "pipe")) == Status.OK
    assert runner.lines() == ["one"]


async def test_huge_output_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script_log, "MAX_SIZE", 1 << 20)
    runner = Runner(tmp_path, tmp_path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert await runner.run("head -c 200000000 /dev/zero | tr '\\0' y; echo; echo end", "out.log") == Status.OK
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60 << 10, "KiB"
    assert runner.queue._size <= QUEUE_BYTES and runner.lines()[-1] == "end"


async def test_open_pipes_end_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scripts, "PIPE_GRACE", 0.2)
    runner = Runner(tmp_path, tmp_path)
    assert await runner.run("sleep 20 & echo $! > pid; echo done") == Status.PIPES_LEFT_OPEN
    assert runner.lines() == ["done"]
    os.kill(int((tmp_path / "pid").read_text()), 9)


async def test_missing_shell_is_reported(tmp_path: Path) -> None:
    runner = Runner(tmp_path, tmp_path)
    runner.state.identity = replace(runner.state.identity, shell="/no/such/shell")  # noqa: S604 - a field
    assert await runner.run("echo one") == Status.EXIT_FAILURE
    assert [line for line in runner.lines() if "/no/such/shell" in line], runner.lines()


async def test_invalid_variables_spare_commands(tmp_path: Path) -> None:
    """Variables come from a template or a secret; an impossible command line fails its own script alone."""
    runner = Runner(tmp_path, tmp_path)
    assert runner.state.manifest is not None
    runner.state.manifest.environment_variables.update({"A=B": "x", "": "y", "NUL": "a\0b", "FINE": "fine"})
    runner.state.manifest.secrets.add(env_name="SECRET", value=b"a\0b")
    assert await runner.run("echo $FINE $A $NUL $SECRET") == Status.OK
    assert runner.lines() == ["fine"]
    assert await runner.run("echo \0") == Status.EXIT_FAILURE
    assert runner.lines()[1] == "script could not be started: embedded null byte"
    collector = MetadataCollector(runner.state)
    await collector._collect(agent_pb2.WorkspaceAgentMetadata.Description(key="k", script="echo \0"), 10)
    assert collector._results["k"].error == "run cmd: embedded null byte"


# ---- metadata


async def test_endless_metadata_is_bounded(
    tmp_path: Path, mock_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "KILL_GRACE", math.inf)
    collector, there = MetadataCollector(_state(tmp_path)), tmp_path / "there"

    async def time_passes() -> None:
        """Advance the clock once the command has printed its output."""
        while True:
            if there.exists():
                mock_clock.jump(1)
            await trio.lowlevel.checkpoint()

    async def ends(script: str) -> tuple[str, str]:
        there.unlink(missing_ok=True)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(time_passes)
            found = await collector._run(script, 20)
            nursery.cancel_scope.cancel()
        return found

    value, error = await ends("head -c 100000 /dev/urandom")
    assert len(value) <= MAX_OUTPUT and "truncated from 100000" in error
    value.encode()  # sent values are always text
    value, error = await ends(f"yes | head -c 1000000; touch {there}; yes")
    assert error == "run cmd: timed out" and len(value) == MAX_OUTPUT
    value, error = await ends(f"sleep 30 & echo there; touch {there}")
    assert value == "there\n" and error == "run cmd: timed out"


async def test_thread_shortage_skips_turn(tmp_path: Path) -> None:
    runner, collector = Runner(tmp_path, tmp_path), MetadataCollector(_state(tmp_path))
    description = agent_pb2.WorkspaceAgentMetadata.Description(key="load", script="echo 1")
    with no_threads():
        assert await runner.run("echo one") == Status.EXIT_FAILURE
        await collector._collect(description, 10)
    assert runner.lines()[0].startswith("script could not be started: ") and "no room" in runner.lines()[0]
    assert "no room for another thread" in collector._results["load"].error
    assert await runner.run("echo one") == Status.OK


# ---- SSH


class Server:
    def __init__(self, port: int, state: AgentState) -> None:
        self.port, self.state = port, state

    async def dial(self) -> Any:
        return await aio_as_trio(asyncssh.connect)(
            "127.0.0.1", self.port, username="u", known_hosts=None, client_keys=None, config=None
        )

    async def answers(self) -> None:
        """Return whether another user's session works."""
        with trio.fail_after(60):
            connection = await self.dial()
            done = await aio_as_trio(connection.run)("echo fine")
            assert done.stdout == "fine\n"
            connection.close()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    state = _state(tmp_path)
    async with trio_asyncio.open_loop(), trio.open_nursery() as nursery:
        service = SshService(state)
        listeners = await nursery.start(trio.serve_tcp, service.serve, 0)
        yield Server(listeners[0].socket.getsockname()[1], state)
        with trio.fail_after(60):
            while service.runner.running:  # commands left by a test have lost their peer and end by themselves
                await trio.sleep(0.02)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("terminal", [None, "xterm"])
async def test_thread_shortage_allows_shell(server: Server, tmp_path: Path, terminal: str | None) -> None:
    (tmp_path / "motd").write_text("good morning")
    assert server.state.manifest is not None
    server.state.manifest.motd_path = str(tmp_path / "motd")
    connection = await server.dial()
    with no_threads(), trio.fail_after(60):
        done = await aio_as_trio(connection.run)("echo fine; exit 3", term_type=terminal)
        assert (done.stdout.strip(), done.exit_status) == ("fine", 3)
    connection.close()


async def test_program_ignoring_hangup_is_killed(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "REAP_GRACE", 0.05)
    connection = await server.dial()
    with no_threads(), trio.fail_after(60):
        deaf = "trap '' HUP; echo $$; while :; do sleep 1000; done"
        process = await aio_as_trio(connection.create_process)(deaf, term_type="xterm")
        number = int(await aio_as_trio(process.stdout.readline)())
        connection.close()
        while Path(f"/proc/{number}").exists():
            await trio.sleep(0.02)


async def test_stalled_client_is_bounded(server: Server) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    connection = await server.dial()
    process = await aio_as_trio(connection.create_process)("head -c 500000000 /dev/zero", encoding=None)
    process.stdout.channel.pause_reading()
    await server.answers()
    await trio.sleep(1)
    await server.answers()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    connection.abort()
    await aio_as_trio(connection.wait_closed)()
    assert grown < 100 << 10, f"{grown} KiB"


async def test_many_resizes_are_handled(server: Server) -> None:
    connection = await server.dial()
    process = await aio_as_trio(connection.create_process)("read x; stty size", term_type="xterm", term_size=(80, 24))
    for number in range(5000):
        process.change_terminal_size(1 + number % 300, 1 + number % 100)
    for width, height in ((0, 0), (2**32 - 1, 2**32 - 1), (70_000, 70_000), (101, 41)):
        process.change_terminal_size(width, height)
    process.stdin.write("\n")
    with trio.fail_after(60):
        printed = await aio_as_trio(process.stdout.read)()
    assert "41 101" in printed
    connection.close()
    await server.answers()


async def test_half_closed_channel_still_reads(server: Server) -> None:
    connection = await server.dial()
    process = await aio_as_trio(connection.create_process)("cat; echo after the end")
    process.stdin.write("sent\n")
    process.stdin.write_eof()
    with trio.fail_after(60):
        assert await aio_as_trio(process.stdout.read)() == "sent\nafter the end\n"
    connection.close()


async def test_noise_ends_own_connection(server: Server) -> None:
    rng = random.Random(14)
    for number in range(30):
        stream = await trio.open_tcp_stream("127.0.0.1", server.port)
        async with stream:
            if number % 3:
                await stream.send_all(b"SSH-2.0-noise\r\n")
            for _ in range(rng.randrange(1, 5)):
                body = rng.randbytes(rng.randrange(1, 4000))
                length = rng.choice((len(body), 0, 0x7FFFFFFF, 0xFFFFFFFF, rng.randrange(2**32)))
                try:
                    await stream.send_all(length.to_bytes(4, "big") + body)
                except trio.BrokenResourceError:
                    break
    await server.answers()


def _string(value: bytes) -> bytes:
    return len(value).to_bytes(4, "big") + value


ODD_TEXTS = (b"", b"\0", b"\xff\xfe", b"true", b"A=b", b"127.0.0.1", b"a" * 70 + b".b", b"/nonexistent/x", b"x" * 300)
NAMES = {
    80: (
        b"tcpip-forward",
        b"cancel-tcpip-forward",
        b"streamlocal-forward@openssh.com",
        b"keepalive@openssh.com",
        b"cancel-streamlocal-forward@openssh.com",
        b"hostkeys-prove-00@openssh.com",
        b"\xff",
    ),
    90: (b"session", b"direct-tcpip", b"direct-streamlocal@openssh.com", b"forwarded-tcpip", b"x11", b"\xff"),
    98: (
        b"pty-req",
        b"shell",
        b"exec",
        b"subsystem",
        b"env",
        b"signal",
        b"window-change",
        b"x11-req",
        b"break",
        b"auth-agent-req@openssh.com",
        b"exit-status",
        b"eow@openssh.com",
        b"\xff",
    ),
}
"""Global requests, channels and their requests (RFC 4254)."""


def a_number(rng: random.Random) -> bytes:
    return rng.choice((0, 0, 0, 1, 80, 2**31, 2**32 - 1)).to_bytes(4, "big")


def fields(rng: random.Random, limit: int) -> bytes:
    """Return numbers, texts and noise in the layout of a packet."""

    def one() -> bytes:
        text = _string(rng.choice(ODD_TEXTS))
        return rng.choice((a_number(rng), text, text, rng.randbytes(rng.randrange(9)), b"\1", b"\0"))

    return b"".join(one() for _ in range(rng.randrange(limit)))


def a_packet(rng: random.Random) -> tuple[int, bytes]:
    """Return kind and body of a client's packet: nearly valid, cut off, or random."""
    kind = rng.choice(
        (*NAMES, 98, 98, 93, 94, 95, 96, 97, 99, 100, 91, 92, 2, 4, 5, 20, 21, 30, 50, rng.randrange(256))
    )
    body = _string(rng.choice(NAMES[kind])) if kind in (80, 90) else a_number(rng)
    body += _string(rng.choice(NAMES[98])) + rng.choice((b"\0", b"\1")) if kind == 98 else b""
    body += fields(rng, 7)
    return kind, body[: rng.randrange(len(body) + 1)] if rng.random() < 0.2 else body


async def test_hostile_client_ends_own_connection(
    server: Server, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(1414)
    for _ in range(100):
        connection = await server.dial()
        connection.send_packet(90, _string(b"session") + bytes(4) + b"\0\1\0\0" * 2)
        for _ in range(rng.randrange(1, 8)):
            connection.send_packet(*a_packet(rng))
        # The reply, which our client did not request, makes it disconnect: by then everything before was read.
        connection.send_packet(80, _string(b"keepalive@openssh.com") + b"\1")
        with trio.fail_after(60):
            await aio_as_trio(connection.wait_closed)()
    await server.answers()
    assert not [record for record in caplog.records if record.exc_info], caplog.text
    assert "Traceback" not in capfd.readouterr().err


async def test_hostile_sftp_ends_own_session(
    server: Server, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(1415)
    for _ in range(40):
        connection = await server.dial()
        process = await aio_as_trio(connection.create_process)(subsystem="sftp", encoding=None)
        packets = [b"\1\0\0\0\3"]  # the version
        for _ in range(rng.randrange(1, 12)):
            kind = rng.choice((*range(1, 21), 200, rng.randrange(256)))
            packets.append(bytes([kind]) + a_number(rng) + _string(rng.choice(ODD_TEXTS)) + fields(rng, 5))
        for packet in packets:
            length = len(packet) if rng.random() < 0.95 else rng.choice((0, 1, 2**32 - 1))
            process.stdin.write(length.to_bytes(4, "big") + packet)
        process.stdin.write_eof()
        with trio.fail_after(60):
            await aio_as_trio(process.wait_closed)()
        connection.abort()
        await aio_as_trio(connection.wait_closed)()
    await server.answers()
    assert not [record for record in caplog.records if record.exc_info], caplog.text
    assert "Traceback" not in capfd.readouterr().err


async def test_missing_shell_ends_session(server: Server) -> None:
    server.state.identity = replace(server.state.identity, shell="/no/such/shell")  # noqa: S604 - a field
    connection = await server.dial()
    with trio.fail_after(60):
        done = await aio_as_trio(connection.run)("echo one")
    assert done.exit_status not in {0, None}
    assert "/no/such/shell" in str(done.stderr), done.stderr
    connection.close()
