"""How many requests a minute: per user (or address when signed out) and endpoint, in this process's memory.

A sliding window of two counters, as upstream's. Password guesses and uploads have tighter limits of their own. Not
shared between replicas: each counts for itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from coder.coderd.services.foundation.errors import PreconditionRequired, RateLimited

if TYPE_CHECKING:
    from coder.coderd.services.access.authentication import Caller
    from coder.coderd.services.foundation.context import Context

WINDOW = 60.0
"Seconds."
LOGIN_LIMIT = 60
FILES_LIMIT = 12
REGISTRATION_LIMIT = 10
"""Clients that register themselves; ours: nobody is asked who they are, and each is a row that stays."""
_REGISTRATION = "/oauth2/register"
_MOST_KEYS = 50_000
"Above this, keys whose window has passed are forgotten, and what a caller asks for the first time is counted together."
_LOGIN_PATHS = frozenset(
    f"/api/v2/users/{name}" for name in ("login", "otp/request", "otp/change-password", "validate-password")
)
_ANYTHING = "*"
"In a path's place."
BYPASS_HEADER = "X-Coder-Bypass-Ratelimit"


@dataclass(slots=True)
class _Counter:
    window: int
    current: int = 0
    previous: int = 0


class RateLimits:
    """All counters of one server, see `Context.part`."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._counters: dict[tuple[str, str], _Counter] = {}
        self._forgot_in = -1
        "The window in which old keys were last looked for: once is enough."

    def limit_of(self, path: str) -> int:
        """Requests a minute; 0 when the path is not limited."""
        config = self._ctx.config
        if config.dangerous_disable_rate_limits:
            return 0
        if path.rstrip("/") == _REGISTRATION:
            return REGISTRATION_LIMIT
        if not path.startswith("/api/"):
            return 0
        if path.rstrip("/") in _LOGIN_PATHS:  # routes answer with the slash as well
            return LOGIN_LIMIT
        if path == "/api/v2/files" or path.startswith("/api/v2/files/"):
            return FILES_LIMIT
        return max(config.api_rate_limit, 0)

    def count(self, who: str, path: str) -> list[tuple[str, str]]:
        """Counts one request and returns the headers that tell. Raises RateLimited."""
        limit = self.limit_of(path)
        if not limit:
            return []
        now = self._ctx.clock.now().timestamp()
        window, elapsed = int(now // WINDOW), now % WINDOW
        counter = self._counter((who, path.rstrip("/")), window)
        rate = counter.current + counter.previous * (WINDOW - elapsed) / WINDOW
        refused = rate >= limit
        if not refused:
            counter.current += 1
        remaining = 0 if refused else max(0, limit - int(rate) - 1)
        headers = [
            ("X-Ratelimit-Limit", str(limit)),
            ("X-Ratelimit-Remaining", str(remaining)),
            ("X-Ratelimit-Reset", str(int((window + 1) * WINDOW))),
        ]
        if refused:
            raise RateLimited(
                f"You've been rate limited for sending more than {limit} requests in 1m0s.",
                headers=[*headers, ("Retry-After", str(max(1, int(WINDOW - elapsed))))],
            )
        return headers

    def _counter(self, key: tuple[str, str], window: int) -> _Counter:
        counter = self._counters.get(key)
        if counter is None and len(self._counters) > _MOST_KEYS:
            if self._forgot_in != window:
                self._forget(window)
            if len(self._counters) > _MOST_KEYS and key[1] not in _LOGIN_PATHS:
                # Somebody makes paths up. None of the counters there are may be lost to that.
                key = (key[0], _ANYTHING)
                counter = self._counters.get(key)
        if counter is None:
            counter = self._counters[key] = _Counter(window)
        elif counter.window != window:
            counter.previous = counter.current if counter.window == window - 1 else 0
            counter.window, counter.current = window, 0
        return counter

    def _forget(self, window: int) -> None:
        self._forgot_in = window
        self._counters = {key: item for key, item in self._counters.items() if item.window >= window - 1}


def key_of(caller: Caller | None, remote_ip: str, wants_bypass: bool) -> str:
    """Whom a request is counted for. Raises PreconditionRequired for a bypass that is not allowed."""
    if wants_bypass:
        if caller is None or not caller.subject.is_owner:
            raise PreconditionRequired("Rate limit bypass is for owners.")
        return f"bypass-{uuid4()}"
    return f"user-{caller.user.id}" if caller is not None else f"ip-{remote_ip}"
