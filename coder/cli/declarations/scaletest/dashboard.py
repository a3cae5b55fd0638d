"""Declaration of `coder exp scaletest dashboard`."""

from __future__ import annotations

from datetime import timedelta

from coder.cli.core.command import Command
from coder.cli.core.options import option
from coder.cli.declarations.scaletest.runs import PrometheusOptions, RunOptions, UnusedCleanupOptions


class ScaletestDashboardOptions(RunOptions, UnusedCleanupOptions, PrometheusOptions):
    """Options of `coder exp scaletest dashboard`."""

    interval: timedelta = option(
        timedelta(seconds=10),
        "Time a visitor stays on a page before opening the next.",
        env="CODER_SCALETEST_DASHBOARD_INTERVAL",
    )
    jitter: timedelta = option(
        timedelta(seconds=5),
        "Random variation of the interval; must be less than the interval.",
        env="CODER_SCALETEST_DASHBOARD_JITTER",
    )
    rand_seed: int = option(
        0,
        "Seed of the random choices; the same number repeats the same visits, 0 picks one.",
        env="CODER_SCALETEST_DASHBOARD_RAND_SEED",
    )
    target_users: str = option(
        "",
        "Range START:END of visitors, all with your session; defaults to 0:1.",
        env="CODER_SCALETEST_DASHBOARD_TARGET_USERS",
    )
    headless: bool = option(
        True,
        env="CODER_SCALETEST_DASHBOARD_HEADLESS",
        hidden=True,
    )


DASHBOARD = Command(
    words="exp scaletest dashboard",
    summary="Simulate many visitors of the dashboard",
    options=ScaletestDashboardOptions,
    max_args=0,
    examples=(
        (
            "Simulate 20 visitors for five minutes",
            "coder exp scaletest dashboard --target-users 0:20 --concurrency 20 --timeout 5m",
        ),
    ),
)
