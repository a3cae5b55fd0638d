"""Tools handle any answer, or none: the model gets an error, and the session continues."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
import trio
import trio.testing

from coder.base.errors import CoderError
from coder.base.json_types import Json
from coder.cli.tasks import mcp_workspace_tools
from coder.cli.tasks.mcp_protocol import Arguments, McpServer, Tool
from coder.cli.tasks.mcp_task_tools import task_tools, template_tools
from coder.cli.tasks.mcp_tools import deployment_tools, report_tool
from coder.client import agent_api
from coder.client.agent_api import AgentApi, AgentRefusedError, open_agent_api
from coder.client.ready import Preparation
from coder.net.blocking import BlockingClient, HttpAnswer
from coder.net.errors import error_from_body
from coder.net.policy import DialPolicy

DEEP = b"[" * 100_000
BODIES = [
    b"",
    b"null",
    b"1",
    b'"x"',
    b"[]",
    b"{}",
    b"[1]",
    b"[{}]",
    b"\xff",
    b"{",
    DEEP,
    b'{"a":' * 100_000,
    b"[" * 900 + b"]" * 900,
    b'{"id": 1}',
    b'{"id": "x"}',
    b'{"id": "x", "output": [], "exit_code": {}}',
    b'{"id": "x", "output": "\\ud800", "exit_code": ' + b"9" * 5000 + b"}",
    b'{"contents": 1}',
    b'{"contents": [1]}',
    b'{"contents": [{"absolute_path_string": 1, "is_dir": "x"}]}',
    b'{"message": 1}',
    b'{"message": {}, "detail": []}',
    b'{"message": "' + b"x" * 100_000 + b'"}',
    b'{"host": []}',
    b'{"workspaces": [1]}',
    b'{"tasks": {}}',
    b'{"host": 1}',
]
RAW = [
    b"",
    b"\0" * 100,
    b"HTTP/1.1 200 OK\r\n\r\n",
    b"HTTP/1.1 101 Switching\r\n\r\n",
    b"HTTP/9.9 99999 x\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nx",
    b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\nxxxxx",
]
STATUSES = (200, 201, 400, 404, 409, 500)


def response(status: int, body: bytes) -> bytes:
    return f"HTTP/1.1 {status} x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


class Canned(trio.abc.Stream):
    """Server with the same answer for every request."""

    def __init__(self, says: bytes) -> None:
        self._says = says

    async def send_all(self, _data: object) -> None:
        await trio.lowlevel.checkpoint()

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def receive_some(self, _most: int | None = None) -> bytes:
        await trio.lowlevel.checkpoint()
        says, self._says = self._says, b""
        return says

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


class Link:
    def __init__(self, says: bytes) -> None:
        self.says = says

    async def connect(self, _port: int) -> Canned:
        await trio.lowlevel.checkpoint()
        return Canned(self.says)


class Server:
    """Run a deployment with the same answer for every request."""

    policy = DialPolicy("http://127.0.0.1:9")

    def __init__(self, status: int, body: bytes) -> None:
        self._answer = HttpAnswer(status, {}, body)

    def request(self, *_: Any, **__: Any) -> HttpAnswer:
        if self._answer.status >= 400:
            raise error_from_body(self._answer.status, self._answer.body)
        return self._answer


def every_tool(server: Server) -> list[Tool]:
    client = cast("BlockingClient", server)
    workspaces = mcp_workspace_tools.workspace_tools(client, server.policy, Path("/nowhere"))
    report = report_tool(lambda _: client.request("PATCH", "/api/v2/workspaceagents/me/app-status"))
    return [*deployment_tools(client), *task_tools(client), *template_tools(client), *workspaces, report]


VALUES: dict[str, Json] = {
    "string": "eA==",
    "integer": 8080,
    "object": {"a": "b"},
    "boolean": False,
    "array": [{"path": "/x"}],
}


def call_every_tool(server: Server) -> None:
    """Return calls of each tool: with its required arguments, and with all."""
    tools = every_tool(server)
    session = McpServer("v1", tools)
    for tool in tools:
        for names in (tool.required, tuple(tool.arguments)):
            arguments = {name: VALUES[tool.arguments[name][0]] for name in names}
            assert not tool.fault(arguments)
            call = {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": tool.name, "arguments": arguments},
            }
            answer = json.loads(session.answer_line(json.dumps(call)) or "")
            assert isinstance(answer["result"]["content"][0]["text"], str), tool.name
            assert not answer["result"]["isError"] or len(answer["result"]["content"][0]["text"]) < 101_000


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
@pytest.mark.parametrize("status", STATUSES)
def test_any_answer_is_handled(status: int, body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    agent_with_answers(response(status, body), monkeypatch)
    call_every_tool(Server(status, body))


@pytest.mark.parametrize("raw", RAW, ids=range(len(RAW)))
def test_agent_without_http(raw: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    agent_with_answers(raw, monkeypatch)
    call_every_tool(Server(200, b"{}"))


def agent_with_answers(raw: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def opened(*_: Any) -> AsyncIterator[AgentApi]:
        yield AgentApi(cast("Any", Link(raw)))

    monkeypatch.setattr(mcp_workspace_tools, "open_agent_api", opened)


@pytest.mark.parametrize("error", [KeyError("x"), TypeError("x"), RecursionError(), ExceptionGroup("x", [OSError()])])
def test_failed_tool_keeps_session(error: Exception) -> None:
    def odd(_: Any) -> Any:
        raise error

    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "odd"}}
    result = json.loads(McpServer("v1", [Tool("odd", "", odd, {})]).answer_line(json.dumps(call)) or "")
    assert result["result"]["isError"] and "the tool failed" in result["result"]["content"][0]["text"]


def test_unserializable_result_fails() -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "odd"}}
    result = json.loads(
        McpServer("v1", [Tool("odd", "", lambda _: cast("Any", {1j}), {})]).answer_line(json.dumps(call)) or ""
    )
    assert result["result"]["isError"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (DEEP.decode(), -32700),
        ("9" * 5000, -32700),
        ('{"method": "ping", "id": [' + "[" * 900 + "]" * 900 + "]}", -32600),
    ],
)
def test_any_client_message_is_handled(line: str, code: int) -> None:
    assert json.loads(McpServer("v1", []).answer_line(line) or "")["error"]["code"] == code


# ---- connection to an agent


async def forever(*_: Any, **__: Any) -> Any:
    await trio.sleep_forever()


async def return_immediately(*values: Any, **__: Any) -> Any:
    await trio.lowlevel.checkpoint()
    return values[0]


@asynccontextmanager
async def open_link_to(*_: Any, **__: Any) -> AsyncIterator[Any]:
    class ReachedLink:
        wait_reachable = staticmethod(lambda: trio.sleep(0))

    async with trio.open_nursery() as nursery:  # as real agents have
        nursery.start_soon(trio.sleep_forever)
        yield ReachedLink()
        nursery.cancel_scope.cancel()


STEPS = ["find", "wait_connected", "open_link_for_command"]


@pytest.mark.parametrize("stuck", STEPS)
async def test_agent_connection_timeout(
    stuck: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    @asynccontextmanager
    async def no_link(*_: Any, **__: Any) -> AsyncIterator[Any]:
        await trio.sleep_forever()
        yield

    monkeypatch.setattr(Preparation, "find", forever if stuck == "find" else return_immediately)
    monkeypatch.setattr(Preparation, "wait_connected", forever if stuck == "wait_connected" else return_immediately)
    monkeypatch.setattr(agent_api, "open_link_for_command", no_link)
    with pytest.raises(CoderError, match="timed out connecting to the agent of dev after 300 s"):
        async with open_agent_api(DialPolicy("http://127.0.0.1:9"), tmp_path, "dev"):
            raise AssertionError("it was opened")
    assert trio.current_time() >= agent_api.OPEN_TIME


async def test_open_connection_has_no_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    monkeypatch.setattr(Preparation, "find", return_immediately)
    monkeypatch.setattr(Preparation, "wait_connected", return_immediately)
    monkeypatch.setattr(agent_api, "open_link_for_command", open_link_to)
    with pytest.raises(CoderError, match="its own"):
        async with open_agent_api(DialPolicy("http://127.0.0.1:9"), tmp_path, "dev"):
            await trio.sleep(agent_api.OPEN_TIME * 3)
            raise CoderError("x", "its own")


# ---- end of a command


class Scripted(AgentApi):
    """Agent that starts p1; its answers to a wait and to a signal are given in order."""

    def __init__(self, *answers: bytes | Exception | None) -> None:
        self._answers, self.signals = list(answers), 0

    async def ask(self, method: str, path: str, **_: Any) -> bytes:
        if path == "processes/start":
            return b'{"id": "p1", "started": true}'
        assert path in {"processes/p1/output", "processes/p1/signal"}
        self.signals += path.endswith("signal")
        answer = self._answers.pop(0)
        if answer is None:
            await trio.sleep_forever()
            raise AssertionError
        if isinstance(answer, Exception):
            raise answer
        return answer


GONE = AgentRefusedError(409, "Process is not running.")
AWAY = CoderError("agent_api", "did not answer")
DONE, RUNNING = (json.dumps({"output": "o", "exit_code": 7, "running": running}).encode() for running in (False, True))


@pytest.mark.parametrize(
    ("answers", "expected", "signals"),
    [
        ((DONE,), {"output": "o", "exit_code": 7}, 0),
        ((None, b"{}", DONE), {"output": "o\n(ended after 60000 ms)", "exit_code": 124}, 1),
        ((None, GONE, DONE), {"output": "o", "exit_code": 7}, 1),
        ((RUNNING, b"{}", DONE), {"output": "o\n(ended after 60000 ms)", "exit_code": 124}, 1),
        ((AWAY, b"{}"), "did not answer (its process p1 was killed)", 1),
        ((AWAY, GONE), "did not answer (its process p1 has ended)", 1),
        ((AWAY, AWAY), "did not answer (the command may still run as process p1)", 1),
        ((AWAY, None), "did not answer (the command may still run as process p1)", 1),
        ((None, AWAY, AWAY), "did not answer (the command may still run as process p1)", 2),
        ((None, b"{}", AWAY, GONE), "did not answer (its process p1 has ended)", 2),
    ],
    ids=range(10),
)
async def test_command_ends_or_is_reported(
    answers: Any, expected: Any, signals: int, autojump_clock: trio.testing.MockClock
) -> None:
    api = Scripted(*answers)
    if isinstance(expected, str):
        with pytest.raises(CoderError) as caught:
            await mcp_workspace_tools._bash(api, Arguments({"command": "x"}))
        assert str(caught.value) == expected
    else:
        assert await mcp_workspace_tools._bash(api, Arguments({"command": "x"})) == expected
    assert api.signals == signals and not api._answers
