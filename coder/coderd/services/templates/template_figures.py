"""What is counted of each template: now and then, because counting reads every build of a month."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import trio

from coder.base.log import get_logger
from coder.coderd.store.templates import templates as store
from coder.coderd.store.templates.templates import BuildTime

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

_SINCE = timedelta(days=30)
_log = get_logger("template_figures")


@dataclass(frozen=True, slots=True)
class Counts:
    """By template; those of which there is nothing to count are missing."""

    times: Mapping[UUID, Sequence[BuildTime]] = field(default_factory=dict)
    owners: Mapping[UUID, int] = field(default_factory=dict)
    "People who have a workspace of it."


class TemplateFigures:
    """The last count of one server process. Made once, see `Context.part`."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._figures = Counts()
        self._counted_at: datetime | None = None
        self._counting = trio.Lock()

    async def get(self) -> Counts:
        """The last count. The first caller waits for it; an old one is renewed behind the callers' backs."""
        if self._counted_at is None:
            async with self._counting:
                if self._counted_at is None:
                    await self._count()
        elif self._is_old() and not self._counting.locked():
            self._ctx.nursery.start_soon(self._renew)
        return self._figures

    def _is_old(self) -> bool:
        age = self._ctx.clock.now() - (self._counted_at or self._ctx.clock.now())
        return age >= self._ctx.config.metrics_cache_refresh_interval

    async def _renew(self) -> None:
        async with self._counting:
            if not self._is_old():
                return
            try:
                await self._count()
            except Exception as error:
                # Old figures are better than none; the next caller tries again.
                _log.warn("figures of templates were not counted", error=error)

    async def _count(self) -> None:
        now = self._ctx.clock.now()
        times: dict[UUID, list[BuildTime]] = defaultdict(list)
        for time in await self._ctx.db.read(store.list_build_times, now - _SINCE):
            times[time.template_id].append(time)
        owners = await self._ctx.db.read(store.count_owners)
        self._figures, self._counted_at = Counts(dict(times), owners), now
