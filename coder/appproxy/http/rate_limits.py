"""Request rates per minute: per user (or address when signed out) and endpoint, in this process's memory.

A sliding window of two counters, as upstream's. Routes declare their budgets (`coder/domain/access/rate_budgets.py`).
Not shared between replicas: each counts for itself. Text from clients is not stored: a counter's key is a digest, and
the counter is deleted when its window has passed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Protocol, TypeVar

import trio

from coder.api.base.refusals import PreconditionRequired, RateLimited, Refusal
from coder.appproxy.http.client_address import network_of
from coder.domain.access.rate_budgets import API, Budget

if TYPE_CHECKING:
    from uuid import UUID

    from coder.appproxy.settings import RateLimitSettings
    from coder.base.clock import Clock
    from coder.domain.access.policy import Subject

T = TypeVar("T")
Who = TypeVar("Who")

WINDOW = 60.0
"""Seconds."""
_MAX_PATHS = 4_096
"""Maximum paths of one caller in one window: enough for a program that visits all workspaces of a large site. A caller
with more is inventing them: further ones are counted together, for each budget."""
_NO_ROUTE, _FURTHER = "*", "**"
"""Placeholders for paths: all those without a route, and those above the maximum."""
BYPASS_HEADER = "X-Coder-Bypass-Ratelimit"
BYPASS = "bypass"
"""Key of an owner that bypasses the limits."""
_API_ONLY = (API,)
_WAITING_FACTOR = 16
"""Factor of a refusal budget: waiting requests of one address while a budget of them is in progress."""
PATIENCE = 10.0
"""Seconds they wait. A client that retries after half a minute is answered while it listens."""
NO_ANSWER = 0
"""Status of a request whose client disconnected without an answer."""


class SignedIn(Protocol):
    """Caller that the process knows."""

    @property
    def subject(self) -> Subject: ...


class Limited(Protocol):
    """Process with rate limits: the server, or a workspace proxy."""

    @property
    def config(self) -> RateLimitSettings: ...
    @property
    def clock(self) -> Clock: ...


@dataclass(slots=True)
class _Counter:
    window: int
    current: int = 0
    previous: int = 0
    in_progress: int = 0
    """Requests in progress; for refusal budgets alone, like the following fields."""
    waiting: dict[_Waiter, None] = field(default_factory=dict)
    """Waiting requests in order of arrival."""

    @property
    def in_use(self) -> bool:
        return bool(self.in_progress or self.waiting)

    def move_to(self, window: int) -> None:
        if self.window != window:
            self.previous = self.current if self.window == window - 1 else 0
            self.window, self.current = window, 0

    def rate(self, elapsed: float) -> float:
        """Return the rate of the last minute, `elapsed` seconds into the window."""
        return self.current + self.previous * (WINDOW - elapsed) / WINDOW


@dataclass(slots=True, eq=False)
class _Waiter:
    """Request that waits for others to be answered."""

    woken: trio.Event = field(default_factory=trio.Event)
    let_in: bool = False


@dataclass(slots=True)
class Counted:
    """Admitted request. Its reservations have to be settled, however it ends."""

    headers: list[tuple[str, str]] = field(default_factory=list)
    """Headers with the remaining number."""
    lent: list[_Loan] = field(default_factory=list)
    """Reservations held until the answer is known: of many concurrent requests not all may pass before the first is
    refused."""

    def settle(self, status: int) -> None:
        """Settle with the status, or NO_ANSWER: refusals are counted. A second call does nothing."""
        lent, self.lent = self.lent, []
        for loan in lent:
            loan.settle(status)


@dataclass(frozen=True, slots=True)
class _Loan:
    """Reservation of one request in progress."""

    budget: Budget
    limit: int
    counter: _Counter
    clock: Clock

    def settle(self, status: int) -> None:
        counter, (window, elapsed) = self.counter, _window(self.clock)
        counter.move_to(window)
        counter.in_progress -= 1
        counter.current += status in self.budget.refused
        rate = counter.rate(elapsed)
        while counter.waiting and (rate >= self.limit or rate + counter.in_progress < self.limit):
            waiter = next(iter(counter.waiting))
            del counter.waiting[waiter]
            waiter.let_in = rate < self.limit
            counter.in_progress += waiter.let_in
            waiter.woken.set()


class RateLimits:
    """All counters of one process."""

    def __init__(self, ctx: Limited) -> None:
        self._config = ctx.config
        self._clock = ctx.clock
        self._counters: dict[bytes, _Counter] = {}
        self._paths: dict[str, int] = {}
        """Number of each caller's new counters in this window."""
        self._looked_in = -1
        """Window in which old counters were last removed: once is enough."""

    @property
    def enabled(self) -> bool:
        return not self._config.dangerous_disable_rate_limits

    def limit_of(self, budget: Budget) -> int:
        """Return the requests per minute; 0 when unlimited."""
        if budget.unlimited_because or self._config.dangerous_disable_rate_limits:
            return 0
        return budget.limit or max(self._config.api_rate_limit * budget.times, 0)

    def count(self, who: str, path: str, budgets: Sequence[Budget] = _API_ONLY, *, route: str = "") -> Counted:
        """Count one request of `who` (see `key_of`). Raises RateLimited when one of its budgets is spent.

        `route` is the pattern `path` matched; without one all such paths count together. Refusal budgets are ignored,
        see `enter`.
        """
        counted = Counted()
        window, elapsed = _window(self._clock)
        for budget in budgets:
            limit = self.limit_of(budget)
            if limit and not budget.refused:
                rate = 0.0
                if who != BYPASS:
                    counter = self._counter(who, path, route, budget, window)
                    rate = counter.rate(elapsed)
                    if rate >= limit:
                        raise _refusal(limit, window, elapsed)
                    counter.current += 1
                counted.headers = _headers(limit, max(0, limit - int(rate) - 1), window)
        return counted

    async def enter(
        self, who: str, path: str, budgets: Sequence[Budget], *, route: str = "", address: str = ""
    ) -> Counted:
        """Count like `count`, and reserve a place among the requests of `address` that may be refused. The caller
        settles it.

        Waits while refusals of the last minute and requests in progress together reach a budget: so no more guesses are
        answered than that, and many callers with the secret pass concurrently. Raises RateLimited when a budget is
        spent, when too many wait, and after PATIENCE.
        """
        counted = self.count(who, path, budgets, route=route)
        try:
            for budget in budgets:
                limit = self.limit_of(budget)
                if limit and budget.refused and who != BYPASS:
                    counter = self._counter(address_key(address), path, route, budget, _window(self._clock)[0])
                    loan = _Loan(budget, limit, counter, self._clock)
                    await self._take_place(loan)
                    counted.lent.append(loan)
        except BaseException:
            counted.settle(NO_ANSWER)
            raise
        return counted

    async def _take_place(self, loan: _Loan) -> None:
        counter, limit = loan.counter, loan.limit
        window, elapsed = _window(self._clock)
        rate = counter.rate(elapsed)
        if not counter.waiting and rate + counter.in_progress < limit:
            counter.in_progress += 1
            return
        # Some request is in progress whenever the rate is below the limit, so there is one to wait for.
        if rate >= limit or len(counter.waiting) >= limit * _WAITING_FACTOR:
            raise _refusal(limit, window, elapsed)
        waiter = _Waiter()
        counter.waiting[waiter] = None
        try:
            with trio.move_on_after(PATIENCE):
                await waiter.woken.wait()
        except BaseException:
            if waiter.let_in:  # cancelled just before: an unreturned reservation would be lost forever
                loan.settle(NO_ANSWER)
            raise
        finally:
            counter.waiting.pop(waiter, None)
        if not waiter.let_in:
            raise _refusal(limit, *_window(self._clock))

    def _counter(self, who: str, path: str, route: str, budget: Budget, window: int) -> _Counter:
        self._forget(window)
        together = budget.whole_route or not route
        # Routes also match with a trailing slash.
        key = _key(who, budget, (route or _NO_ROUTE) if together else path.rstrip("/"))
        counter = self._counters.get(key)
        if counter is None and not together:
            self._paths[who] = self._paths.get(who, 0) + 1
            if self._paths[who] > _MAX_PATHS:
                key = _key(who, budget, _FURTHER)
                counter = self._counters.get(key)
        if counter is None:
            counter = self._counters[key] = _Counter(window)
        counter.move_to(window)
        return counter

    def _forget(self, window: int) -> None:
        if self._looked_in == window:
            return
        self._looked_in = window
        self._paths.clear()
        self._counters = {key: item for key, item in self._counters.items() if item.window >= window - 1 or item.in_use}


def _key(who: str, budget: Budget, what: str) -> bytes:
    """Return a digest, because a client may send a path of 60 KB."""
    return blake2b(f"{who}\0{budget.name}\0{what}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _window(clock: Clock) -> tuple[int, float]:
    """Return the number of the current window, and the seconds into it."""
    now = clock.now().timestamp()
    return int(now // WINDOW), now % WINDOW


def _headers(limit: int, remaining: int, window: int) -> list[tuple[str, str]]:
    return [
        ("X-Ratelimit-Limit", str(limit)),
        ("X-Ratelimit-Remaining", str(remaining)),
        ("X-Ratelimit-Reset", str(int((window + 1) * WINDOW))),
    ]


def _refusal(limit: int, window: int, elapsed: float) -> RateLimited:
    return RateLimited(
        f"You've been rate limited for sending more than {limit} requests in 1m0s.",
        headers=[*_headers(limit, 0, window), ("Retry-After", str(max(1, int(WINDOW - elapsed))))],
    )


async def counted(
    found: Awaitable[T], name: Callable[[T], Who | str], count: Callable[[Who | str | None], Awaitable[None]]
) -> T:
    """Look up the owner of a random secret, then count: a valid one under its owner (empty: not at all), an invalid one
    by its address.

    So invalid secrets do not lock out other callers behind the same address; guessing 122 bits is infeasible. Raises
    the errors of `found`, and RateLimited.
    """
    try:
        known = await found
    except Refusal:
        await count(None)
        raise
    if who := name(known):
        await count(who)
    return known


def key_of(who: SignedIn | str | None, remote_ip: str, wants_bypass: bool) -> str:
    """Return the key a request is counted under: a user, an account by its name, else an address.

    Raises PreconditionRequired for a bypass that is not allowed.
    """
    if wants_bypass:
        if who is None or isinstance(who, str) or not who.subject.is_owner:
            raise PreconditionRequired("Rate limit bypass is for owners.")
        return BYPASS
    if isinstance(who, str):
        return who
    return user_key(who.subject.user_id) if who is not None else address_key(remote_ip)


def user_key(user_id: UUID) -> str:
    return f"user-{user_id}"


def address_key(remote_ip: str) -> str:
    return f"ip-{network_of(remote_ip)}"
