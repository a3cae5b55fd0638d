"""Declaration of `coder provisioner list`."""

from __future__ import annotations

from datetime import timedelta

from coder.cli.core.command import Command
from coder.cli.core.options import OrgOption, TableOptions, column_option, option, output_option

COLUMNS = (
    "id",
    "organization id",
    "created at",
    "last seen at",
    "name",
    "version",
    "api version",
    "tags",
    "key name",
    "status",
    "current job id",
    "current job status",
    "current job template name",
    "current job template icon",
    "current job template display name",
    "previous job id",
    "previous job status",
    "previous job template name",
    "previous job template icon",
    "previous job template display name",
    "organization",
)
DEFAULT_COLUMNS = ("created at", "last seen at", "key name", "name", "version", "status", "tags")


class ProvisionerListOptions(TableOptions, OrgOption):
    """Options of `coder provisioner list`."""

    limit: int = option(
        50,
        "Maximum number of rows to list; further rows are omitted.",
        env="CODER_PROVISIONER_LIST_LIMIT",
        short="l",
    )
    health: bool = option(
        False,
        "Show the liveness and load of the machines instead.",
        env="CODER_PROVISIONER_LIST_HEALTH",
    )
    show_offline: bool = option(
        False,
        "Also list provisioners that are offline.",
        env="CODER_PROVISIONER_SHOW_OFFLINE",
        short="f",
    )
    status: tuple[str, ...] = option(
        (),
        "List only provisioners in one of these states, separated by commas.",
        env="CODER_PROVISIONER_LIST_STATUS",
        short="s",
        choices=("offline", "idle", "busy"),
    )
    max_age: timedelta = option(
        timedelta(),
        "List only provisioners seen within this time, like 1h; 0 for all.",
        env="CODER_PROVISIONER_LIST_MAX_AGE",
        short="m",
    )
    column: tuple[str, ...] = column_option(COLUMNS, DEFAULT_COLUMNS)
    output: str = output_option()


LIST = Command(
    words="provisioner list",
    summary="List provisioners in an organization",
    options=ProvisionerListOptions,
    max_args=0,
    examples=(
        ("List the connected provisioners", "coder provisioner list"),
        ("Include offline provisioners, as JSON", "coder provisioner list --show-offline -o json"),
        ("Show load and liveness of their machines", "coder provisioner list --health"),
    ),
)
