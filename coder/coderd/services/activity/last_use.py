"""When workspaces were last used: noted here at once, written once a minute for all of them.

A workspace in use is reported every few seconds by each of its agents and applications; one row written a minute is
enough for dormancy, which counts in days. Upstream batches alike, and clients see the time move only then. Deadlines
move at once (`deadlines.py`).
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.store.workspaces import autobuilds as store

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


class LastUse:
    """What one server saw used and has not written yet. Made once, see `Context.part`."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._used: dict[UUID, datetime] = {}

    def note(self, workspace_id: UUID, at: datetime) -> None:
        """Somebody uses it."""
        self._used[workspace_id] = max(at, self._used.get(workspace_id, at))

    async def flush(self) -> int:
        """Writes what was noted; returns how many workspaces that were. What cannot be written is kept."""
        taken, self._used = self._used, {}
        if not taken:
            return 0
        try:
            await self._ctx.db.run(_write, taken)
        except BaseException:
            for workspace_id, at in taken.items():
                self.note(workspace_id, at)
            raise
        return len(taken)


async def _write(tx: Tx, used: dict[UUID, datetime]) -> None:
    for workspace_id in sorted(used):  # one order for all replicas: their rows' locks never cross
        await store.touch_workspace(tx, workspace_id, used[workspace_id])
