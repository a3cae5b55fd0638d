"""A server whose template carries out tasks, its workspaces built by a daemon the test plays."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

from coder.rpc.proto import provisioner_pb2 as pb
from tests.kit.coderd import World
from tests.kit.daemon import Answers, agent, resource
from tests.kit.schema import check
from tests.kit.workspaces import settled, workspace_world

APP = "7c6b6b60-1111-4222-8333-944444444444"
TOKEN = "22222222-2222-4333-8444-555555555555"
TASKS = "/api/v2/tasks"


@contextlib.asynccontextmanager
async def task_world(port: int = 19097, **settings: Any) -> AsyncIterator[tuple[World, Answers]]:
    """A server whose template carries out tasks."""

    def build(job: Any) -> dict[str, Any]:
        speaks = [pb.AITask(id=str(uuid4()), app_id=APP)]
        if job.workspace_build.metadata.workspace_transition != pb.START:
            return {"state": b"{}", "ai_tasks": speaks}
        app = pb.App(id=APP, slug="chat", url=f"http://localhost:{port}")
        return {
            "state": b"{}",
            "ai_tasks": speaks,
            "resources": [resource("box", agents=[agent(token=TOKEN, apps=[app])])],
        }

    answers = Answers(
        import_=lambda job: {"start_resources": [resource("box", agents=[agent()])], "has_ai_tasks": True}, build=build
    )
    async with workspace_world(answers, **settings) as found:
        yield found


async def new_task(world: World, user: str = "me", **body: Any) -> Any:
    """A task whose workspace's first build ended, as it is told then."""
    wanted = {"template_version_id": world.extra["template"]["active_version_id"], "input": "do the thing", **body}
    token = wanted.pop("token", None)
    answer = await world.post(f"{TASKS}/{user}", wanted, token=token)
    assert answer.status_code == 201, answer.text
    check("Task", answer.json())
    await settled(world, answer.json()["workspace_id"])
    found = await world.get(f"{TASKS}/{user}/{answer.json()['id']}", token=token)
    check("Task", found.json())
    return found.json()
