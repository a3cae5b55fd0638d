"""Declaration of `coder exp scaletest cleanup`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import option
from coder.cli.declarations.scaletest.runs import CleanupOptions


class ScaletestCleanupOptions(CleanupOptions, bases_first=True):
    """Options of `coder exp scaletest cleanup`."""

    template: str = option(
        "",
        "Delete only the workspaces of this template, and no users.",
        env="CODER_SCALETEST_CLEANUP_TEMPLATE",
    )


CLEANUP = Command(
    words="exp scaletest cleanup",
    summary="Delete the workspaces and users of scale tests",
    options=ScaletestCleanupOptions,
    max_args=0,
    examples=(
        ("Delete the workspaces and users of scale tests", "coder exp scaletest cleanup --cleanup-concurrency 10"),
    ),
)
