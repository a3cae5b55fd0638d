"""Loop that watches staged rollouts of template versions, by `services/templates/rollout_watch.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coder.base.log import Logger
from coder.coderd.loops.skeleton import run_loop
from coder.coderd.services.templates.rollout_watch import watch_rollouts

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

EVERY = 30.0
"""Seconds."""


async def run(ctx: Context) -> None:
    """Run until cancelled."""
    await run_loop(ctx, "rollouts", turn, first_rest=EVERY, failed_rest=EVERY)


async def turn(ctx: Context, log: Logger) -> float:
    for template_id in await watch_rollouts(ctx):
        log.warn("a rollout was stopped or ended", template=template_id)
    return EVERY
