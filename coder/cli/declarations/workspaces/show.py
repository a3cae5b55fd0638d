"""Declaration of `coder show`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import Options, option


class ShowOptions(Options):
    """Options of `coder show`."""

    details: bool = option(
        False,
        "Also show apps, metadata and every other detail of each resource.",
    )


SHOW = Command(
    words="show",
    summary="Display details of a workspace's resources and agents",
    options=ShowOptions,
    usage="<workspace>",
    min_args=1,
    max_args=1,
    examples=(
        ("Show the agents of a workspace", "coder show my-workspace"),
        ("Show applications and metadata as well", "coder show my-workspace --details"),
    ),
)
