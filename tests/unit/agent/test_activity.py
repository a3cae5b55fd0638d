"""Waiting for idle activity."""

from __future__ import annotations

import trio
import trio.testing

from coder.agent.activity import Activity


async def test_quiet_after_last_end() -> None:
    activity, order = Activity(), list[str]()

    async def run(what: str, until: trio.Event) -> None:
        with activity.of(what):
            await until.wait()
        order.append(what)

    async def wait() -> None:
        await activity.wait_idle()
        order.append("quiet")

    await activity.wait_idle()  # nothing runs
    events = [trio.Event() for _ in range(3)]
    async with trio.open_nursery() as nursery:
        for what, event in zip(("SSH connections", "SSH connections", "scripts"), events, strict=True):
            nursery.start_soon(run, what, event)
        await trio.testing.wait_all_tasks_blocked()
        assert activity.describe() == "SSH connections: 2, scripts: 1"
        nursery.start_soon(wait)
        for event in events:
            event.set()
            await trio.testing.wait_all_tasks_blocked()
    assert order == ["SSH connections", "SSH connections", "scripts", "quiet"]
    assert activity.describe() == ""
