"""Stream of a job's log to the terminal."""

from __future__ import annotations

import trio

from coder.base.exception_groups import single_failure
from coder.base.threads import run_trio
from coder.cli.ui.stages import Stages
from coder.client.logs import follow_job_logs
from coder.net.policy import DialPolicy

_TICK = 0.2
"""Seconds between two redraws of a running stage."""


def print_job_log(policy: DialPolicy, path: str, stages: Stages) -> None:
    """Print the log of the job at `path` until it ends, and the time of its running stage.

    Raises NetError and HttpError, as `follow_job_logs`.
    """

    async def follow() -> None:
        with single_failure():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_redraw, stages)
                async for log in follow_job_logs(policy, f"{path}/logs"):
                    stages.line(log)
                nursery.cancel_scope.cancel()

    run_trio(follow)


async def _redraw(stages: Stages) -> None:
    while True:
        stages.tick()
        await trio.sleep(_TICK)
