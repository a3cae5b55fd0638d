"""MCP servers of a workspace's project, called through the agent's API."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from coder.agent.network.http_api import HttpApi
from coder.agent.network.http_messages import HttpRequest
from coder.agent.state import AgentState
from coder.agent.workspace import mcp_servers
from coder.agent.workspace.environment import find_identity
from coder.agent.workspace.mcp_servers import ToolServerError, ToolServers, read_specs_untrusted

SERVER = """
import json, os, sys
print("not a message")
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method, params = asked["method"], asked["params"]
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "method": "roots/list", "result": {"odd": 1}}))
    if method == "tools/list" and os.environ["GREETING"].startswith("wait for "):
        open(os.environ["GREETING"].removeprefix("wait for ")).read()
    if method == "tools/list" and os.environ["GREETING"].startswith("release "):
        open(os.environ["GREETING"].removeprefix("release "), "w").write("x")
    answer = {"result": {}}
    if method == "tools/list":
        schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        tools = [{"name": "say", "description": "Says it.", "inputSchema": schema}]
        more = os.environ.get("MORE", "").split()
        answer = {"result": {"tools": tools + [{"name": name} for name in more] + [{}, {"name": 1}, {"name": ""}]}}
    elif method == "tools/call":
        name, given = params["name"], params["arguments"]
        if name == "say":
            part = {"type": "text", "text": f"{os.environ['GREETING']} {given['text']} {os.getpid()}"}
            answer = {"result": {"content": [part, {"type": "image", "data": "QQ==", "mimeType": "image/png"}]}}
        elif name == "end":
            sys.exit(1)
        elif name == "sleep":
            continue
        else:
            answer = {"error": {"code": -32602, "message": "no such tool"}}
    print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message"}))
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""


class ApiClient:
    def __init__(self, state: AgentState) -> None:
        assert isinstance(state.tool_servers, ToolServers)
        self._api, self.servers = HttpApi(state), state.tool_servers

    async def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        reply = await self._api._answer(HttpRequest(method, f"/api/v0/mcp/{path}", {}, json.dumps(body).encode()))
        return reply.status, json.loads(reply.body)

    async def call(self, tool: str, **arguments: Any) -> tuple[int, Any]:
        return await self("POST", "call-tool", {"tool_name": tool, "arguments": arguments})


def configure(folder: Path, **servers: Any) -> None:
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))


def good(folder: Path, greeting: str = "Hello") -> dict[str, Any]:
    (folder / "server.py").write_text(SERVER)
    return {"command": sys.executable, "args": [str(folder / "server.py")], "env": {"GREETING": greeting}}


@asynccontextmanager
async def open_api(folder: Path) -> AsyncIterator[ApiClient]:
    state = AgentState(identity=find_identity(), token="t", url="http://x", executable="/bin/coder")
    state.directory = folder
    servers = ToolServers(state)
    state.tool_servers = servers
    async with trio.open_nursery() as nursery:
        nursery.start_soon(servers.run)
        with trio.fail_after(60):
            yield ApiClient(state)
        nursery.cancel_scope.cancel()
    assert not servers._running


async def test_tools_are_listed_and_called(tmp_path: Path) -> None:
    absent = {"command": str(tmp_path / "none")}
    configure(tmp_path, project=good(tmp_path), absent=absent, remote={"url": "https://example.com/mcp"})
    async with open_api(tmp_path) as ask:
        assert await ask("GET", "tools") == (
            200,
            {
                "tools": [
                    {
                        "server_name": "project",
                        "name": "project__say",
                        "description": "Says it.",
                        "schema": {"text": {"type": "string"}},
                        "required": ["text"],
                    }
                ]
            },
        )
        status, first = await ask.call("project__say", text="you")
        assert status == 200 and first["is_error"] is False
        assert first["content"][0]["text"].startswith("Hello you ")
        assert first["content"][1] == {"type": "image", "text": "", "data": "QQ==", "media_type": "image/png"}
        assert (await ask.call("project__say", text="you"))[1] == first, "by the same process"
        configure(tmp_path, project=good(tmp_path, "Bye"))
        assert (await ask.call("project__say", text="you"))[1]["content"][0]["text"].startswith("Bye you "), "restarted"


async def test_failures_are_reported_and_recovered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(tmp_path, project=good(tmp_path))
    async with open_api(tmp_path) as ask:
        for tool, status, expected in (
            ("project__other", 502, "no such tool"),
            ("project__end", 502, "it has exited"),
            ("none__say", 404, "There is no tool"),
            ("say", 404, "There is no tool"),
        ):
            found = await ask.call(tool)
            assert found[0] == status and expected in json.dumps(found[1])
        assert (await ask.call("project__say", text="x"))[0] == 200
        monkeypatch.setattr(mcp_servers, "CALL_TIMEOUT", 0.2)
        status, content = await ask.call("project__sleep")
        assert status == 502 and "no answer to tools/call" in content["detail"]
        monkeypatch.setattr(mcp_servers, "CALL_TIMEOUT", 30.0)
        assert (await ask.call("project__say", text="x"))[0] == 200
        odd_ones: list[Any] = [{}, {"tool_name": 1}, {"tool_name": "a", "arguments": [1]}, [], None]
        for odd in odd_ones:
            assert (await ask("POST", "call-tool", odd))[0] == 400


async def test_missing_and_invalid_files(tmp_path: Path) -> None:
    async with open_api(tmp_path) as ask:
        assert await ask("GET", "tools") == (200, {"tools": []})
        (tmp_path / ".mcp.json").write_text("[]")
        status, content = await ask("GET", "tools")
        assert status == 500 and ".mcp.json is not a valid server list" in content["detail"]


@pytest.mark.parametrize(
    "odd", [b"", b"{", b"[]", b"{}", b'{"mcpServers": []}', b'{"mcpServers": {"a": 1}}', b"[" * 100_000, b"\xff"]
)
def test_special_file_is_rejected(odd: bytes) -> None:
    with pytest.raises(ToolServerError):
        read_specs_untrusted(odd)


async def test_servers_are_asked_concurrently(tmp_path: Path) -> None:
    """The first server answers only after the second was asked."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    configure(tmp_path, first=good(tmp_path, f"wait for {pipe}"), second=good(tmp_path, f"release {pipe}"))
    async with open_api(tmp_path) as ask:
        status, content = await ask("GET", "tools")
        assert status == 200 and [tool["name"] for tool in content["tools"]] == ["first__say", "second__say"]


async def test_busy_server_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(tmp_path, project=good(tmp_path))
    async with open_api(tmp_path) as ask:
        first = (await ask.call("project__say", text="x"))[1]
        asking_now, ended = ask.servers._running["project"].call_lock, trio.Event()

        async def call_long(task_status: trio.TaskStatus[None]) -> None:
            async with asking_now:
                task_status.started()
                await ended.wait()

        monkeypatch.setattr(mcp_servers, "CALL_TIMEOUT", 0.2)
        async with trio.open_nursery() as nursery:
            await nursery.start(call_long)
            status, content = await ask.call("project__say", text="x")
            ended.set()
        assert status == 502 and "busy with other calls" in content["detail"]
        monkeypatch.setattr(mcp_servers, "CALL_TIMEOUT", 30.0)
        assert (await ask.call("project__say", text="x"))[1] == first, "by the same process"


async def test_removed_entry_harms_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_api(tmp_path) as ask:
        specs = read_specs_untrusted(json.dumps({"mcpServers": {"project": good(tmp_path)}}).encode())
        answers = [specs]

        async def read_once() -> dict[str, mcp_servers.ServerSpec]:
            return answers.pop() if answers else {}

        monkeypatch.setattr(ask.servers, "_read_specs", read_once)
        status, content = await ask("GET", "tools")
        assert status == 200 and len(content["tools"]) == 1


async def test_invalid_command_spares_others(tmp_path: Path) -> None:
    configure(tmp_path, odd={"command": "a\0b"}, project=good(tmp_path))
    async with open_api(tmp_path) as ask:
        status, content = await ask("GET", "tools")
        assert status == 200 and [tool["name"] for tool in content["tools"]] == ["project__say"]


async def test_longest_server_name_wins(tmp_path: Path) -> None:
    plain = good(tmp_path)
    more = {**plain, "env": {**plain["env"], "MORE": "b__say b__other c__d__e"}}
    configure(tmp_path, a=more, a__b=plain, x__=plain)
    async with open_api(tmp_path) as ask:
        names = [tool["name"] for tool in (await ask("GET", "tools"))[1]["tools"]]
        assert names == ["a__say", "a__c__d__e", "a__b__say", "x____say"], "a__b__… denotes server a__b"
        pids = set()
        for name in ("a__say", "a__b__say", "x____say"):
            status, content = await ask.call(name, text="x")
            assert status == 200
            pids.add(content["content"][0]["text"])
        assert len(pids) == 3
        assert (await ask.call("a__c__d__e"))[0] == 502 and (await ask.call("a_say"))[0] == 404


async def test_removed_servers_are_terminated(tmp_path: Path) -> None:
    configure(tmp_path, a=good(tmp_path), b=good(tmp_path))
    async with open_api(tmp_path) as ask:
        assert (await ask("GET", "tools"))[0] == 200
        gone = ask.servers._running["b"].process
        configure(tmp_path, a=good(tmp_path))
        assert (await ask.call("a__say", text="x"))[0] == 200
        assert set(ask.servers._running) == set(ask.servers._locks) == {"a"} and gone.returncode is not None
        (tmp_path / ".mcp.json").write_text("{")
        assert (await ask("GET", "tools"))[0] == 500
        assert set(ask.servers._running) == {"a"}, "a partially written file changes nothing"
        (tmp_path / ".mcp.json").unlink()
        assert await ask("GET", "tools") == (200, {"tools": []})
        assert not ask.servers._running
