"""A session notices that its workspace is stopping."""

from __future__ import annotations

from uuid import UUID

from msgspec.structs import replace

from coder.api.base.answers import read_answer
from coder.api.workspaces.workspaces import Workspace
from coder.base.secret import Secret
from coder.client.ready import Preparation, ReadyAgent
from coder.client.target import choose_agent
from coder.client.usage import report_usage
from coder.net.dial import DialPolicy
from coder.net.http1 import HttpClient
from tests.kit.agents.scripted_agent import eventually, workspace_world


async def test_leaves_stopped_workspace() -> None:
    async with workspace_world() as view_context:
        policy = DialPolicy(view_context.world.url, token=Secret(view_context.world.token))
        path = f"/api/v2/users/me/workspace/{view_context.workspace['name']}"
        workspace = read_answer((await view_context.world.get(path)).content, Workspace)
        target = ReadyAgent(workspace, choose_agent(workspace, ""))
        before = (await view_context.world.get(f"/api/v2/workspaces/{view_context.workspace['id']}")).json()[
            "last_used_at"
        ]
        view_context.world.ctx.nursery.start_soon(report_usage, policy, target, "ssh")

        async def is_used() -> bool:
            await view_context.world.ctx.services.last_use.flush()  # the server updates it once a minute
            now = (await view_context.world.get(f"/api/v2/workspaces/{view_context.workspace['id']}")).json()[
                "last_used_at"
            ]
            return bool(now != before)

        await eventually(is_used)
        async with HttpClient(policy) as http:
            prepare = Preparation(http, lambda _: None)
            assert not await prepare.is_stopping(target)
            deleted = ReadyAgent(replace(workspace, id=UUID("00000000-0000-4000-8000-000000000000")), target.agent)
            assert await prepare.is_stopping(deleted)
            stop = {"transition": "stop"}
            assert (
                await view_context.world.post(f"/api/v2/workspaces/{view_context.workspace['id']}/builds", stop)
            ).is_success
            assert await prepare.is_stopping(target)
        async with HttpClient(DialPolicy("http://127.0.0.1:9", token=Secret("x"))) as http:
            assert not await Preparation(http, lambda _: None).is_stopping(target)
