"""Declarations of `coder delete`, `coder restart`, `coder start`, `coder stop` and `coder update`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import YesOption, option, output_option
from coder.cli.declarations.provisioning.no_provisioner import JobOptions, WaitOption
from coder.cli.declarations.workspaces.parameters import ParameterOptions
from coder.domain.workspaces.builds import REASONS_FOR_CLIENTS

LOG_DEBUG: bool = option(
    False,
    "Log provisioner debug messages; requires template administrator rights.",
    flag="provisioner-log-debug",
    hidden=True,
)


class AnyBuildOptions(JobOptions):
    """Description of a build, also of commands without some of the flags."""

    reason: str = "cli"
    log_debug: bool = False
    no_wait: bool = False


class BuildOptions(AnyBuildOptions):
    """Description of a build."""

    reason: str = option(
        "cli",
        "Reason of the build in the workspace's history; for programs that call this command.",
        choices=REASONS_FOR_CLIENTS,
    )
    log_debug: bool = LOG_DEBUG


class LogDebugOption(AnyBuildOptions):
    """Log level of a build."""

    log_debug: bool = LOG_DEBUG


class DeleteOptions(LogDebugOption, WaitOption, YesOption):
    """Options of `coder delete`."""

    orphan: bool = option(
        False,
        "Delete the workspace without destroying its resources, which you then have to remove manually.",
    )
    abandon: bool = option(
        False,
        "Abandon the workspace without a provisioner: lists resources that may remain, destroys none.",
    )


class RestartOptions(BuildOptions, ParameterOptions, WaitOption, YesOption):
    """Options of `coder restart`."""


class StartOptions(BuildOptions, ParameterOptions, WaitOption, YesOption):
    """Options of `coder start`."""

    no_wait: bool = option(
        False,
        "Return when the build is queued instead of waiting for it to finish.",
    )


class StopOptions(BuildOptions, WaitOption, YesOption):
    """Options of `coder stop`."""


class UpdateOptions(BuildOptions, ParameterOptions):
    """Options of `coder update`."""

    preview: bool = option(
        False,
        "Print what the update would change, and change nothing: files, parameters and Terraform's plan.",
    )
    output: str = output_option(("text", "json"), "text")


DELETE = Command(
    words="delete",
    summary="Delete a workspace",
    options=DeleteOptions,
    usage="<workspace>",
    min_args=1,
    max_args=1,
    examples=(
        ("Delete a workspace and its resources", "coder delete my-workspace"),
        ("Delete a workspace whose resources cannot be destroyed", "coder delete my-workspace --orphan"),
    ),
)

RESTART = Command(
    words="restart",
    summary="Restart a workspace",
    options=RestartOptions,
    usage="<workspace>",
    min_args=1,
    max_args=1,
    examples=(
        ("Stop a workspace and start it again", "coder restart my-workspace"),
        ("Restart with a changed parameter, without a prompt", "coder restart my-workspace --parameter region=us -y"),
    ),
)

START = Command(
    words="start",
    summary="Start a workspace",
    options=StartOptions,
    usage="<workspace>",
    min_args=1,
    max_args=1,
    examples=(
        ("Start a workspace and watch the build", "coder start my-workspace"),
        ("Start with a changed parameter", "coder start my-workspace --parameter region=us"),
    ),
)

STOP = Command(
    words="stop",
    summary="Stop a workspace",
    options=StopOptions,
    usage="<workspace>",
    min_args=1,
    max_args=1,
    examples=(
        ("Stop a workspace", "coder stop my-workspace -y"),
        ("Stop another user's workspace", "coder stop alice/her-workspace"),
    ),
)

UPDATE = Command(
    words="update",
    summary="Will update and start a given workspace if it is out of date. If the workspace is already running, "
    "it will be stopped first.",
    options=UpdateOptions,
    usage="<workspace>",
    min_args=1,
    max_args=1,
    examples=(
        ("Update a workspace to the template's active version", "coder update my-workspace"),
        ("See what an update would change", "coder update my-workspace --preview"),
        (
            "Update with a new parameter, without prompts",
            "coder update my-workspace --parameter region=us --use-parameter-defaults",
        ),
    ),
)
