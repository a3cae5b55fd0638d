"""Loop that replaces signing keys that are a month old, by `services/foundation/signing_keys.py`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from coder.base.log import Logger
from coder.coderd.loops.skeleton import run_loop
from coder.coderd.services.foundation.signing_keys import rotate_due

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

EVERY = timedelta(minutes=10)


async def run(ctx: Context) -> None:
    """Run until cancelled."""
    await run_loop(ctx, "key_rotation", turn, failed_rest=EVERY.total_seconds())


async def turn(ctx: Context, log: Logger) -> float:
    for feature in await rotate_due(ctx):
        log.info("a signing key was replaced", feature=feature)
    return EVERY.total_seconds()
