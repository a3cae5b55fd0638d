"""Replaces signing keys that are a month old. How is `services/signing_keys.py`, and how long old ones still count."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import trio

from coder.coderd.services import signing_keys
from coder.coderd.services.sealing import Sealer

if TYPE_CHECKING:
    from coder.coderd.services.context import Context

EVERY = timedelta(minutes=10)


async def run(ctx: Context) -> None:
    """Runs until cancelled."""
    log = ctx.log.bind(loop="key_rotation")
    while True:
        try:
            for feature in await turn(ctx):
                log.info("a signing key was replaced", feature=feature)
        except Exception as error:
            # The database may be away for a moment; keys grow old slowly.
            log.error("a turn failed", error=error)
        await trio.sleep(EVERY.total_seconds())


async def turn(ctx: Context) -> list[str]:
    """Returns the features whose key was replaced."""
    return await ctx.db.run(signing_keys.rotate, ctx.clock.now(), ctx.part(Sealer))
