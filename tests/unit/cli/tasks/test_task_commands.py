"""Commands of `coder task` against a running server."""

from __future__ import annotations

import json
from pathlib import Path

from tests.kit.programs.command_line import run_cli
from tests.kit.server.workspaces import TASK_TOKEN, settled, task_world


async def test_a_task_from_the_terminal(tmp_path: Path) -> None:
    async with task_world() as (world, _):
        env = {"CODER_URL": world.url, "CODER_SESSION_TOKEN": world.token}

        async def coder(*words: str, stdin: str = "", code: int = 0) -> str:
            done = await run_cli(list(words), home=tmp_path, env=env, stdin=stdin)
            assert done.code == code, done.stderr
            return done.stdout if not code else done.stderr

        task_id = (await coder("task", "create", "--stdin", "--name", "job", "-q", stdin="Fix it\n")).strip()
        task = (await world.get(f"/api/v2/tasks/me/{task_id}")).json()
        assert (task["name"], task["initial_prompt"]) == ("job", "Fix it")
        await settled(world, task["workspace_id"])
        assert "set twice" in await coder("task", "create", "a", "--stdin", stdin="b", code=1)
        assert "no template found" in await coder("task", "create", "x", "--template", "none", code=1)
        table = (await coder("task", "list")).splitlines()
        assert table[0].split() == ["NAME", "STATUS", "STATE", "STATE", "CHANGED", "MESSAGE"]
        assert table[1].startswith("job   initializing  working  <1m ago")
        assert json.loads(await coder("task", "ls", "-o", "json", "--status", "initializing"))[0]["id"] == task_id
        assert await coder("tasks", "list", "-q", "--all") == f"{task_id}\n"
        output = (await coder("task", "status", "admin/job")).splitlines()
        assert output[0].split() == ["STATE", "CHANGED", "STATUS", "HEALTHY", "STATE", "MESSAGE"]
        assert "false" in output[1]
        assert json.loads(await coder("task", "status", task_id, "-o", "json"))["id"] == task_id
        assert "Task is initializing, it must be active." in await coder("task", "send", "job", "more", code=1)
        left = {"messages": [{"id": 0, "role": "user", "content": "Fix it", "time": "2020-01-02T03:04:05Z"}]}
        path = f"/api/v2/workspaceagents/me/tasks/{task_id}/log-snapshot?format=agentapi"
        assert (await world.post(path, left, token=TASK_TOKEN)).status_code == 204
        assert (await coder("task", "pause", "job", "-y")).strip().startswith("==>")
        assert "already paused" in await coder("task", "pause", "job", "-y", code=1)
        assert (await coder("task", "logs", "job")).split() == ["TYPE", "CONTENT", "input", "Fix", "it"]
        assert (await coder("task", "status", "job", "--watch")).count("paused") == 1
        assert "in the background" in await coder("task", "resume", "job", "-y", "--no-wait")
        await settled(world, task["workspace_id"])
        assert "canceled" in await coder("task", "delete", "job", stdin="no\n", code=1)
        assert "Deleted task admin/job" in await coder("task", "delete", "job", "-y")
        await settled(world, task["workspace_id"])
        assert json.loads(await coder("task", "list", "-o", "json")) == []
