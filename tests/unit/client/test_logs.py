"""Logs of jobs where a proxy strips upgrades: the lines come by plain requests, each once, until the job has ended."""

from __future__ import annotations

from typing import Any

import pytest

from coder.base.secret import Secret
from coder.client import logs
from coder.net.errors import HttpError
from coder.net.policy import DialPolicy
from tests.kit.agents.scripted_agent import workspace_world


async def _refuse_upgrade(*_: Any, **__: Any) -> Any:
    raise HttpError(426, "WebSocket protocol violation")


async def test_polled_job_logs_equal_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    async with workspace_world() as view:
        policy = DialPolicy(view.world.url, token=Secret(view.world.token))
        path = f"/api/v2/workspacebuilds/{view.workspace['latest_build']['id']}/logs"
        streamed = [line async for line in logs.follow_job_logs(policy, path)]
        monkeypatch.setattr(logs, "connect_websocket", _refuse_upgrade)
        assert [line async for line in logs.follow_job_logs(policy, path)] == streamed
        last = streamed[-1].id if streamed else -1
        assert [line async for line in logs.follow_job_logs(policy, path, after=last)] == []


async def test_polling_ends_with_the_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "connect_websocket", _refuse_upgrade)
    async with workspace_world() as view:
        policy = DialPolicy(view.world.url, token=Secret(view.world.token))
        unknown = view.agent_id.__class__(int=0x11111111111141118111111111111111)
        assert [line async for line in logs.follow_agent_logs(policy, unknown)] == []
