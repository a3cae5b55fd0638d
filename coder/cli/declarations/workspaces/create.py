"""Declaration of `coder create`."""

from __future__ import annotations

from datetime import timedelta

from coder.cli.core.command import Command
from coder.cli.core.options import OrgOption, YesOption, option
from coder.cli.declarations.provisioning.no_provisioner import WaitOption
from coder.cli.declarations.workspaces.parameters import ParameterOptions


class CreateOptions(ParameterOptions, WaitOption, OrgOption, YesOption):
    """Options of `coder create`."""

    template: str = option(
        "",
        "Name of the template for the workspace; prompted for if not set.",
        env="CODER_TEMPLATE_NAME",
        short="t",
    )
    template_version: str = option(
        "",
        "Name of the template version; defaults to the active version.",
        env="CODER_TEMPLATE_VERSION",
    )
    preset: str = option(
        "",
        'Use the parameter values of this preset; "none" takes none and does not ask.',
        env="CODER_PRESET_NAME",
    )
    start_at: str = option(
        "",
        'Autostart schedule, like "9:00AM Mon-Fri Europe/Berlin".',
        env="CODER_WORKSPACE_START_AT",
    )
    stop_after: timedelta = option(
        timedelta(),
        "Stop this long after each start, like 8h or 1h30m; defaults to the template's setting.",
        env="CODER_WORKSPACE_STOP_AFTER",
    )
    automatic_updates: str = option(
        "never",
        "Whether each start first updates the workspace to the template's active version.",
        env="CODER_WORKSPACE_AUTOMATIC_UPDATES",
        choices=("always", "never"),
    )
    copy_parameters_from: str = option(
        "",
        "Copy the template and parameter values of this workspace.",
        env="CODER_WORKSPACE_COPY_PARAMETERS_FROM",
    )
    no_wait: bool = option(
        False,
        "Return when the build is queued instead of waiting for it to finish.",
        env="CODER_CREATE_NO_WAIT",
    )


CREATE = Command(
    words="create",
    summary="Create a workspace",
    options=CreateOptions,
    usage="[workspace]",
    max_args=1,
    examples=(
        ("Create a workspace and answer the template's prompts", "coder create my-workspace"),
        (
            "Set the template and its parameters, without prompts",
            "coder create my-workspace -t docker --parameter region=eu -y",
        ),
        ("Create a workspace for another user", "coder create alice/her-workspace -t docker"),
        ("Copy template and parameters from another workspace", "coder create second --copy-parameters-from first"),
    ),
)
