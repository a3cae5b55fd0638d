"""Figures of each template, counted at intervals because counting reads every build of a month."""

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
    """Build times and owners by template; templates without any are missing."""

    times: Mapping[UUID, Sequence[BuildTime]] = field(default_factory=dict)
    owners: Mapping[UUID, int] = field(default_factory=dict)
    "Number of users with a workspace of the template."


class TemplateFigures:
    """Latest figures of a server process."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._figures = Counts()
        self._counted_at: datetime | None = None
        self._counting = trio.Lock()

    async def get(self) -> Counts:
        """Return the latest figures. The first caller waits for the count; later counts run in the background."""
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
                # Old figures are better than none; the next caller retries.
                _log.warn("figures of templates could not be counted", error=error)

    async def _count(self) -> None:
        now = self._ctx.clock.now()
        times: dict[UUID, list[BuildTime]] = defaultdict(list)
        for time in await self._ctx.db.read(store.list_build_times, now - _SINCE):
            times[time.template_id].append(time)
        owners = await self._ctx.db.read(store.count_owners)
        self._figures, self._counted_at = Counts(dict(times), owners), now
