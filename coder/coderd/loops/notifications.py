"""Sends queued messages: at once when one is queued, and again when a try is due. How is
`services/notification_delivery.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from coder.coderd.services.notification_delivery import deliver_due, wait_for_next
from coder.coderd.services.notifications import is_paused
from coder.coderd.store import notifications as store

if TYPE_CHECKING:
    from coder.coderd.services.context import Context


async def run(ctx: Context) -> None:
    """Runs until cancelled."""
    log = ctx.log.bind(loop="notifications")
    async with ctx.db.listen(store.CHANNEL) as notices:
        while True:
            rest = 60.0
            try:
                for outcome in await deliver_due(ctx):
                    if outcome.reason:
                        say = log.error if outcome.given_up else log.warn
                        say("a message was not sent", id=outcome.message.id, reason=outcome.reason)
                if not await ctx.db.read(is_paused):
                    due = await ctx.db.read(store.next_due)
                    rest = wait_for_next(due, ctx.clock.now()).total_seconds()
            except Exception as error:
                # The database may be away for a moment; what is queued stays queued.
                log.error("a turn failed", error=error)
            with trio.move_on_after(rest):
                await notices.receive()
