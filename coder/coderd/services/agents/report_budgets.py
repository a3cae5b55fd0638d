"""How often an agent may call, by call: what comes faster waits, so that no honest agent is refused.

Each report writes to the database, some of them a row that stays for months. In memory, by agent and not by link.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import trio

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

A_MINUTE = 1200
"Ours: of each call, and as many at once; twenty a second, for hours."
FEWER = {"UpdateStats": 60, "UpdateAppStatus": 120, "UpdateStartup": 60, "GetManifest": 120, "CreateSubAgent": 60}
"Ours: a genuine agent counts every half minute, and starts few containers."
_REMEMBERED = 10_000


class ReportBudgets:
    """Those of one server process. Made once, see `Context.part`."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._paid_until: dict[tuple[UUID, str], float] = {}
        "When each budget is whole again."

    async def take(self, agent_id: UUID, name: str) -> None:
        """Waits for the call's turn."""
        now, a_minute = trio.current_time(), FEWER.get(name, A_MINUTE)
        if len(self._paid_until) >= _REMEMBERED:
            self._paid_until = {key: until for key, until in self._paid_until.items() if until > now}
        key, cost = (agent_id, name), 60 / a_minute
        until = max(self._paid_until.get(key, now), now) + cost
        self._paid_until[key] = until
        try:
            # A wait begins when a minute's worth is used up.
            await trio.sleep(max(0.0, until - now - 60))
        except trio.Cancelled:
            # It was not made: a link that ended with thousands of calls leaves the next one no debt of hours.
            if key in self._paid_until:
                self._paid_until[key] -= cost
            raise
