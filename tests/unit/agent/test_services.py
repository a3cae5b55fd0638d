"""Overlay services of the agent over in-memory streams: terminals, HTTP API, speed test; cron and lifecycle rules."""

from __future__ import annotations

import json
import os
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from coder.agent.lifecycle import Lifecycle, State
from coder.agent.network.http_api import HttpApi
from coder.agent.network.reconnecting_pty import PtyService, _read_init, _split_messages
from coder.agent.network.speedtest import serve_speedtest
from coder.agent.state import AgentState
from coder.agent.workspace.environment import find_identity
from coder.agent.workspace.logs import LogQueue
from coder.agent.workspace.scripts import ScriptRunner, Stage
from coder.rpc.errors import RpcClosed
from coder.rpc.proto import agent_pb2
from tests.kit.paths import DATA

RECORDED = DATA / "wire"


def make_state(tmp_path: Path) -> AgentState:
    state = AgentState(identity=find_identity(), token="t", url="http://x", executable="/bin/coder")
    state.manifest = agent_pb2.Manifest(workspace_name="w")
    state.directory = tmp_path
    return state


def pty_init(ident: str, command: str = "") -> bytes:
    body = json.dumps({"ID": ident, "Height": 24, "Width": 80, "Command": command}).encode()
    return len(body).to_bytes(2, "little") + body


async def read_until(stream: trio.abc.ReceiveStream, marker: bytes) -> bytes:
    seen = b""
    with trio.fail_after(60):
        while marker not in seen:
            chunk = await stream.receive_some()
            assert chunk, seen
            seen += chunk
    return seen


async def test_terminal_replays_after_reconnect(tmp_path: Path) -> None:
    async with trio.open_nursery() as nursery:
        service = PtyService(make_state(tmp_path), nursery)
        ident = str(uuid.uuid4())
        first, far = trio.testing.memory_stream_pair()
        nursery.start_soon(service.serve, far)
        await first.send_all(pty_init(ident, "echo ready; read x; echo got:$x; read y"))
        await read_until(first, b"ready")
        await first.send_all(b'{"height":33,"width":44}{"data":"abc')
        await first.send_all(b'\\n"}')
        await read_until(first, b"got:abc")
        await first.aclose()

        second, far = trio.testing.memory_stream_pair()
        nursery.start_soon(service.serve, far)
        await second.send_all(pty_init(ident))
        assert b"ready" in await read_until(second, b"got:abc")
        await second.send_all(b'{"data":"\\n"}')
        with trio.fail_after(60):
            while await second.receive_some():
                pass
        nursery.cancel_scope.cancel()


async def test_half_character_is_replaced(tmp_path: Path) -> None:
    async with trio.open_nursery() as nursery:
        service = PtyService(make_state(tmp_path), nursery)
        near, far = trio.testing.memory_stream_pair()
        nursery.start_soon(service.serve, far)
        await near.send_all(pty_init(str(uuid.uuid4()), "echo ready; read x; printf 'got:%s:' \"$x\"; read y"))
        await read_until(near, b"ready")
        await near.send_all(b'{"data":"\\ud800\\n"}')
        await read_until(near, "got:\ufffd:".encode())
        nursery.cancel_scope.cancel()


async def test_deeply_nested_input_disconnects(tmp_path: Path) -> None:
    async with trio.open_nursery() as nursery:
        service = PtyService(make_state(tmp_path), nursery)
        near, far = trio.testing.memory_stream_pair()
        nursery.start_soon(service.serve, far)
        await near.send_all(pty_init(str(uuid.uuid4()), "echo ready; read x"))
        await read_until(near, b"ready")
        await near.send_all(b'{"data":' + b"[" * 100_000)
        with trio.fail_after(60):
            while await near.receive_some():
                pass
        nursery.cancel_scope.cancel()


async def test_two_viewers_type_concurrently(tmp_path: Path) -> None:
    each = 300_000
    command = f"stty raw -echo; echo ready; until [ -e go ]; do sleep 0.05; done; head -c {2 * each} | wc -c; read y"
    async with trio.open_nursery() as nursery:
        service, ident, viewers = PtyService(make_state(tmp_path), nursery), str(uuid.uuid4()), []
        for _ in range(2):
            near, far = trio.testing.memory_stream_pair()
            nursery.start_soon(service.serve, far)
            await near.send_all(pty_init(ident, command))
            await read_until(near, b"ready")
            viewers.append(near)
        for near in viewers:
            await near.send_all(json.dumps({"data": "x" * each}).encode())
        for _ in range(10):  # both have made as much progress as possible
            await trio.sleep(0.01)
        (tmp_path / "go").touch()
        for near in viewers:
            await read_until(near, str(2 * each).encode())
        nursery.cancel_scope.cancel()


async def test_viewer_disconnect_is_no_error(tmp_path: Path) -> None:
    class Cut(trio.abc.ReceiveStream):
        is_cut = False

        async def receive_some(self, max_bytes: int | None = None) -> bytes:
            found = bytes(await far.receive_stream.receive_some(max_bytes))
            if self.is_cut:
                raise trio.BrokenResourceError("reset")
            return found

        async def aclose(self) -> None:
            await far.receive_stream.aclose()

    state = make_state(tmp_path)
    async with trio.open_nursery() as nursery:
        service = PtyService(state, nursery)
        near, far = trio.testing.memory_stream_pair()
        cut = Cut()
        async with trio.open_nursery() as serving:
            serving.start_soon(service.serve, trio.StapledStream(far.send_stream, cut))
            await near.send_all(pty_init(str(uuid.uuid4()), "echo ready; read x"))
            await read_until(near, b"ready")
            cut.is_cut = True
            await near.send_all(b" ")
        assert state.sessions["reconnecting_pty"] == 0
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("case", json.loads((RECORDED / "pty_init.json").read_text()), ids=lambda case: case["kind"])
async def test_recorded_terminal_messages(case: dict[str, str]) -> None:
    near, far = trio.testing.memory_stream_pair()
    if case["kind"].startswith("init"):
        await near.send_all(bytes.fromhex(case["hex"]) + b"rest")
        init, rest = await _read_init(far)
        wanted = json.loads(case["json"])
        assert (init.ident, init.height, init.width, init.command) == tuple(
            wanted[key] for key in ("ID", "Height", "Width", "Command")
        )
        assert rest == b"rest"
    else:
        text = bytes.fromhex(case["hex"]).decode() if "hex" in case else case["json"]
        assert _split_messages(json.JSONDecoder(), text) == ([json.loads(case["json"])], "")


def init_message(**fields: object) -> bytes:
    body = json.dumps({"ID": "x", **fields}).encode()
    return len(body).to_bytes(2, "little") + body


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"\x05\x00abc",
        b"\x02\x00{}",
        b"\x02\x00[]",
        b"\x04\x00nope",
        init_message(Height=[]),
        init_message(Width={}),
        init_message(Height=float("inf")),
        init_message(Height="tall"),
    ],
)
async def test_bad_terminal_init_closes_silently(tmp_path: Path, garbage: bytes) -> None:
    async with trio.open_nursery() as nursery:
        service = PtyService(make_state(tmp_path), nursery)
        near, far = trio.testing.memory_stream_pair()
        nursery.start_soon(service.serve, far)
        await near.send_all(garbage)
        await near.send_eof()
        assert await near.receive_some() == b""
        nursery.cancel_scope.cancel()


async def test_terminal_open_failure_is_reported(tmp_path: Path) -> None:
    async with trio.open_nursery() as nursery:
        service = PtyService(make_state(tmp_path), nursery)
        for fields, expected in (
            ({"Command": "echo \0"}, "null byte"),
            ({"Command": "echo fine", "Height": -1}, "fine"),
        ):
            near, far = trio.testing.memory_stream_pair()
            nursery.start_soon(service.serve, far)
            await near.send_all(init_message(**fields))
            with trio.fail_after(60):
                assert expected in bytes(await near.receive_some()).decode()
            await near.aclose()
        nursery.cancel_scope.cancel()


async def http(state: AgentState, target: str, method: str = "GET") -> tuple[int, dict[str, object]]:
    near, far = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(HttpApi(state).serve, far)
        await near.send_all(f"{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        data = b""
        while chunk := await near.receive_some():
            data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


async def test_http_api_basic_routes(tmp_path: Path) -> None:
    state = make_state(tmp_path)
    assert await http(state, "/") == (200, {"message": "Hello from the agent!"})
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    status, answer = await http(state, "/api/v0/listening-ports")
    assert status == 200
    assert port in [item["port"] for item in answer["ports"]]  # type: ignore[attr-defined]
    await listeners[0].aclose()
    assert (await http(state, "/nope"))[0] == 404
    status, refusal = await http(state, "/api/v0/containers")
    assert (status, refusal["message"]) == (403, "Dev Container feature not enabled.")
    assert "CODER_AGENT_DEVCONTAINERS_ENABLE=true" in str(refusal["detail"])
    assert (await http(state, "/api/v0/read-file?path=/does/not/exist"))[0] == 404


async def test_http_api_rejects_bad_input(tmp_path: Path) -> None:
    state = make_state(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert (await http(state, f"/api/v0/read-file?path={tmp_path}/pipe"))[0] == 400
    assert (await http(state, f"/api/v0/write-file?path={tmp_path}/pipe", "POST"))[0] == 400
    for query in ("offset=x", "limit=-5", "offset=-1"):
        assert (await http(state, f"/api/v0/read-file?path=/etc/passwd&{query}"))[0] == 400, query
    assert (await http(state, "/api/v0/read-file?path=/x%00"))[0] == 400


async def test_speedtest_rejects_other_versions() -> None:
    near, far = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_speedtest, far)
        await near.send_all(b'{"version":1,"time":1,"direction":0}\n')
        answer = await read_until(near, b"\n")
    assert json.loads(answer) == {"error": "version mismatch! Server is version 2, client is version 1"}


async def test_scripts_report_results(tmp_path: Path) -> None:
    queue = LogQueue(lambda: datetime.now(UTC))
    timings: list[agent_pb2.Timing] = []

    async def report(timing: agent_pb2.Timing) -> None:
        timings.append(timing)

    runner = ScriptRunner(make_state(tmp_path), queue, report, tmp_path / "logs", tmp_path)
    runner.prepare()
    source = uuid.uuid4().bytes
    good = agent_pb2.WorkspaceAgentScript(
        id=b"g" * 16, log_source_id=source, script="echo hi; echo $CODER_SCRIPT_BIN_DIR"
    )
    bad = agent_pb2.WorkspaceAgentScript(id=b"b" * 16, log_source_id=source, script="echo no >&2; exit 3")
    slow = agent_pb2.WorkspaceAgentScript(id=b"s" * 16, log_source_id=source, script="sleep 1000")
    slow.timeout.FromMilliseconds(200)
    outcome = await runner.run_all([good, bad, slow], Stage.START)
    assert outcome.failed and outcome.timed_out
    by_id = {timing.script_id: timing for timing in timings}
    assert by_id[b"g" * 16].exit_code == 0
    assert (by_id[b"b" * 16].exit_code, by_id[b"b" * 16].status) == (3, agent_pb2.Timing.EXIT_FAILURE)
    assert by_id[b"s" * 16].status == agent_pb2.Timing.TIMED_OUT
    sent: list[str] = []

    async def send(request: agent_pb2.BatchCreateLogsRequest) -> agent_pb2.BatchCreateLogsResponse:
        sent.extend(entry.output for entry in request.logs)
        return agent_pb2.BatchCreateLogsResponse()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(queue.send_loop, send)
        await queue.wait_sent()
        nursery.cancel_scope.cancel()
    assert {"hi", "no", "script exited with code 3", "script timed out"} <= set(sent)


async def test_dropped_lines_are_counted() -> None:
    """The queue overflows during a call: every line arrives, or counts as dropped."""
    queue = LogQueue(lambda: datetime.now(UTC))
    arrived: list[str] = []
    calls = 0
    line, made = "x" * 1000, 0

    def fill(count: int) -> None:
        nonlocal made
        for _ in range(count):
            queue.add(b"s" * 16, f"{made:06}{line}", agent_pb2.Log.INFO)
            made += 1

    async def send(request: agent_pb2.BatchCreateLogsRequest) -> agent_pb2.BatchCreateLogsResponse:
        nonlocal calls
        calls += 1
        if calls <= 3:
            fill(1500)  # two thousand have room
        if calls == 2:
            raise RpcClosed  # the connection breaks
        arrived.extend(entry.output for entry in request.logs)
        return agent_pb2.BatchCreateLogsResponse()

    fill(1000)
    for _ in range(2):
        with trio.move_on_after(5):
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(queue.send_loop, send)
                    await queue.wait_sent()
                    nursery.cancel_scope.cancel()
            except* RpcClosed:
                pass
    numbers = [int(text[:6]) for text in arrived if text.endswith(line)]
    dropped = [int(text[1:].split()[0]) for text in arrived if text.endswith("were dropped)")]
    assert numbers == sorted(set(numbers))
    assert len(numbers) + sum(dropped) == made
    assert len(queue) == 0


class _Counted(str):
    """Text that records the copied characters."""

    copied = 0

    def __getitem__(self, key: Any) -> str:
        part = super().__getitem__(key)
        _Counted.copied += len(part)
        return _Counted(part)

    def lstrip(self, chars: str | None = None, /) -> str:
        return _Counted(super().lstrip(chars))


def test_many_messages_are_not_recopied() -> None:
    _Counted.copied = 0
    found, rest = _split_messages(json.JSONDecoder(), _Counted(" {} " * 10_000 + '{"data":'))
    assert (len(found), rest, _Counted.copied) == (10_000, '{"data":', len(' {"data":'))


async def test_end_cron_finishes_running_script(tmp_path: Path) -> None:
    codes: list[int] = []

    async def report(timing: agent_pb2.Timing) -> None:
        codes.append(timing.exit_code)

    runner = ScriptRunner(make_state(tmp_path), LogQueue(lambda: datetime.now(UTC)), report, tmp_path, tmp_path)
    runner.prepare()
    began, go = tmp_path / "began", tmp_path / "go"
    os.mkfifo(began)
    os.mkfifo(go)
    soon = agent_pb2.WorkspaceAgentScript(
        log_source_id=b"s" * 16, cron="* * * * * *", script=f"echo >{began}; read x <{go}; exit 7"
    )
    late = agent_pb2.WorkspaceAgentScript(log_source_id=b"l" * 16, cron="@yearly", script="exit 8")
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(runner.run_cron, [soon, late])
            await trio.to_thread.run_sync(began.read_text)
            runner.end_cron()
            await trio.to_thread.run_sync(go.write_text, "\n")
    assert codes == [7]


async def test_invalid_cron_line_is_logged(tmp_path: Path) -> None:
    ran = trio.Event()

    async def report(_: agent_pb2.Timing) -> None:
        ran.set()

    queue = LogQueue(lambda: datetime.now(UTC))
    runner = ScriptRunner(make_state(tmp_path), queue, report, tmp_path, tmp_path)
    runner.prepare()
    bad = agent_pb2.WorkspaceAgentScript(log_source_id=b"b" * 16, cron="0 0 25 * * *", script="exit 1")
    good = agent_pb2.WorkspaceAgentScript(log_source_id=b"g" * 16, cron="TZ=Asia/Tokyo * * * * * *", script="exit 0")
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(runner.run_cron, [bad, good])
            await ran.wait()
            runner.end_cron()
    dropped = [entry.output for _, entry in queue._lines]
    assert dropped == ["the cron line is invalid: end of range (25) above maximum (23): 25"]


async def test_lifecycle_reports_every_state() -> None:
    life = Lifecycle(lambda: datetime.now(UTC))
    life.set(State.STARTING)
    life.set(State.READY)
    life.set(State.STARTING)
    seen = []
    for _ in range(2):
        seen.append((await life.next_unreported()).state)
        life.confirm()
    assert seen == [State.STARTING, State.READY]
    await life.wait_sent()


@pytest.mark.parametrize(
    ("reported", "expected"), [(None, []), (2, []), (1, [State.READY]), (0, [State.STARTING, State.READY])]
)
async def test_unconfirmed_states_survive_handover(reported: int | None, expected: list[State.ValueType]) -> None:
    before, after = Lifecycle(lambda: datetime.now(UTC)), Lifecycle(lambda: datetime.now(UTC))
    for state in (State.STARTING, State.READY):
        before.set(state)
    for _ in range(reported or 0):
        before.confirm()
    assert before.reported == (reported or 0)
    after.resume(before.history(), reported)
    assert len(after) == len(expected) and after.current == State.READY
    for state in expected:
        assert (await after.next_unreported()).state == state
        after.confirm()
    await after.wait_sent()
