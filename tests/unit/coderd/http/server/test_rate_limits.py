"""Requests a minute, per caller and endpoint."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from coder.base.clock import FakeClock
from coder.coderd.config.settings import ServerConfig
from coder.coderd.http.server import rate_limits
from coder.coderd.http.server.rate_limits import RateLimits
from coder.coderd.services.foundation.errors import RateLimited
from tests.kit.coderd import FIRST_USER, running_coderd

LOGIN = "/api/v2/users/login"


def limits(clock: FakeClock, **settings: Any) -> RateLimits:
    ctx: Any = SimpleNamespace(config=ServerConfig(**settings), clock=clock)
    return RateLimits(ctx)


def test_the_window_slides() -> None:
    clock = FakeClock()
    counted = limits(clock)
    for left in range(59, -1, -1):
        assert dict(counted.count("ip", LOGIN))["X-Ratelimit-Remaining"] == str(left)
    with pytest.raises(RateLimited) as caught:
        counted.count("ip", LOGIN)
    assert caught.value.message == "You've been rate limited for sending more than 60 requests in 1m0s."
    assert "Retry-After" in dict(caught.value.headers)
    counted.count("other", LOGIN)
    counted.count("ip", "/api/v2/users/otp/request")
    clock.advance(90)  # half of the last window still counts
    for _ in range(30):
        counted.count("ip", LOGIN)
    with pytest.raises(RateLimited):
        counted.count("ip", LOGIN)
    clock.advance(120)
    counted.count("ip", LOGIN)


def test_a_slash_at_the_end_is_no_way_around() -> None:
    counted = limits(FakeClock())
    for _ in range(30):
        counted.count("ip", LOGIN)
        counted.count("ip", LOGIN + "/")
    with pytest.raises(RateLimited):
        counted.count("ip", LOGIN + "//")


def test_made_up_paths_cost_neither_memory_nor_anybodys_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "_MOST_KEYS", 100)
    clock = FakeClock()
    counted = limits(clock, api_rate_limit=50)
    for _ in range(60):
        counted.count("ip", LOGIN)
    with pytest.raises(RateLimited):
        for number in range(1000):
            counted.count("ip", f"/api/v2/workspaces/{number}")
    assert len(counted._counters) <= 102
    with pytest.raises(RateLimited):
        counted.count("ip", LOGIN)
    counted.count("other", "/api/v2/users/me")
    clock.advance(180)
    counted.count("ip", "/api/v2/workspaces/a")
    assert len(counted._counters) == 1


def test_what_is_not_limited() -> None:
    counted = limits(FakeClock())
    assert counted.limit_of("/healthz") == 0
    assert counted.limit_of("/api/v2/files") == 12
    assert limits(FakeClock(), api_rate_limit=-1).limit_of("/api/v2/users") == 0
    assert limits(FakeClock(), dangerous_disable_rate_limits=True).limit_of(LOGIN) == 0


async def test_guessing_passwords_is_slowed_down() -> None:
    async with running_coderd(dangerous_disable_rate_limits=False, clock=FakeClock()) as world:
        await world.post("/api/v2/users/first", FIRST_USER)
        for _ in range(60):
            answer = await world.post(LOGIN, {"email": "zz@b.c", "password": ""})
            assert answer.status_code == 400
        answer = await world.post(LOGIN, {"email": "zz@b.c", "password": "x"})
        assert answer.status_code == 429
        assert answer.headers["x-ratelimit-remaining"] == "0"
        assert (await world.get("/healthz")).status_code == 200


async def test_the_bypass_is_the_owners() -> None:
    async with running_coderd(dangerous_disable_rate_limits=False, first_user=True) as world:
        _, token = await world.member()
        header = {"X-Coder-Bypass-Ratelimit": "true"}
        assert (await world.get("/api/v2/users/me", headers=header)).status_code == 200
        refused = await world.get("/api/v2/users/me", headers=header, token=token)
        assert refused.status_code == 428
