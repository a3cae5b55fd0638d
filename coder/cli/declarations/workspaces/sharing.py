"""Declarations of the commands of `coder sharing`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import Options, TableOptions, column_option, option, output_option

COLUMNS = ("user", "group", "role")


class SharedWithOptions(Options):
    """Users and groups of a share."""

    user: tuple[str, ...] = option(
        (),
        "Users, separated by commas, each as name or name:role; the roles are use and admin.",
    )
    group: tuple[str, ...] = option(
        (),
        "Groups, separated by commas, each as name or name:role; the roles are use and admin.",
    )


class SharingAddOptions(TableOptions, SharedWithOptions, bases_first=True):
    """Options of `coder sharing add`."""

    column: tuple[str, ...] = column_option(COLUMNS, COLUMNS)
    output: str = output_option()


class SharingStatusOptions(TableOptions):
    """Options of `coder sharing status`."""

    column: tuple[str, ...] = column_option(COLUMNS, COLUMNS)
    output: str = output_option()


ADD = Command(
    words="sharing add",
    summary="Share a workspace with a user or group",
    options=SharingAddOptions,
    usage="<workspace>",
    min_args=1,
    max_args=1,
    examples=(
        ("Share a workspace with a user", "coder sharing add my-workspace --user bob:use"),
        ("Give a group the admin role on a workspace", "coder sharing add my-workspace --group backend:admin"),
    ),
)

REMOVE = Command(
    words="sharing remove",
    summary="Remove shared access for users or groups from a workspace",
    options=SharingAddOptions,
    usage="<workspace>",
    min_args=1,
    max_args=1,
    examples=(("Remove a user's access", "coder sharing remove my-workspace --user bob"),),
)

STATUS = Command(
    words="sharing status",
    summary="List all users and groups the given workspace is shared with",
    options=SharingStatusOptions,
    usage="<workspace>",
    min_args=1,
    max_args=1,
    examples=(("List the users and groups with access", "coder sharing status my-workspace"),),
)
