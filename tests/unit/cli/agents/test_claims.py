"""An agent whose workspace is claimed again and again, as only a hostile server says."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from coder.cli.agents import agent_process


async def test_repeated_claims_are_spaced(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    began: list[float] = []

    class Agent:
        handover = None

        def __init__(self, *_: Any) -> None: ...

        async def run(self) -> bool:
            began.append(trio.current_time())
            await trio.lowlevel.checkpoint()
            return True

        def stop(self) -> None: ...

    monkeypatch.setattr(agent_process, "AgentRole", Agent)
    with trio.move_on_after(600):
        await agent_process._main(None, None)  # type: ignore[arg-type]
    assert began[1] - began[0] < 1
    assert 5 < len(began) < 30
