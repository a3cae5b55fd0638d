"""A workspace that is broken or hostile costs what is broken, with one clear line, and nobody else anything."""

from __future__ import annotations

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
import trio_asyncio
from trio_asyncio import aio_as_trio

from coder.agent.reports.metadata import OUTPUT_LIMIT, MetadataCollector
from coder.agent.ssh.server import SshService
from coder.agent.state import AgentState
from coder.agent.workspace import script_log, scripts
from coder.agent.workspace.environment import find_identity
from coder.agent.workspace.logs import QUEUE_BYTES, LogQueue
from coder.agent.workspace.scripts import ScriptRunner, Stage, Status
from coder.net.ssh_library import asyncssh
from coder.rpc.proto import agent_pb2


class Runner:
    """A script runner whose lines and results the test sees."""

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
        with trio.fail_after(30):
            return await self.runner.run(script, Stage.START)

    def lines(self) -> list[str]:
        return [entry.output for _, entry in self.queue._lines]


def _state(workdir: Path) -> AgentState:
    state = AgentState(identity=find_identity(), token="t", url="http://x", executable="/bin/coder")
    state.manifest = agent_pb2.Manifest(workspace_name="w")
    state.directory = workdir
    return state


# ---- scripts


async def test_a_full_disk_costs_the_file_and_not_the_script(tmp_path: Path) -> None:
    runner = Runner(tmp_path, tmp_path)
    assert await runner.run("echo one; echo two >&2; seq 1000", "/dev/full") == Status.OK
    assert {"one", "two", "1000"} <= set(runner.lines())


async def test_a_folder_that_cannot_be_written_costs_the_file_and_not_the_script(tmp_path: Path) -> None:
    runner = Runner(Path("/proc/nowhere"), tmp_path)
    assert await runner.run("echo one") == Status.OK
    assert runner.lines() == ["one"]


async def test_gigabytes_of_output_are_a_bounded_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script_log, "MOST", 1 << 20)
    runner = Runner(tmp_path, tmp_path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert await runner.run("head -c 200000000 /dev/zero | tr '\\0' y; echo; echo end", "out.log") == Status.OK
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60 << 10, "KiB"
    assert runner.queue._size <= QUEUE_BYTES and runner.lines()[-1] == "end"


async def test_a_child_that_keeps_the_pipes_does_not_keep_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scripts, "PIPE_GRACE", 0.2)
    runner = Runner(tmp_path, tmp_path)
    assert await runner.run("sleep 20 & echo $! > pid; echo done") == Status.PIPES_LEFT_OPEN
    assert runner.lines() == ["done"]
    os.kill(int((tmp_path / "pid").read_text()), 9)


async def test_a_machine_without_a_shell_says_so(tmp_path: Path) -> None:
    runner = Runner(tmp_path, tmp_path)
    runner.state.identity = replace(runner.state.identity, shell="/no/such/shell")  # noqa: S604 - a field
    assert await runner.run("echo one") == Status.EXIT_FAILURE
    assert [line for line in runner.lines() if "/no/such/shell" in line], runner.lines()


# ---- metadata


async def test_binary_and_endless_metadata_is_text_and_ends(tmp_path: Path) -> None:
    collector = MetadataCollector(_state(tmp_path))
    with trio.fail_after(30):
        value, error = await collector._run("head -c 100000 /dev/urandom", 20)
        assert len(value) <= OUTPUT_LIMIT and "truncated from 100000" in error
        value.encode()  # what is sent is always text
        value, error = await collector._run("yes", 0.5)
        assert error == "run cmd: timed out" and len(value) == OUTPUT_LIMIT
        value, error = await collector._run("sleep 20 & echo there", 0.5)
        assert value == "there\n" and error == "run cmd: timed out"


# ---- SSH


class Server:
    def __init__(self, port: int, state: AgentState) -> None:
        self.port, self.state = port, state

    async def dial(self) -> Any:
        return await aio_as_trio(asyncssh.connect)(
            "127.0.0.1", self.port, username="u", known_hosts=None, client_keys=None, config=None
        )

    async def answers(self) -> None:
        """A session of somebody else works."""
        with trio.fail_after(20):
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
        with trio.fail_after(20):
            while service.runner.running:  # what a test left behind has lost its peer and ends by itself
                await trio.sleep(0.02)
        nursery.cancel_scope.cancel()


async def test_a_client_that_stops_reading_keeps_nobody_and_no_memory(server: Server) -> None:
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


async def test_a_storm_of_sizes_is_weathered(server: Server) -> None:
    connection = await server.dial()
    process = await aio_as_trio(connection.create_process)("read x; stty size", term_type="xterm", term_size=(80, 24))
    for number in range(5000):
        process.change_terminal_size(1 + number % 300, 1 + number % 100)
    for width, height in ((0, 0), (2**32 - 1, 2**32 - 1), (70_000, 70_000), (101, 41)):
        process.change_terminal_size(width, height)
    process.stdin.write("\n")
    with trio.fail_after(20):
        said = await aio_as_trio(process.stdout.read)()
    assert "41 101" in said
    connection.close()
    await server.answers()


async def test_a_half_closed_channel_goes_on_the_other_way(server: Server) -> None:
    connection = await server.dial()
    process = await aio_as_trio(connection.create_process)("cat; echo after the end")
    process.stdin.write("sent\n")
    process.stdin.write_eof()
    with trio.fail_after(20):
        assert await aio_as_trio(process.stdout.read)() == "sent\nafter the end\n"
    connection.close()


async def test_packets_of_noise_end_one_connection_each(server: Server) -> None:
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


async def test_a_session_without_a_shell_ends_with_a_word(server: Server) -> None:
    server.state.identity = replace(server.state.identity, shell="/no/such/shell")  # noqa: S604 - a field
    connection = await server.dial()
    with trio.fail_after(20):
        done = await aio_as_trio(connection.run)("echo one")
    assert done.exit_status not in {0, None}
    assert "/no/such/shell" in str(done.stderr), done.stderr
    connection.close()
