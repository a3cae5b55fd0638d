"""Delays after attempts that a busy server answers late or never."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
import trio
import trio.testing

from coder.base.retry import SLOW_ATTEMPT, SLOW_REST, SPREAD, Backoff, spread
from coder.base.secret import Secret
from coder.coderd.config.settings import ServerConfig
from coder.net.errors import HttpError, NetError
from coder.provisionerd import daemon
from coder.provisionerd.config import DaemonConfig
from coder.provisionerd.link import Link
from coder.rpc.session import Session
from coder.tailnet.reconnect import keep_coordinated
from coder.wsproxy.config import ProxyConfig
from coder.wsproxy.registration import Registration

MINUTES = 10


def test_periodic_calls_of_one_moment_part() -> None:
    """A server answered a thousand calls together: after the next interval they are spread over a fifth of it."""
    intervals = [spread(30.0) for _ in range(1000)]
    assert min(intervals) >= 30 * (1 - SPREAD)
    assert max(intervals) <= 30 * (1 + SPREAD)
    assert len(set(intervals)) > 900


def test_rests_grow_with_slow_attempts() -> None:
    backoff = Backoff(0.05, 10.0, jitter=0.0)
    assert [backoff.next_delay(SLOW_ATTEMPT) for _ in range(4)] == [SLOW_REST, 2 * SLOW_REST, 3 * SLOW_REST, 10.0]
    assert backoff.next_delay() == pytest.approx(0.05 * 2**4)
    assert backoff.next_delay(SLOW_ATTEMPT) == SLOW_REST


Attempt = Callable[[], Awaitable[None]]


async def _coordinate(attempt: Attempt, _folder: Path) -> None:
    @asynccontextmanager
    async def connect(_token: str) -> AsyncIterator[Session]:
        await attempt()
        yield cast("Any", None)

    controller: Any = type("Controller", (), {"resume_token": ""})()
    await keep_coordinated(controller, connect)


async def _serve_jobs(attempt: Attempt, folder: Path) -> None:
    @asynccontextmanager
    async def connect() -> AsyncIterator[Session]:
        await attempt()
        yield cast("Any", None)

    config = DaemonConfig(name="d", work_dir=folder)
    await daemon._stay_connected(connect, config, Link(config), daemon._ignore_session, trio.CancelScope())


async def _register(attempt: Attempt, _folder: Path) -> None:
    class Primary:
        url = "https://coder.test"

        async def build_info(self) -> None:
            await attempt()

    config = ProxyConfig("https://coder.test", Secret("x"), ServerConfig(access_url="https://sydney.test"))
    await Registration(cast("Any", Primary()), config).keep(lambda _answer: None)


@pytest.mark.parametrize("keep", [_coordinate, _serve_jobs, _register])
async def test_busy_server_is_dialled_rarely(
    keep: Callable[[Attempt, Path], Awaitable[None]], tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """The first attempts after its start: they are the ones that a doubled delay hardly spreads."""
    rests, ended_at = list[float](), 0.0

    async def attempt() -> None:
        nonlocal ended_at
        rests.append(trio.current_time() - ended_at)
        await trio.sleep(SLOW_ATTEMPT + 0.01)  # differences of times are rounded
        ended_at = trio.current_time()
        raise NetError("timeout", "the server did not answer an upgrade within 5 s")

    with trio.move_on_after(60 * MINUTES):
        await keep(attempt, tmp_path)
    assert min(rests[1:]) >= SLOW_REST / 2 and min(rests[4:]) >= 5.0


@pytest.mark.parametrize("keep", [_coordinate, _serve_jobs, _register])
async def test_server_that_names_a_time_is_dialled_then(
    keep: Callable[[Attempt, Path], Awaitable[None]], tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """However late it answers: it has the place of each caller in mind."""
    dialled = list[float]()

    async def attempt() -> None:
        dialled.append(trio.current_time())
        await trio.sleep(2 * SLOW_ATTEMPT)
        busy = HttpError(503, "busy")
        busy.retry_after = 1.0
        raise busy

    with trio.move_on_after(25):
        await keep(attempt, tmp_path)
    assert len(dialled) == 3 and dialled[1] - dialled[0] <= 2 * SLOW_ATTEMPT + 1.2
