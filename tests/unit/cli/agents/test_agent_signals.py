"""A signal that stops the agent is never lost: a successor gets it too."""

from __future__ import annotations

import signal
from typing import Any, cast

import pytest
import trio
import trio.testing

from coder.agent.upgrade.signals import ENDING, hold, release
from coder.cli.agents import agent_process as agent_module
from coder.cli.agents.agent_process import _main

GIVEN, HANDED_OVER = "its workspace was given away", "everything was handed over"


class Role:
    """Agent that is stopped too late; its successor stops on the signal."""

    made: list[Role]
    first_end = ""

    def __init__(self, _config: Any, handover: object = None) -> None:
        self.kept, self.handover, self.stopped = handover, None, trio.Event()
        self.made.append(self)

    def stop(self) -> None:
        self.stopped.set()

    async def run(self) -> bool:
        if len(self.made) == 1:
            await trio.testing.wait_all_tasks_blocked()  # signal handlers are installed
            signal.raise_signal(signal.SIGTERM)
        await self.stopped.wait()
        if len(self.made) == 1 and self.first_end == HANDED_OVER:
            self.handover = HANDED_OVER  # type: ignore[assignment]
        return len(self.made) == 1 and self.first_end == GIVEN


@pytest.mark.parametrize("end", ["", GIVEN, HANDED_OVER])
async def test_takeover_informs_successor(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Role, "made", [], raising=False)
    monkeypatch.setattr(Role, "first_end", end)
    monkeypatch.setattr(agent_module, "AgentRole", Role)
    with trio.fail_after(60):
        assert await _main(cast("Any", None), None) is None, "nothing is executed any more"
    assert len(Role.made) == (2 if end else 1) and all(role.stopped.is_set() for role in Role.made)
    assert Role.made[-1].kept == (HANDED_OVER if end == HANDED_OVER else None)


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="no program takes over there")
async def test_takeover_keeps_signals_for_successor(monkeypatch: pytest.MonkeyPatch) -> None:
    class LeavingAgent(Role):
        async def run(self) -> bool:
            self.handover = HANDED_OVER  # type: ignore[assignment]
            return False

    monkeypatch.setattr(Role, "made", [], raising=False)
    monkeypatch.setattr(agent_module, "AgentRole", LeavingAgent)
    hold()  # as inherited
    try:
        assert await _main(cast("Any", None), None) == HANDED_OVER
        assert set(ENDING) <= signal.pthread_sigmask(signal.SIG_BLOCK, ())
        signal.raise_signal(signal.SIGTERM)  # has no effect before a handler is installed
        monkeypatch.setattr(agent_module, "AgentRole", Role)
        with trio.fail_after(60):
            assert await _main(cast("Any", None), None) is None
        assert not set(ENDING) & signal.pthread_sigmask(signal.SIG_BLOCK, ())
    finally:
        release()
