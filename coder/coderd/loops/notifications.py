"""Loop that sends queued messages: immediately, and again when a retry is due, by
`services/notifications/notification_delivery.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import TYPE_CHECKING

import trio

from coder.base.exception_groups import single_failure
from coder.base.log import Logger
from coder.coderd.loops.skeleton import run_loop
from coder.coderd.services.notifications.notification_delivery import METHODS, QUEUED, deliver_due, time_until_due

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

FAILED_REST = 60.0


async def run(ctx: Context) -> None:
    """Run until cancelled: each method by itself, so that one whose server hangs delays no other."""
    with single_failure():
        async with trio.open_nursery() as nursery:
            for method in METHODS:
                own_turn = functools.partial(turn, (method,))
                nursery.start_soon(
                    functools.partial(run_loop, ctx, "notifications", own_turn, failed_rest=FAILED_REST, channel=QUEUED)
                )


async def turn(methods: Collection[str], ctx: Context, log: Logger) -> float:
    for outcome in await deliver_due(ctx, methods):
        if outcome.reason:
            say = log.error if outcome.given_up else log.warn
            say("a message was not sent", id=outcome.message.id, reason=outcome.reason)
    return (await time_until_due(ctx, methods)).total_seconds()
