"""Workspace tools against a real agent over the overlay; task and template tools against a server."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from coder.net.policy import DialPolicy
from tests.kit.agents.real_agent import running_agent
from tests.kit.agents.scripted_agent import eventually, workspace_world
from tests.kit.programs.command_line import run_cli
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import new_task, task_world


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


async def served(world: World, home: Path, *messages: dict[str, Any]) -> list[tuple[bool, Any]]:
    """Return (is error, text or JSON value) of each call."""
    env = {"CODER_URL": world.url, "CODER_SESSION_TOKEN": world.token}
    lines = "".join(json.dumps(message) + "\n" for message in messages)
    result = await run_cli(["exp", "mcp", "server"], home=home, env=env, stdin=lines)
    assert result.code == 0, result.stderr
    found = []
    for line in result.stdout.splitlines():
        answer = json.loads(line)
        assert "result" in answer, answer
        text = answer["result"]["content"][0]["text"]
        found.append((answer["result"]["isError"], json.loads(text) if text[:1] in "{[" else text))
    return found


async def test_commands_files_and_ports(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    path = str(folder / "file")
    content = base64.b64encode(b"one\ntwo\n").decode()
    async with (
        workspace_world(wildcard_access_url="*.apps.test") as view,
        running_agent(view, DialPolicy(view.world.url), tmp_path / "agent"),
    ):
        result = await served(
            view.world,
            tmp_path,
            call("coder_workspace_write_file", workspace="dev", path=path, content=content),
            call(
                "coder_workspace_edit_file", workspace="dev.main", path=path, edits=[{"search": "two", "replace": "2"}]
            ),
            call("coder_workspace_read_file", workspace="admin/dev", path=path, offset=4),
            call("coder_workspace_ls", workspace="dev", path=str(folder)),
            call("coder_workspace_bash", workspace="dev", command=f"cat {path}; exit 3"),
            call("coder_workspace_bash", workspace="dev", command="echo early; sleep 60", timeout_ms=500),
            call("coder_workspace_bash", workspace="dev", command="sleep 0.1", background=True),
            call("coder_workspace_port_forward", workspace="dev", port=8080),
            call("coder_workspace_list_apps", workspace="dev"),
            call("coder_workspace_read_file", workspace="dev", path=str(folder / "none")),
            call("coder_workspace_edit_files", workspace="dev", files=[{"path": path, "edits": []}]),
            call("coder_workspace_write_file", workspace="dev", path=path, content="%%%"),
            call("coder_workspace_bash", workspace="none", command="true"),
            call("coder_workspace_bash", workspace="dev", command="true", timeout_ms=0),
            call("coder_workspace_port_forward", workspace="dev", port=80),
        )
    assert [bad for bad, _ in result] == [False] * 9 + [True] * 6, result
    answers = [answer for _, answer in result]
    assert base64.b64decode(answers[2]["content"]) == b"2\n"
    assert answers[3] == {"contents": [{"path": path, "is_dir": False}]}
    assert answers[4] == {"output": "one\n2\n", "exit_code": 3}
    assert answers[5]["exit_code"] == 124 and answers[5]["output"].startswith("early\n")
    assert "in the background" in answers[6]["output"]
    assert urlsplit(answers[7]["url"]).hostname == "8080--main--dev--admin.apps.test"
    assert answers[8] == {"apps": []}
    assert (folder / "file").read_text() == "one\n2\n"


async def test_tasks(tmp_path: Path) -> None:
    async with task_world() as (world, _):
        task = await new_task(world)
        version = world.extra["template"]["active_version_id"]
        result = await served(
            world,
            tmp_path,
            call("coder_create_task", input="more work", template_version_id=version),
            call("coder_list_tasks"),
            call("coder_get_task_status", task_id=task["id"]),
            call("coder_get_task_status", task_id=f"admin/{task['name']}"),
            call("coder_delete_task", task_id=task["name"]),
            call("coder_get_task_logs", task_id="none"),
            call("coder_send_task_input", task_id="none", input="x"),
            call("coder_get_task_status", task_id="6f2d0a1e-0000-4000-8000-000000000000"),
        )
    assert [bad for bad, _ in result] == [False] * 5 + [True] * 3, result
    answers = [answer for _, answer in result]
    assert answers[0]["initial_prompt"] == "more work"
    assert {task["id"] for task in answers[1]["tasks"]} == {answers[0]["id"], task["id"]}
    assert answers[2] == answers[3] and answers[2]["status"] == task["status"]


async def test_template_life_cycle(tmp_path: Path) -> None:
    async with task_world() as (world, _):
        [(_, uploaded)] = await served(world, tmp_path, call("coder_upload_tar_file", files={"main.tf": "# nothing\n"}))
        [(bad, version)] = await served(world, tmp_path, call("coder_create_template_version", file_id=uploaded["id"]))
        assert not bad, version

        async def done() -> bool:
            result = (await world.get(f"/api/v2/templateversions/{version['id']}")).json()
            return bool(result["job"]["status"] == "succeeded")

        await eventually(done)
        [(bad, created)] = await served(
            world, tmp_path, call("coder_create_template", name="from-a-model", version_id=version["id"])
        )
        assert not bad and created["active_version_id"] == version["id"], created
        promote = {"template_id": created["id"], "template_version_id": version["id"]}
        result = await served(
            world,
            tmp_path,
            call("coder_update_template_active_version", **promote),
            call("coder_delete_template", template_id=created["id"]),
            call("coder_delete_template", template_id=created["id"]),
            call("coder_upload_tar_file", files={"main.tf": 1}),
        )
    assert [bad for bad, _ in result] == [False, False, True, True], result
