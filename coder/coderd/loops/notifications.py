"""Loop that sends queued messages: immediately, and again when a retry is due, by
`services/notifications/notification_delivery.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coder.base.log import Logger
from coder.coderd.loops.skeleton import run_loop
from coder.coderd.services.notifications.notification_delivery import QUEUED, deliver_due, time_until_due

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

FAILED_REST = 60.0


async def run(ctx: Context) -> None:
    """Run until cancelled."""
    await run_loop(ctx, "notifications", turn, failed_rest=FAILED_REST, channel=QUEUED)


async def turn(ctx: Context, log: Logger) -> float:
    for outcome in await deliver_due(ctx):
        if outcome.reason:
            say = log.error if outcome.given_up else log.warn
            say("a message was not sent", id=outcome.message.id, reason=outcome.reason)
    return (await time_until_due(ctx)).total_seconds()
