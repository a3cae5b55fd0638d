"""Declaration of `coder support bundle`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import YesOption, option


class SupportBundleOptions(YesOption):
    """Options of `coder support bundle`."""

    output_file: str = option(
        "",
        "File to write the archive to; defaults to a name with the time in the current directory.",
        env="CODER_SUPPORT_BUNDLE_OUTPUT_FILE",
        short="O",
    )
    url_override: str = option(
        "",
        "URL of the deployment to query instead of the one you are logged in to.",
        env="CODER_SUPPORT_BUNDLE_URL_OVERRIDE",
    )
    pprof: bool = option(
        False,
        "Add profiles of the running server; requires the owner role.",
        env="CODER_SUPPORT_BUNDLE_PPROF",
    )
    template: str = option(
        "",
        "Also collect data of the workspaces of this template, by name.",
        env="CODER_SUPPORT_BUNDLE_TEMPLATE",
    )
    workspace_file: tuple[str, ...] = option(
        (),
        "Also collect data of the workspaces in this file, one owner/name a line.",
        env="CODER_SUPPORT_BUNDLE_WORKSPACE_FILE",
    )
    workspaces_total_cap: int = option(
        0,
        "Maximum number of workspaces to collect; 0 means 10, a negative number all.",
        env="CODER_SUPPORT_BUNDLE_WORKSPACES_TOTAL_CAP",
    )


BUNDLE = Command(
    words="support bundle",
    summary="Collect logs and diagnostics into an archive",
    options=SupportBundleOptions,
    usage="[workspace] [agent]",
    max_args=2,
    examples=(
        ("Collect support data for one workspace", "coder support bundle my-workspace -O support.zip"),
        ("Collect support data for the deployment, with profiles", "coder support bundle --pprof -y"),
    ),
)
