"""Rate limits of agents' calls: faster calls wait, so that no honest agent is rejected.

Each report writes to the database, and some rows stay for months. Budgets are in memory, by agent and not by link.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import trio

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

CALLS_PER_MINUTE = 1200
"Our own limit of each call per minute, which is also the burst: twenty per second."
CALLS_PER_MINUTE_BY_METHOD = {
    "UpdateStats": 60,
    "ReportVitals": 60,
    "UpdateAppStatus": 120,
    "UpdateStartup": 60,
    "GetManifest": 120,
    "CreateSubAgent": 60,
}
"Our own lower limits: a genuine agent reports every half minute, and starts few containers."
_REMEMBERED = 10_000


class ReportBudgets:
    """Budgets of a server process."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._paid_until: dict[tuple[UUID, str], float] = {}
        "Time at which each budget is full again."

    async def take(self, agent_id: UUID, name: str) -> None:
        """Wait until the call is within its budget."""
        now, a_minute = trio.current_time(), CALLS_PER_MINUTE_BY_METHOD.get(name, CALLS_PER_MINUTE)
        if len(self._paid_until) >= _REMEMBERED:
            self._paid_until = {key: until for key, until in self._paid_until.items() if until > now}
        key, cost = (agent_id, name), 60 / a_minute
        until = max(self._paid_until.get(key, now), now) + cost
        self._paid_until[key] = until
        if until - now <= 60:
            return
        try:
            # The wait begins when a minute's budget is used.
            await trio.sleep(until - now - 60)
        except trio.Cancelled:
            # The call was not made: pending calls of an ended link must not use up the next link's budget.
            if key in self._paid_until:
                self._paid_until[key] -= cost
            raise
