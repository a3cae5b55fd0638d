"""Loop that creates and deletes prebuilt workspaces until every preset has its number, by
`services/workspaces/prebuilds.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coder.base.log import Logger
from coder.coderd.loops.skeleton import run_loop
from coder.coderd.services.workspaces.prebuild_reconciliation import reconcile

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


async def run(ctx: Context) -> None:
    """Run until cancelled."""
    rest = ctx.config.workspace_prebuilds_reconciliation_interval.total_seconds()
    await run_loop(ctx, "prebuilds", turn, first_rest=rest, failed_rest=rest)


async def turn(ctx: Context, log: Logger) -> float:
    done = await reconcile(ctx)
    if done.created or done.deleted:
        log.info("prebuilt workspaces", created=done.created, deleted=done.deleted)
    return ctx.config.workspace_prebuilds_reconciliation_interval.total_seconds()
