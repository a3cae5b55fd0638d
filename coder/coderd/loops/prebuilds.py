"""Makes and removes prebuilt workspaces until every preset has its number. The steps are `services/prebuilds.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from coder.coderd.services.prebuilds import reconcile

if TYPE_CHECKING:
    from coder.coderd.services.context import Context


async def run(ctx: Context) -> None:
    """Runs until cancelled."""
    log = ctx.log.bind(loop="prebuilds")
    while True:
        await trio.sleep(ctx.config.workspace_prebuilds_reconciliation_interval.total_seconds())
        try:
            done = await reconcile(ctx)
            if done.created or done.deleted:
                log.info("prebuilt workspaces", created=done.created, deleted=done.deleted)
        except Exception as error:
            # The database may be away for a moment; the next turn counts again.
            log.error("a turn failed", error=error)
