"""Times of last use of workspaces: recorded in memory at once, written once a minute for all of them.

Each agent and application of a workspace in use reports it every few seconds. One write a minute is enough for
dormancy, which counts in days. Upstream batches the same way, and clients see the time change only then. Deadlines
change at once (`deadlines.py`).
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
    """Uses seen by one server and not written yet."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._used: dict[UUID, datetime] = {}

    def note(self, workspace_id: UUID, at: datetime) -> None:
        """Record that the workspace is in use."""
        self._used[workspace_id] = max(at, self._used.get(workspace_id, at))

    async def flush(self) -> int:
        """Write all recorded uses; return the number of workspaces. Uses that cannot be written are kept."""
        recorded, self._used = self._used, {}
        if not recorded:
            return 0
        try:
            await self._ctx.db.run(_write, recorded)
        except BaseException:
            for workspace_id, at in recorded.items():
                self.note(workspace_id, at)
            raise
        return len(recorded)


async def _write(tx: Tx, used: dict[UUID, datetime]) -> None:
    for workspace_id in sorted(used):  # the same order on all replicas avoids deadlocks
        await store.touch_workspace(tx, workspace_id, used[workspace_id])
