"""Commands started through the API."""

from __future__ import annotations

import gc
import json
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from coder.agent.network.http_api import HttpApi
from coder.agent.network.http_messages import HttpRequest
from coder.agent.state import AgentState
from coder.agent.workspace import processes
from coder.agent.workspace.children import Child
from coder.agent.workspace.environment import find_identity
from coder.agent.workspace.processes import HEAD, TAIL, Output, Processes


class ApiClient:
    """API of an agent, called without a connection."""

    def __init__(self, state: AgentState) -> None:
        self._api = HttpApi(state)

    async def __call__(self, method: str, path: str, body: Any = None, *, status: int = 200, **query: str) -> Any:
        wanted = {name: [value] for name, value in query.items()}
        request = HttpRequest(method, f"/api/v0/processes/{path}", wanted, json.dumps(body).encode())
        reply = await self._api._answer(request)
        assert reply.status == status, reply.body
        return json.loads(reply.body)

    async def started(self, command: str, **more: Any) -> str:
        return str((await self("POST", "start", {"command": command, **more}))["id"])

    async def ended(self, ident: str) -> Any:
        return await self("GET", f"{ident}/output", wait="true")


@asynccontextmanager
async def open_api() -> AsyncIterator[ApiClient]:
    state = AgentState(identity=find_identity(), token="t", url="http://x", executable="/bin/coder")
    table = Processes(state)
    state.processes = table
    async with trio.open_nursery() as nursery:
        nursery.start_soon(table.run)
        await trio.testing.wait_all_tasks_blocked()
        with trio.fail_after(60):
            yield ApiClient(state)
        nursery.cancel_scope.cancel()


async def test_command_runs_to_end(tmp_path: Path) -> None:
    async with open_api() as ask:
        ident = await ask.started("echo $X; pwd; echo no >&2; exit 3", workdir=str(tmp_path), env={"X": "said"})
        found = await ask.ended(ident)
        assert found == {
            "output": f"said\n{tmp_path}\nno\n",
            "truncated": None,
            "running": False,
            "exit_code": 3,
            "command": "echo $X; pwd; echo no >&2; exit 3",
        }
        (row,) = (await ask("GET", "list"))["processes"]
        assert (row["id"], row["running"], row["exit_code"], row["workdir"]) == (ident, False, 3, str(tmp_path))
        refused = await ask("POST", f"{ident}/signal", {"signal": "kill"}, status=409)
        assert "is not running" in refused["message"]


async def test_signal_reaches_children() -> None:
    async with open_api() as ask:
        ident = await ask.started("sleep 600 & wait", background=True)
        ended = await ask.started("true")
        await ask.ended(ended)
        rows = (await ask("GET", "list"))["processes"]
        assert [(row["id"], row["running"], row["background"]) for row in rows] == [
            (ident, True, True),
            (ended, False, False),
        ]
        assert (await ask("GET", f"{ident}/output"))["running"]
        await ask("POST", f"{ident}/signal", {"signal": "hup"}, status=400)
        await ask("POST", f"{ident}/signal", {"signal": "terminate"})
        assert (await ask.ended(ident))["exit_code"] == -15


async def test_open_pipe_is_not_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "DRAIN_TIMEOUT", 0.05)
    async with open_api() as ask:
        ident = await ask.started("echo early; sleep 600 & exit 0")
        found = await ask.ended(ident)
        assert (found["output"], found["exit_code"]) == ("early\n", 0)


@pytest.mark.parametrize("body", [None, {}, {"command": ""}, {"command": 7}, {"command": "true", "env": {"A": 1}}, []])
async def test_invalid_requests_are_rejected(body: Any) -> None:
    async with open_api() as ask:
        await ask("POST", "start", body, status=400)
        await ask("POST", "start", {"command": "true", "workdir": "/none"}, status=404)
        await ask("GET", "unknown/output", status=404)
        await ask("GET", "unknown/else", status=404)
        assert (await ask("GET", "list")) == {"processes": []}


async def test_limits_are_enforced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "MAX_RUNNING", 1)
    monkeypatch.setattr(processes, "MAX_ENDED", 2)
    async with open_api() as ask:
        for number in range(4):
            await ask.ended(await ask.started(f"echo {number}"))
        await ask.started("sleep 600")
        commands = [row["command"] for row in (await ask("GET", "list"))["processes"]]
        assert commands == ["sleep 600", "echo 3", "echo 2"]
        refused = await ask("POST", "start", {"command": "true"}, status=400)
        assert "are already running" in refused["detail"]


def test_output_keeps_head_and_tail() -> None:
    output = Output()
    output.add(b"a" * HEAD)
    assert output.truncated() is None
    for _ in range(10):
        output.add(b"b" * TAIL)
    output.add(b"end")
    text = output.text()
    assert text.startswith("a" * HEAD + "\n[… ") and text.endswith("bend")
    counts = output.truncated()
    assert counts == {
        "original_bytes": HEAD + 10 * TAIL + 3,
        "retained_bytes": HEAD + TAIL,
        "omitted_bytes": 9 * TAIL + 3,
        "strategy": "head_tail",
    }


async def test_handover_continues_processes(tmp_path: Path) -> None:
    state = AgentState(identity=find_identity(), token="t", url="http://x", executable="/bin/coder")
    before, go = Processes(state), tmp_path / "go"
    state.processes = before
    ask = ApiClient(state)
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(before.run)
            await trio.testing.wait_all_tasks_blocked()
            done = await ask.started("echo done; exit 4")
            await ask.ended(done)
            going = await ask.started(f"echo one; while [ ! -e {go} ]; do sleep 0.05; done; echo two; exit 5")
            while "one" not in (await ask("GET", f"{going}/output"))["output"]:
                await trio.sleep(0.01)
            before.release()
            nursery.cancel_scope.cancel()
        left, after = before.handover_state(), Processes(state)
        state.processes = after
        async with trio.open_nursery() as nursery:
            nursery.start_soon(after.run, left)
            await trio.testing.wait_all_tasks_blocked()
            assert [row["id"] for row in (await ask("GET", "list"))["processes"]] == [going, done]
            assert (await ask.ended(done))["exit_code"] == 4
            go.touch()
            found = await ask.ended(going)
            assert (found["output"], found["exit_code"], found["running"]) == ("one\ntwo\n", 5, False)
            nursery.cancel_scope.cancel()


async def test_failed_handover_waits_once(tmp_path: Path) -> None:
    """The other program could not start. A later Popen reaps the children of dropped ones."""
    state = AgentState(identity=find_identity(), token="t", url="http://x", executable="/bin/coder")
    go = tmp_path / "go"
    with trio.fail_after(60):
        before = Processes(state)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(before.run)
            await trio.testing.wait_all_tasks_blocked()
            made = await before.start(f"while [ ! -e {go} ]; do sleep 0.05; done; exit 5", "", {}, background=True)
            before.release()
            nursery.cancel_scope.cancel()
        left = before.handover_state()
        del before, made
        gc.collect()
        go.touch()
        os.waitid(os.P_PID, left[0].pid, os.WEXITED | os.WNOWAIT)
        subprocess.run(["true"], check=True)
        after = Processes(state)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(after.run, left)
            await trio.testing.wait_all_tasks_blocked()
            found = after.get(left[0].ident)
            assert found is not None
            await found.ended.wait()
            assert found.exit_code() == 5
            nursery.cancel_scope.cancel()


def test_descriptor_shortage_loses_one_output(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_descriptors(_: int) -> int:
        raise OSError(24, "Too many open files")

    reading, writing = os.pipe()
    child = Child(os.getpid(), reading)
    made = processes.StartedProcess("a", "x", "/", False, child, 1.0)
    monkeypatch.setattr(os, "dup", no_descriptors)
    left = made.handover_state()
    assert (left.ident, left.output, left.exited) == ("a", None, None)
    assert child.stdout is not None
    os.close(writing)
    child.stdout._fd_holder._raw_close()


async def test_starting_processes_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "MAX_RUNNING", 2)
    state = AgentState(identity=find_identity(), token="t", url="http://x", executable="/bin/coder")
    table, refused = Processes(state), 0

    async def start() -> None:
        nonlocal refused
        try:
            await table.start("sleep 1000", "", {}, background=True)
        except ValueError:
            refused += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(table.run)
        await trio.testing.wait_all_tasks_blocked()
        async with trio.open_nursery() as starting:
            for _ in range(5):
                starting.start_soon(start)
        assert (len(table.rows()), refused) == (2, 3)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("end", ["ends", "hands over"])
async def test_shutdown_stops_starting_command(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    state = AgentState(identity=find_identity(), token="t", url="http://x", executable="/bin/coder")
    table, begun = Processes(state), list[trio.Process]()
    open_process = trio.lowlevel.open_process

    async def slowly(*arguments: Any, **options: Any) -> trio.Process:
        process = await open_process(*arguments, **options)
        begun.append(process)
        if end == "hands over":
            table.release()
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            await trio.testing.wait_all_tasks_blocked()
        return process

    monkeypatch.setattr(trio.lowlevel, "open_process", slowly)
    refused: list[str] = []

    async def start() -> None:
        with trio.CancelScope(shield=True):
            try:
                await table.start("sleep 1000", "", {}, background=True)
            except ValueError as error:
                refused.append(str(error))

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(table.run)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(start)
    assert refused == ["the agent is shutting down"]
    assert [process.returncode for process in begun] == [-9]
