"""Cancelled profiles."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import trio

from coder.coderd.services.site import profiling


async def test_cancel_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    began, ended = threading.Event(), threading.Event()

    def sample(_seconds: float, _main: int, stop: threading.Event) -> dict[str, str]:
        began.set()
        stop.wait()
        ended.set()
        return {}

    monkeypatch.setattr(profiling, "_sample", sample)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(profiling._sampled, 60.0)
        await trio.to_thread.run_sync(began.wait)
        nursery.cancel_scope.cancel()
    await trio.to_thread.run_sync(ended.wait)


def test_stopped_sampling_takes_one_sample() -> None:
    stop: Any = threading.Event()
    stop.set()
    result = profiling._sample(60.0, threading.get_ident(), stop)
    assert set(result) == {"cpu", "threads"}
