"""Calls of an agent wait when they exceed their budget; calls of other agents do not."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
import trio
from trio.testing import MockClock

from coder.coderd.services.agents import report_budgets
from coder.coderd.services.agents.report_budgets import CALLS_PER_MINUTE, CALLS_PER_MINUTE_BY_METHOD, ReportBudgets

ONE, OTHER = UUID(int=1), UUID(int=2)


@pytest.mark.parametrize(("name", "most"), [*CALLS_PER_MINUTE_BY_METHOD.items(), ("BatchCreateLogs", CALLS_PER_MINUTE)])
async def test_burst_then_rate_limit(autojump_clock: MockClock, name: str, most: int) -> None:
    budgets: Any = ReportBudgets(None)  # type: ignore[arg-type]
    began = trio.current_time()
    for _ in range(most):
        await budgets.take(ONE, name)
    assert trio.current_time() == began
    for _ in range(most):
        await budgets.take(ONE, name)
    assert trio.current_time() - began == pytest.approx(60)
    await budgets.take(OTHER, name)
    assert trio.current_time() - began == pytest.approx(60)


async def test_full_budgets_are_evicted(monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock) -> None:
    monkeypatch.setattr(report_budgets, "_REMEMBERED", 2)
    budgets: Any = ReportBudgets(None)  # type: ignore[arg-type]
    await budgets.take(ONE, "UpdateStats")
    await trio.sleep(30)
    await budgets.take(OTHER, "UpdateStats")
    await budgets.take(OTHER, "UpdateStartup")
    assert {key[0] for key in budgets._paid_until} == {OTHER}


async def test_cancelled_calls_cost_nothing(autojump_clock: MockClock) -> None:
    budgets: Any = ReportBudgets(None)  # type: ignore[arg-type]
    for _ in range(CALLS_PER_MINUTE):
        await budgets.take(ONE, "BatchCreateLogs")
    with trio.move_on_after(1):
        async with trio.open_nursery() as nursery:
            for _ in range(10 * CALLS_PER_MINUTE):
                nursery.start_soon(budgets.take, ONE, "BatchCreateLogs")
    began = trio.current_time()
    await budgets.take(ONE, "BatchCreateLogs")
    assert trio.current_time() - began < 1
