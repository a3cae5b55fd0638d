"""The real agent, in the test's own process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from coder.agent.agent import AgentRole
from coder.agent.config import AgentConfig
from coder.base.secret import Secret
from coder.net.policy import DialPolicy
from tests.kit.agents import AgentWorld, eventually


@asynccontextmanager
async def running_agent(
    view_context: AgentWorld, policy: DialPolicy, folder: Path, **settings: Any
) -> AsyncIterator[None]:
    """A whole agent in this process; `settings` are fields of its AgentConfig."""
    folder.mkdir(exist_ok=True)
    token = Secret(view_context.token)
    agent = AgentRole(
        AgentConfig(policy.with_token(token), token, folder, folder, **{"executable": "coder", **settings})
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(agent.run)

        async def connected() -> bool:
            return bool((await view_context.agent())["status"] == "connected")

        await eventually(connected)
        yield
        agent.stop()
