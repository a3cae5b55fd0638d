"""Scripts that wait for each other, by the commands they run."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from coder.agent.reports.app_status import FIELDS
from coder.agent.workspace.sync_socket import MAX_LINE, SyncSocket
from coder.base.errors import CoderError
from tests.kit.programs.command_line import Result, run_cli


@asynccontextmanager
async def serving(path: Path | None = None) -> AsyncIterator[SyncSocket]:
    made = SyncSocket(path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(made.run)
        with trio.fail_after(60):
            while not made.path.exists():
                await trio.sleep(0.01)
        yield made
        nursery.cancel_scope.cancel()


async def sync(path: Path, home: Path, words: str, code: int = 0) -> Result:
    result = await run_cli(["exp", "sync", *words.split()], home=home, env={"CODER_AGENT_SOCKET_PATH": str(path)})
    assert result.code == code, result.stderr
    return result


async def raw(path: Path, line: bytes) -> bytes:
    async with await trio.open_unix_socket(str(path)) as stream:
        await stream.send_all(line)
        return bytes(await stream.receive_some(65536))


async def test_script_waits_for_dependency(tmp_path: Path) -> None:
    async with serving() as made:
        await sync(made.path, tmp_path, "ping")
        await sync(made.path, tmp_path, "want app db repo")
        refused = await sync(made.path, tmp_path, "start app --timeout 10ms", code=1)
        assert 'unit "app" is still waiting for: db, repo' in refused.stderr
        shown = (await sync(made.path, tmp_path, "status app")).stdout
        assert shown.startswith(
            "Unit: app\nStatus: pending\nReady: false\n\nDependencies:\nDEPENDS ON  REQUIRED STATUS"
        )
        async with trio.open_nursery() as nursery:
            done = trio.Event()

            async def start() -> None:
                assert b"error" not in await raw(made.path, b'{"verb":"start","unit":"app","timeout":60}\n')
                done.set()

            nursery.start_soon(start)
            for name in ("db", "repo"):
                assert not done.is_set()
                await sync(made.path, tmp_path, f"start {name}")
                await sync(made.path, tmp_path, f"complete {name}")
            with trio.fail_after(60):
                await done.wait()
        found = json.loads((await sync(made.path, tmp_path, "status app -o json")).stdout)
        assert (found["status"], found["is_ready"], len(found["dependencies"])) == ("started", True, 2)
        listed = (await sync(made.path, tmp_path, "list")).stdout.splitlines()
        assert [line.split() for line in listed] == [
            ["UNIT", "STATUS", "READY"],
            ["app", "started", "true"],
            ["db", "completed", "true"],
            ["repo", "completed", "true"],
        ]
        refused = await sync(made.path, tmp_path, "want db app", code=1)
        assert "has started" in refused.stderr


async def test_socket_is_private_and_removed(tmp_path: Path) -> None:
    async with serving() as made:
        assert stat.S_IMODE(made.path.stat().st_mode) == 0o600
        assert stat.S_IMODE(made.path.parent.stat().st_mode) == 0o700
    assert not made.path.parent.exists()
    refused = await sync(made.path, tmp_path, "ping", code=1)
    assert f"the agent does not answer at {made.path}" in refused.stderr
    refused = await run_cli(["exp", "sync", "ping"], home=tmp_path)
    assert "no agent's socket is known here" in refused.stderr


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"null\n",
        b"[]\n",
        b"{\n",
        b'{"verb":"fly"}\n',
        b'{"verb":"want"}\n',
        b"\xff\n",
        b'{"verb":"start","unit":"a","timeout":null}\n',
        b'{"verb":"want","unit":"","depends_on":[1]}\n',
    ],
)
async def test_invalid_requests_are_rejected(line: bytes, tmp_path: Path) -> None:
    async with serving(tmp_path / "s") as made:
        async with await trio.open_unix_socket(str(made.path)) as stream:
            await stream.send_all(line)
            await trio.lowlevel.checkpoint()
            stream.socket.shutdown(trio.socket.SHUT_WR)
            assert "error" in json.loads(bytes(await stream.receive_some(65536)))
        assert await raw(made.path, b'{"verb":"ping"}\n') == b'{"pong": true}\n'


async def test_endless_line_is_rejected(tmp_path: Path) -> None:
    async with serving(tmp_path / "s") as made:
        async with await trio.open_unix_socket(str(made.path)) as stream:
            with pytest.raises(trio.BrokenResourceError):
                for _ in range(64):
                    await stream.send_all(b"x" * MAX_LINE)
        assert await raw(made.path, b'{"verb":"ping"}\n') == b'{"pong": true}\n'


async def test_live_socket_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s"
    async with serving(path) as made:
        await sync(path, tmp_path, "start a")
        await SyncSocket(path).run()  # logs it, and ends
        assert "a" in (await sync(path, tmp_path, "list")).stdout
    dead = trio.socket.socket(trio.socket.AF_UNIX)
    await dead.bind(str(path))
    dead.close()
    assert path.exists()
    async with serving(path):
        with trio.fail_after(60):
            while b"pong" not in await _try(made.path):
                await trio.sleep(0.01)
    assert not os.path.lexists(path)


async def _try(path: Path) -> bytes:
    try:
        return await raw(path, b'{"verb":"ping"}\n')
    except OSError:
        return b""


async def test_handover_keeps_units(tmp_path: Path) -> None:
    first = SyncSocket()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(first.run)
        await trio.testing.wait_all_tasks_blocked()
        await sync(first.path, tmp_path, "want app db")
        await sync(first.path, tmp_path, "start db")
        first.release()
        nursery.cancel_scope.cancel()
    second = SyncSocket(kept=first.handover_state())
    assert second.path == first.path and second.path.exists()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(second.run)
        await trio.testing.wait_all_tasks_blocked()
        await sync(second.path, tmp_path, "complete db")
        await sync(second.path, tmp_path, "start app")
        nursery.cancel_scope.cancel()
    assert not second.path.parent.exists(), "the socket's own folder is removed"


ODD = [
    b"[" * 60_000,
    b'{"verb":"start","unit":"app","timeout":1' + b"0" * 400 + b"}",
    b'{"verb":"start","unit":"app","timeout":' + b"1" * 5000 + b"}",
    b'{"verb":"status","unit":"\\ud800"}',
    b'{"verb":"want","unit":"app","depends_on":1}',
]


async def test_hostile_lines_are_handled() -> None:
    async with serving() as made:
        for line in ODD:
            assert b"{" in await raw(made.path, line + b"\n"), line[:60]
        assert b"pong" in await raw(made.path, b'{"verb":"ping"}\n')


async def test_report_goes_through_socket(tmp_path: Path) -> None:
    reported: list[dict[str, object]] = []

    async def report(request: Mapping[str, object]) -> None:
        reported.append({name: request.get(name) for name in FIELDS})
        if request["message"] == "no":
            raise CoderError("refused", "No app found")

    path = tmp_path / "agent.sock"
    made = SyncSocket(path, report=report)
    calls = [
        {
            "jsonrpc": "2.0",
            "id": ident,
            "method": "tools/call",
            "params": {"name": "coder_report_task", "arguments": {"summary": summary, "state": "working"}},
        }
        for ident, summary in enumerate(("yes", "no"))
    ]
    lines = "".join(f"{json.dumps(call)}\n" for call in calls)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(made.run)
        with trio.fail_after(60):
            while not path.exists():
                await trio.sleep(0.01)
        for more in ([], ["--ai-agentapi-url", "http://127.0.0.1:9"]):  # with an AgentAPI that is not running
            words = ["exp", "mcp", "server", "--app-status-slug", "chat", "--socket-path", str(path), *more]
            result = await run_cli(words, home=tmp_path, stdin=lines)
            yes, no = (json.loads(line)["result"] for line in result.stdout.splitlines())
            assert (yes["isError"], no["isError"]) == (False, True), result.stderr
            assert "No app found" in no["content"][0]["text"]
        nursery.cancel_scope.cancel()
    assert reported[0] == {"app_slug": "chat", "state": "working", "message": "yes", "uri": ""}
    assert [one["message"] for one in reported] == ["yes", "no"] * 2
