"""A server starts every loop, and each runs its turns. Servers of other tests run almost none of them
(tests/kit/server/server_in_process.py)."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import trio

from coder.coderd import app, loops
from coder.coderd.loops import collector, last_use, rollouts
from tests.kit.server.server_in_process import ALL_LOOPS, running_coderd

NAMES = {path.stem for path in Path(loops.__path__[0]).glob("*.py")} - {"__init__", "skeleton"}
OFTEN = timedelta(seconds=0.01)
_Turn = Callable[..., Awaitable[float]]


async def test_every_loop_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    took: dict[str, list[float]] = {name: [] for name in NAMES}
    all_took_two = trio.Event()

    def noting(name: str, turn: _Turn) -> _Turn:
        async def record_turn(*about: Any) -> float:
            took[name].append(await turn(*about))
            if all(len(rests) > 1 for rests in took.values()):
                all_took_two.set()
            # More turns would take the processor from the loops that have taken none.
            return OFTEN.total_seconds() if len(took[name]) < 2 else math.inf

        return record_turn

    for name in NAMES:
        module = import_module(f"{loops.__name__}.{name}")
        assert module.run in ALL_LOOPS, name
        monkeypatch.setattr(module, "turn", noting(name, module.turn))
    for resting_first in (collector, last_use, rollouts):
        monkeypatch.setattr(resting_first, "EVERY", OFTEN.total_seconds())
    monkeypatch.setattr(app, "LOOPS", ALL_LOOPS)
    settings: dict[str, Any] = dict.fromkeys(
        (
            "autobuild_poll_interval",
            "job_hang_detector_interval",
            "proxy_health_interval",
            "workspace_prebuilds_reconciliation_interval",
        ),
        OFTEN,
    )
    (tmp_path / "releases.json").write_text('{"releases": []}')
    settings |= {"update_check": True, "release_list": str(tmp_path)}
    async with running_coderd(first_user=True, **settings):
        with trio.fail_after(60):
            await all_took_two.wait()
    assert len(ALL_LOOPS) == len(NAMES)
