"""Declarations of 6 commands: workspace settings."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import Options, YesOption, option


class StateBuildOption(Options):
    """The option `--build`."""

    build: int = option(
        0,
        "Number of the build whose state to use; defaults to the latest.",
        short="b",
    )


class StatePushOptions(StateBuildOption, bases_first=True):
    """Options of `coder state push`."""

    no_build: bool = option(
        False,
        "Store the state without starting a build.",
        short="n",
    )


AUTOUPDATE = Command(
    words="autoupdate",
    summary="Toggle auto-update policy for a workspace",
    options=YesOption,
    usage="<workspace> <always|never>",
    min_args=2,
    max_args=2,
    examples=(
        ("Update to the active version at every start", "coder autoupdate my-workspace always"),
        ("Keep the current version", "coder autoupdate my-workspace never"),
    ),
)

FAVORITE = Command(
    words="favorite",
    summary="Add a workspace to your favorites",
    options=Options,
    usage="<workspace>",
    min_args=1,
    max_args=1,
    examples=(("Pin a workspace to the top of lists", "coder favorite my-workspace"),),
)

RENAME = Command(
    words="rename",
    summary="Rename a workspace",
    options=YesOption,
    usage="<workspace> <new name>",
    min_args=2,
    max_args=2,
    examples=(("Rename a workspace", "coder rename old-name new-name"),),
)

STATE_PULL = Command(
    words="state pull",
    summary="Pull a Terraform state file from a workspace.",
    options=StateBuildOption,
    usage="<workspace> [file]",
    min_args=1,
    max_args=2,
    examples=(
        ("Save the Terraform state of a workspace to a file", "coder state pull my-workspace state.json"),
        ("Print the state of an earlier build", "coder state pull my-workspace --build 3"),
    ),
)

STATE_PUSH = Command(
    words="state push",
    summary="Push a Terraform state file to a workspace.",
    options=StatePushOptions,
    usage="<workspace> <file>",
    min_args=2,
    max_args=2,
    examples=(
        ("Replace a broken state", "coder state push my-workspace state.json"),
        ("Replace the state without starting a build", "coder state push my-workspace state.json --no-build"),
    ),
)

UNFAVORITE = Command(
    words="unfavorite",
    summary="Remove a workspace from your favorites",
    options=Options,
    usage="<workspace>",
    min_args=1,
    max_args=1,
    examples=(("Unpin a workspace", "coder unfavorite my-workspace"),),
)
