"""MCP server of a deployment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coder.cli.tasks.mcp_protocol import McpServer, Tool
from tests.kit.programs.command_line import Result, run_cli
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import TASK_TOKEN, new_task, settled, task_world

ECHO = Tool(
    "echo",
    "Says it again.",
    lambda given: given.text("text"),
    {"text": ("string", "What."), "n": ("integer", "")},
    ("text",),
)


def answer(message: Any) -> Any:
    line = message if isinstance(message, str) else json.dumps(message)
    result = McpServer("v1", [ECHO], "Be kind.").answer_line(line)
    return None if result is None else json.loads(result)


def call(ident: int, name: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params}


def test_a_conversation() -> None:
    hello = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    result = answer({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})["result"]
    assert (result["protocolVersion"], result["instructions"]) == ("2024-11-05", "Be kind.")
    newer = answer({"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": {"protocolVersion": "2099-01-01"}})
    assert (newer["id"], newer["result"]["protocolVersion"]) == ("a", "2025-06-18")
    assert answer({"jsonrpc": "2.0", "method": "notifications/initialized"}) is None
    assert answer({"jsonrpc": "2.0", "id": 5, "result": {}}) is None
    assert answer({"jsonrpc": "2.0", "id": 2, "method": "ping"})["result"] == {}
    (tool,) = answer({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})["result"]["tools"]
    assert tool["inputSchema"]["required"] == ["text"] and tool["inputSchema"]["properties"]["n"]["type"] == "integer"
    output = answer(call(3, "echo", text="hi"))
    assert output["result"] == {"content": [{"type": "text", "text": "hi"}], "isError": False}


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("{", -32700),
        ("7", -32600),
        ("[]", -32600),
        ({"id": 1}, -32600),
        ({"id": 1, "method": "fly"}, -32601),
        ({"id": 1, "method": "tools/call", "params": []}, -32602),
        (call(1, "none"), -32602),
        (call(1, "echo"), -32602),
        (call(1, "echo", text=7), -32602),
        (call(1, "echo", text="a", n=True), -32602),
        (call(1, "echo", text="a", more=1), -32602),
    ],
)
def test_invalid_messages_get_errors(message: Any, code: int) -> None:
    if message == {"id": 1, "method": "tools/call", "params": []}:
        message["params"] = ["x"]
    assert answer(message)["error"]["code"] == code


def test_invalid_server_answer_reaches_model() -> None:
    def odd(_: Any) -> Any:
        raise ValueError("Expected `object`, got `array`")

    line = json.dumps(call(1, "odd"))
    result = json.loads(McpServer("v1", [Tool("odd", "", odd, {})], "").answer_line(line) or "")["result"]
    assert result["isError"] and "Expected `object`" in result["content"][0]["text"]


async def served(world: World, home: Path, *messages: dict[str, Any], words: str = "", **env: str) -> list[Any]:
    environment = {"CODER_URL": world.url, "CODER_SESSION_TOKEN": world.token, **env}
    lines = "".join(json.dumps(message) + "\n" for message in messages)
    result: Result = await run_cli(["exp", "mcp", "server", *words.split()], home=home, env=environment, stdin=lines)
    assert result.code == 0, result.stderr
    return [json.loads(line)["result"] for line in result.stdout.splitlines()]


async def test_tools_use_permissions_of_user(tmp_path: Path) -> None:
    async with task_world() as (world, _):
        task = await new_task(world)
        workspace = (await world.get(f"/api/v2/workspaces/{task['workspace_id']}")).json()
        build = workspace["latest_build"]
        result = await served(
            world,
            tmp_path,
            call(1, "coder_get_authenticated_user"),
            call(2, "coder_list_workspaces"),
            call(3, "coder_get_workspace", workspace=workspace["name"]),
            call(4, "coder_list_templates"),
            call(5, "coder_get_workspace_build_logs", workspace_build_id=build["id"]),
            call(6, "coder_get_workspace", workspace="alice/missing"),
            call(7, "coder_create_workspace_build", workspace_id=workspace["id"], transition="stop"),
        )
        assert [item["isError"] for item in result] == [False] * 5 + [True, False]
        texts = [item["content"][0]["text"] for item in result]
        assert json.loads(texts[0])["username"] == "admin"
        assert [load["id"] for load in json.loads(texts[1])] == [workspace["id"]]
        assert json.loads(texts[2])["id"] == workspace["id"]
        assert json.loads(texts[3])[0]["active_version_id"] == build["template_version_id"]
        assert "a workspace_build" in texts[4]
        assert "Resource not found" in texts[5]
        assert (await settled(world, workspace["id"]))["latest_build"]["transition"] == "stop"


async def test_task_report_uses_agent_token(tmp_path: Path) -> None:
    async with task_world() as (world, _):
        task = await new_task(world)
        env = {"CODER_AGENT_TOKEN": TASK_TOKEN, "CODER_AGENT_URL": world.url, "CODER_SESSION_TOKEN": ""}
        message = call(1, "coder_report_task", summary="half done", state="working", link="https://example.com/1")
        (output,) = await served(world, tmp_path, message, words="--app-status-slug chat", **env)
        assert not output["isError"]
        state = (await world.get(f"/api/v2/tasks/me/{task['id']}")).json()["current_state"]
        assert (state["state"], state["message"]) == ("working", "half done")


async def test_only_allowed_tools_are_served(tmp_path: Path) -> None:
    env = {"CODER_URL": "http://127.0.0.1:9", "CODER_SESSION_TOKEN": "AAAAAAAAAA-BBBBBBBBBBBBBBBBBBBBBB"}
    lines = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
    words = ["exp", "mcp", "server", "--allowed-tools", "coder_list_templates,more"]
    result = await run_cli(words, home=tmp_path, env=env, stdin=lines)
    (tool,) = json.loads(result.stdout)["result"]["tools"]
    assert tool["name"] == "coder_list_templates" and "Unknown tools: more" in result.stderr
    refused = await run_cli(["exp", "mcp", "server"], home=tmp_path)
    assert refused.code == 1 and "there are no tools to serve" in refused.stderr


async def test_configure_keeps_other_entries(tmp_path: Path) -> None:
    cursor = tmp_path / ".cursor/mcp.json"
    cursor.parent.mkdir()
    cursor.write_text('{"mcpServers": {"other": {}}, "more": 1}')
    claude = tmp_path / ".claude.json"
    for words in (["cursor"], ["claude-code", "/work"], ["claude-desktop"]):
        assert (await run_cli(["exp", "mcp", "configure", *words], home=tmp_path)).code == 0
    result = json.loads(cursor.read_text())
    assert set(result["mcpServers"]) == {"other", "coder"} and result["more"] == 1
    assert result["mcpServers"]["coder"]["args"] == ["exp", "mcp", "server"]
    assert "coder" in json.loads(claude.read_text())["projects"]["/work"]["mcpServers"]
    assert list(tmp_path.rglob("claude_desktop_config.json"))
    words = ["claude-code", "--ai-agentapi-url", "http://localhost:3284", "--claude-app-status-slug", "chat"]
    assert (await run_cli(["exp", "mcp", "configure", *words], home=tmp_path)).code == 0
    assert json.loads(claude.read_text())["mcpServers"]["coder"]["env"] == {
        "CODER_MCP_APP_STATUS_SLUG": "chat",
        "CODER_MCP_AI_AGENTAPI_URL": "http://localhost:3284",
    }
    cursor.write_text("[]")
    refused = await run_cli(["exp", "mcp", "configure", "cursor"], home=tmp_path)
    assert refused.code == 1 and "does not contain settings" in refused.stderr
    assert cursor.read_text() == "[]"


async def test_configure_keeps_text_of_user(tmp_path: Path) -> None:
    memory_file = tmp_path / ".claude" / "CLAUDE.md"
    memory_file.parent.mkdir()
    memory_file.write_bytes(b"Mine, caf\xe9.\r\n")
    words = ["exp", "mcp", "configure", "claude-code", "--claude-api-key", "k", "--claude-coder-prompt"]
    for prompt in ("first", "second"):
        assert (await run_cli([*words, prompt], home=tmp_path)).code == 0
    content = memory_file.read_bytes()
    assert content.endswith(b"</system-prompt>\nMine, caf\xe9.\r\n"), (
        "in whatever encoding, with whatever ends of lines"
    )
    text = content.decode("latin-1")
    assert text.startswith("<coder-prompt>\nsecond\n</coder-prompt>\n<system-prompt>\nSend a task status update")
    assert "first" not in text and text.count("<system-prompt>") == 1
    settings = json.loads((tmp_path / ".claude.json").read_text())
    assert settings["primaryApiKey"] == "k" and settings["mcpServers"]["coder"]["args"] == ["exp", "mcp", "server"]
