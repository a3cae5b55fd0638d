"""Identity of this server process among the replicas that share its database."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


class ThisReplica:
    """Identity of this replica."""

    def __init__(self, ctx: Context) -> None:
        self.id: UUID = ctx.process.replica
        self.started_at: datetime = ctx.clock.now()
        self.refreshed_at: datetime = self.started_at
        "Time of the last request to refresh the entitlements."
