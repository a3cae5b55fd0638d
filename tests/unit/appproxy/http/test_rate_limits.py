"""Requests per minute, by caller and endpoint."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.testing

from coder.api.base.refusals import RateLimited
from coder.appproxy.http import rate_limits
from coder.appproxy.http.client_address import network_of
from coder.appproxy.http.rate_limits import BYPASS, NO_ANSWER, PATIENCE, Counted, RateLimits
from coder.base.clock import FakeClock
from coder.coderd.config.settings import ServerConfig
from coder.domain.access.rate_budgets import API, FILES, GUESSES, PASSWORDS, Budget, unlimited
from tests.kit.server.server_in_process import FIRST_USER, running_coderd

LOGIN = "/api/v2/users/login"


def limits(clock: FakeClock, **settings: Any) -> RateLimits:
    ctx: Any = SimpleNamespace(config=ServerConfig(**settings), clock=clock)
    return RateLimits(ctx)


def count_headers(counted: RateLimits, path: str, *budgets: Budget, who: str = "ip") -> dict[str, str]:
    return dict(counted.count(who, path, budgets or (PASSWORDS,), route=path.rstrip("/")).headers)


def test_the_window_slides() -> None:
    clock = FakeClock()
    counted = limits(clock)
    for left in range(59, -1, -1):
        assert count_headers(counted, LOGIN)["X-Ratelimit-Remaining"] == str(left)
    with pytest.raises(RateLimited) as caught:
        count_headers(counted, LOGIN)
    assert caught.value.message == "You've been rate limited for sending more than 60 requests in 1m0s."
    assert "Retry-After" in dict(caught.value.headers)
    count_headers(counted, LOGIN, who="other")
    count_headers(counted, "/api/v2/users/otp/request")
    clock.advance(90)  # half of the last window still counts
    for _ in range(30):
        count_headers(counted, LOGIN)
    with pytest.raises(RateLimited):
        count_headers(counted, LOGIN)
    clock.advance(120)
    count_headers(counted, LOGIN)


def test_trailing_slash_counts_the_same() -> None:
    counted = limits(FakeClock())
    for _ in range(30):
        count_headers(counted, LOGIN)
        count_headers(counted, LOGIN + "/")
    with pytest.raises(RateLimited):
        count_headers(counted, LOGIN + "//")


def routed(counted: RateLimits, path: str, *budgets: Budget, who: str = "ip") -> Counted:
    return counted.count(who, path, budgets, route="/api/v2/workspaces/<workspace>")


def test_foreign_paths_are_not_stored() -> None:
    """Of any length and content."""
    clock = FakeClock()
    counted = limits(clock)
    for number in range(64):
        for path in (f"/api/v2/\U0001f4a3{'a' * 60_000}{number}", f"/api/v2/x{number}/\udcff\0", str(number)):
            counted.count(f"ip-{number}", path, (API,))
            routed(counted, path, API)
            routed(counted, path, replace(API, whole_route=True))
    assert {sys.getsizeof(key) for key in counted._counters} == {sys.getsizeof(b"x" * 16)}
    clock.advance(3 * 60)  # no minimum number of them is kept
    routed(counted, "/api/v2/workspaces/a", API)
    assert len(counted._counters) == len(counted._paths) == 1


def test_unrouted_paths_share_a_counter() -> None:
    counted = limits(FakeClock(), api_rate_limit=50)
    for number in range(50):
        counted.count("ip", f"/api/v2/nothing/{number}", (API,))
    with pytest.raises(RateLimited):
        counted.count("ip", "/api/v2/nothing/50", (API,))
    assert len(counted._counters) == 1


def test_invented_paths_share_a_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    """By budget: requests of one do not count for another."""
    monkeypatch.setattr(rate_limits, "_MAX_PATHS", 100)
    clock = FakeClock()
    counted = limits(clock, api_rate_limit=50)
    for number in range(150):
        routed(counted, f"/api/v2/workspaces/{number}", API)
    with pytest.raises(RateLimited):
        routed(counted, "/api/v2/workspaces/150", API)
    assert len(counted._counters) == 101
    for number in range(12):
        routed(counted, f"/api/v2/files/{number}", FILES)
    with pytest.raises(RateLimited):
        routed(counted, "/api/v2/files/12", FILES)
    count_headers(counted, LOGIN)
    routed(counted, "/api/v2/workspaces/0", API)  # a path with a counter keeps it
    for number in range(100):
        routed(counted, f"/api/v2/workspaces/{number}", API, who="other")
        routed(counted, "/api/v2/workspaces/of-the-others-own", API, who=f"other-{number % 5}")
    clock.advance(60)
    routed(counted, "/api/v2/workspaces/new", API)


def test_budgets_are_counted_separately() -> None:
    counted = limits(FakeClock(), api_rate_limit=50)
    for _ in range(12):
        routed(counted, "/api/v2/files", FILES, API)
    routed(counted, "/api/v2/files", API)


def test_a_bypass_counts_nothing() -> None:
    counted = limits(FakeClock(), api_rate_limit=50)
    for number in range(100):
        headers = dict(routed(counted, f"/api/v2/workspaces/{number}", API, PASSWORDS, who=BYPASS).headers)
        assert headers["X-Ratelimit-Remaining"] == "59"
    assert not counted._counters and not counted._paths


def test_unlimited_requests() -> None:
    counted = limits(FakeClock())
    assert counted.limit_of(unlimited("count_headers by load balancers")) == 0
    assert counted.limit_of(FILES) == 12
    assert limits(FakeClock(), api_rate_limit=-1).limit_of(API) == 0
    assert limits(FakeClock(), dangerous_disable_rate_limits=True).limit_of(PASSWORDS) == 0


async def enter(counted: RateLimits, address: str = "192.0.2.1") -> Counted:
    return await counted.enter("user", "/scim/v2/Users", (GUESSES,), route="/scim/v2/Users", address=address)


async def test_valid_secret_is_not_counted() -> None:
    counted = limits(FakeClock())
    for _ in range(200):
        (await enter(counted)).settle(201)
        (await enter(counted)).settle(404)
        (await enter(counted)).settle(NO_ANSWER)
    for _ in range(60):
        refused = await enter(counted)
        refused.settle(401)
        refused.settle(200)  # it was settled already
    with pytest.raises(RateLimited):
        await enter(counted)


async def _all_at_once(counted: RateLimits, statuses: list[int]) -> tuple[int, int, list[int]]:
    """Return how many were admitted and refused, and how many were in progress at each start of a response."""
    let_in, refused, open_now, seen = 0, 0, 0, []

    async def send_guess(status: int) -> None:
        nonlocal let_in, refused, open_now
        try:
            admission = await enter(counted)
        except RateLimited:
            refused += 1
            return
        let_in, open_now = let_in + 1, open_now + 1
        seen.append(open_now)
        await trio.sleep(0.1)
        open_now -= 1
        admission.settle(status)

    async with trio.open_nursery() as nursery:
        for status in statuses:
            nursery.start_soon(send_guess, status)
    return let_in, refused, seen


async def test_many_valid_secrets_pass_concurrently(autojump_clock: trio.testing.MockClock) -> None:
    """An identity provider's thousand users, or agents whose cluster was restarted."""
    let_in, refused, seen = await _all_at_once(limits(FakeClock()), [200] * 1000)
    assert (let_in, refused, max(seen)) == (1000, 0, 60)


@pytest.mark.parametrize("right", [0, 1, 40, 300])
async def test_concurrent_guesses_are_limited(right: int, autojump_clock: trio.testing.MockClock) -> None:
    counted = limits(FakeClock())
    let_in, refused, _ = await _all_at_once(counted, [200] * right + [401] * 300)
    assert let_in - right <= 60 and let_in + refused == right + 300
    if right + 60 <= let_in:  # trio starts tasks in its own order
        with pytest.raises(RateLimited):
            await enter(counted)


async def test_waiting_ends(autojump_clock: trio.testing.MockClock) -> None:
    """In order of arrival, or when patience ends, or when too many wait."""
    clock = FakeClock()
    counted = limits(clock)
    held = [await enter(counted) for _ in range(60)]
    began = trio.current_time()
    with pytest.raises(RateLimited) as caught:
        await enter(counted)
    assert trio.current_time() - began == PATIENCE and "Retry-After" in dict(caught.value.headers)
    with trio.move_on_after(1) as left:
        await enter(counted)
    assert left.cancelled_caught
    refused = 0

    async def wait() -> None:
        nonlocal refused
        try:
            held.append(await enter(counted))
        except RateLimited:
            refused += 1

    async with trio.open_nursery() as nursery:
        for _ in range(16 * 60 + 5):
            nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        assert refused == 5
        clock.advance(300)  # a request in progress keeps its counter
        held[0].settle(200)
        await trio.testing.wait_all_tasks_blocked()
        assert len(held) == 61
        for item in held[1:]:
            item.settle(401)
        await trio.testing.wait_all_tasks_blocked()
        assert len(held) == 61 and refused == 5 + 16 * 60 - 1, "sixty were refused: the others need not wait longer"
    with pytest.raises(RateLimited):
        await enter(counted)
    clock.advance(120)
    (await enter(counted)).settle(401)


Step = Callable[[FakeClock, trio.CancelScope, Counted], None]
_MEANWHILE: dict[str, tuple[Step, ...]] = {
    "leaves": (lambda _clock, scope, _held: scope.cancel(),),
    "leaves, then it is its turn": (lambda _c, scope, _h: scope.cancel(), lambda _c, _s, held: held.settle(200)),
    "leaves, then the other was wrong": (lambda _c, scope, _h: scope.cancel(), lambda _c, _s, held: held.settle(401)),
    "it is its turn, then it leaves": (lambda _c, _s, held: held.settle(200), lambda _c, scope, _h: scope.cancel()),
}


@pytest.mark.parametrize("steps", _MEANWHILE.values(), ids=_MEANWHILE)
@pytest.mark.parametrize("others", [0, 3])
async def test_no_reservation_is_lost(steps: tuple[Step, ...], others: int) -> None:
    """A waiting request disconnects in the moment of its admission: the next one gets the reservation."""
    clock, let_in = FakeClock(), []
    counted = limits(clock)
    held = [await enter(counted) for _ in range(60)]

    async def wait(scope: trio.CancelScope) -> None:
        with scope:
            admission = await enter(counted)
            try:
                await trio.lowlevel.checkpoint()
                let_in.append(admission)
            finally:
                if admission not in let_in:
                    admission.settle(NO_ANSWER)

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            scopes = [trio.CancelScope() for _ in range(1 + others)]
            for scope in scopes:
                nursery.start_soon(wait, scope)
                await trio.testing.wait_all_tasks_blocked()
            for step in steps:
                step(clock, scopes[0], held[0])
            await trio.testing.wait_all_tasks_blocked()
            for item in (*held, *let_in):
                item.settle(200)
        for item in let_in:
            item.settle(200)
        clock.advance(120)
        for _ in range(60):
            await enter(counted)  # or waits for none


async def test_request_in_progress_keeps_its_counter() -> None:
    clock = FakeClock()
    counted = limits(clock)
    held = [await enter(counted) for _ in range(60)]
    clock.advance(300)
    for number in range(20):
        counted.count(f"user-{number}", "/api/v2/users/me")
    with trio.move_on_after(0.01) as scope:
        await enter(counted)
    assert scope.cancelled_caught
    held[0].settle(200)
    await enter(counted)


async def test_spent_budget_releases_the_other() -> None:
    """An endpoint with two budgets."""
    counted = limits(FakeClock())
    other = replace(GUESSES, name="other", limit=1)

    async def both() -> Counted:
        return await counted.enter("user", "/x", (GUESSES, other), route="/x", address="192.0.2.1")

    (await both()).settle(401)
    for _ in range(70):
        with pytest.raises(RateLimited):
            await both()
    for _ in range(59):
        (await counted.enter("user", "/x", (GUESSES,), route="/x", address="192.0.2.1")).settle(401)


async def test_ipv6_network_counts_as_one() -> None:
    assert network_of("2001:db8:1:2:3:4:5:6") == network_of("2001:db8:1:2::1") == "2001:db8:1:2::/64"
    assert network_of("2001:db8:1:3::1") != network_of("2001:db8:1:2::1")
    assert network_of("::ffff:192.0.2.1") == network_of("192.0.2.1")
    assert network_of("fe80::1%eth0") == "fe80::/64"
    assert network_of("") == ""
    counted = limits(FakeClock())
    for number in range(60):
        (await enter(counted, f"2001:db8::{number:x}")).settle(401)
    with pytest.raises(RateLimited):
        await enter(counted, "2001:db8::99")


async def test_password_guesses_are_limited() -> None:
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
