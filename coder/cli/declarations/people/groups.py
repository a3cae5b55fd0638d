"""Declarations of the commands of `coder groups`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import OrgOption, TableOptions, column_option, option, output_option

COLUMNS = ("name", "display name", "organization id", "members", "avatar url")


class GroupsCreateOptions(OrgOption):
    """Options of `coder groups create`."""

    avatar_url: str = option(
        "",
        "URL or path of the group's picture.",
        env="CODER_AVATAR_URL",
        short="u",
    )
    display_name: str = option(
        "",
        "Display name, which can contain spaces and capitals.",
        env="CODER_DISPLAY_NAME",
    )


class GroupsEditOptions(OrgOption):
    """Options of `coder groups edit`."""

    name: str = option(
        "",
        "New name; links and scripts that use the old name stop working.",
        short="n",
    )
    avatar_url: str = option(
        "",
        "URL or path of the group's new picture.",
        short="u",
    )
    display_name: str = option(
        "",
        "New display name; the name for commands does not change.",
        env="CODER_DISPLAY_NAME",
    )
    add_users: tuple[str, ...] = option(
        (),
        "Users to add, by name, id or e-mail address, separated by commas.",
        short="a",
    )
    rm_users: tuple[str, ...] = option(
        (),
        "Users to remove, by name, id or e-mail address, separated by commas.",
        short="r",
    )


class GroupsListOptions(TableOptions, OrgOption):
    """Options of `coder groups list`."""

    column: tuple[str, ...] = column_option(COLUMNS, COLUMNS)
    output: str = output_option()


CREATE = Command(
    words="groups create",
    summary="Create a user group",
    options=GroupsCreateOptions,
    usage="<name>",
    min_args=1,
    max_args=1,
    examples=(("Create a group", "coder groups create backend --display-name Backend"),),
)

DELETE = Command(
    words="groups delete",
    summary="Delete a user group",
    options=OrgOption,
    usage="<name>",
    min_args=1,
    max_args=1,
    examples=(("Delete a group", "coder groups delete backend"),),
)

EDIT = Command(
    words="groups edit",
    summary="Edit a user group",
    options=GroupsEditOptions,
    usage="<name>",
    min_args=1,
    max_args=1,
    examples=(
        ("Add one user and remove another", "coder groups edit backend --add-users alice --rm-users bob@example.com"),
        ("Change the display name", 'coder groups edit backend --display-name "Backend team"'),
    ),
)

LIST = Command(
    words="groups list",
    summary="List user groups",
    options=GroupsListOptions,
    max_args=0,
    examples=(
        ("List the groups of your organization", "coder groups list"),
        ("List names and members in another organization", "coder groups list --org research --column name,members"),
    ),
)
