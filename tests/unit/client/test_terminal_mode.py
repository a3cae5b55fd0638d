"""Changes of the terminal's size: by a signal, or by looking where the system has none."""

from __future__ import annotations

import signal
from types import SimpleNamespace

import pytest
import trio
import trio.testing

from coder.client import terminal_mode


async def test_size_is_polled_without_signal(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    sizes = iter([(80, 24), (80, 24), (120, 40), (120, 40), (100, 30)])
    monkeypatch.setattr(terminal_mode, "signal", SimpleNamespace())
    monkeypatch.setattr(terminal_mode, "terminal_size", lambda: next(sizes))
    seen: list[tuple[int, int]] = []
    done = trio.Event()

    async def report(columns: int, lines: int) -> None:
        seen.append((columns, lines))
        if len(seen) == 2:
            done.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(terminal_mode.watch_size, report)
        await done.wait()
        nursery.cancel_scope.cancel()
    assert seen == [(120, 40), (100, 30)]


async def test_size_follows_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal_mode, "terminal_size", lambda: (132, 43))
    done: list[tuple[int, int]] = []

    async def report(columns: int, lines: int) -> None:
        done.append((columns, lines))
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(terminal_mode.watch_size, report)
        await trio.testing.wait_all_tasks_blocked()
        signal.raise_signal(signal.SIGWINCH)
    assert done == [(132, 43)]
