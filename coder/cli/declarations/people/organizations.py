"""Declarations of the commands of `coder organizations`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import OrgOption, TableOptions, YesOption, column_option, option, output_option

COLUMNS = (
    "id",
    "name",
    "display name",
    "icon",
    "description",
    "created at",
    "updated at",
    "default",
    "default org member roles",
)
MEMBER_COLUMNS = (
    "username",
    "name",
    "last seen at",
    "user created at",
    "user updated at",
    "user id",
    "organization id",
    "created at",
    "updated at",
    "organization roles",
)
ROLE_COLUMNS = (
    "name",
    "display name",
    "organization id",
    "site permissions",
    "organization permissions",
    "user permissions",
)
_ROLE_DEFAULT = ("name", "display name", "site permissions", "organization permissions", "user permissions")
DRY_RUN: bool = option(
    False,
    "Print the resulting role without saving it.",
)
STDIN: bool = option(
    False,
    "Read the role as JSON from standard input instead of prompting.",
)


class RoleInputOptions(TableOptions, YesOption, OrgOption):
    """Input of a custom role, and the form of the result."""

    dry_run: bool = DRY_RUN
    stdin: bool = STDIN


class OrganizationsListOptions(TableOptions):
    """Options of `coder organizations list`."""

    column: tuple[str, ...] = column_option(COLUMNS, ("name", "display name", "id", "default"))
    output: str = output_option()


class OrganizationsMembersListOptions(TableOptions, OrgOption):
    """Options of `coder organizations members list`."""

    column: tuple[str, ...] = column_option(MEMBER_COLUMNS, ("username", "organization roles"))
    output: str = output_option()


class OrganizationsRolesCreateOptions(RoleInputOptions):
    """Options of `coder organizations roles create`."""


class OrganizationsRolesShowOptions(TableOptions, OrgOption):
    """Options of `coder organizations roles show`."""

    column: tuple[str, ...] = column_option(ROLE_COLUMNS, _ROLE_DEFAULT)
    output: str = output_option()


class OrganizationsRolesUpdateOptions(RoleInputOptions):
    """Options of `coder organizations roles update`."""

    dry_run: bool = DRY_RUN
    stdin: bool = STDIN
    column: tuple[str, ...] = column_option(ROLE_COLUMNS, _ROLE_DEFAULT)
    output: str = output_option()


class OrganizationsShowOptions(TableOptions, OrgOption):
    """Options of `coder organizations show`."""

    column: tuple[str, ...] = column_option(COLUMNS, ("id", "name", "default"))
    output: str = output_option(("text", "table", "json"), "text")
    only_id: bool = option(
        False,
        "Print only the id of the organization, for scripts.",
    )


CREATE = Command(
    words="organizations create",
    summary="Create a new organization.",
    options=YesOption,
    usage="<organization name>",
    min_args=1,
    max_args=1,
    examples=(("Create an organization", "coder organizations create research"),),
)

DELETE = Command(
    words="organizations delete",
    summary="Delete an organization",
    options=YesOption,
    usage="<organization_name_or_id>",
    min_args=1,
    max_args=1,
    examples=(("Delete an organization", "coder organizations delete research"),),
)

LIST = Command(
    words="organizations list",
    summary="List all organizations",
    options=OrganizationsListOptions,
    max_args=0,
    examples=(
        ("List the organizations you can see", "coder organizations list"),
        ("Print only ids, for a script", "coder organizations list --column id"),
    ),
)

MEMBERS_ADD = Command(
    words="organizations members add",
    summary="Add a new member to the current organization",
    options=OrgOption,
    usage="<username | user_id>",
    min_args=1,
    max_args=1,
    examples=(("Add a member", "coder organizations members add alice --org research"),),
)

MEMBERS_EDIT_ROLES = Command(
    words="organizations members edit-roles",
    summary="Edit organization member's roles",
    options=OrgOption,
    usage="<username | user_id> [roles...]",
    min_args=1,
    examples=(
        (
            "Make a member template administrator",
            "coder organizations members edit-roles alice organization-template-admin",
        ),
        ("Remove all roles", "coder organizations members edit-roles alice"),
    ),
)

MEMBERS = Command(
    words="organizations members list",
    summary="List all organization members",
    options=OrganizationsMembersListOptions,
    max_args=0,
    examples=(("List the members and their roles", "coder organizations members list --org research"),),
)

MEMBERS_REMOVE = Command(
    words="organizations members remove",
    summary="Remove a new member to the current organization",
    options=OrgOption,
    usage="<username | user_id>",
    min_args=1,
    max_args=1,
    examples=(("Remove a member", "coder organizations members remove alice --org research"),),
)

ROLES_CREATE = Command(
    words="organizations roles create",
    summary="Create a new organization custom role",
    options=OrganizationsRolesCreateOptions,
    usage="<role_name>",
    max_args=1,
    examples=(("Create a role from JSON on standard input", "coder organizations roles create --stdin"),),
)

ROLES_SHOW = Command(
    words="organizations roles show",
    summary="Show role(s)",
    options=OrganizationsRolesShowOptions,
    usage="[role_names ...]",
    examples=(
        ("List all roles", "coder organizations roles show"),
        ("Print one role as JSON, to edit and update", "coder organizations roles show release-manager -o json"),
    ),
)

ROLES_UPDATE = Command(
    words="organizations roles update",
    summary="Update an organization custom role",
    options=OrganizationsRolesUpdateOptions,
    usage="<role_name>",
    max_args=1,
    examples=(
        ("Update a role from JSON on standard input", "coder organizations roles update --stdin"),
        ("Show the result without saving it", "coder organizations roles update --stdin --dry-run"),
    ),
)

SHOW = Command(
    words="organizations show",
    summary="Show the organization. Using 'selected' will show the selected organization from the '--org' flag.",
    options=OrganizationsShowOptions,
    usage="['selected'|'me'|uuid|org_name]",
    max_args=1,
    examples=(
        ("Show the organization that commands use", "coder organizations show selected"),
        ("Show the organizations you belong to", "coder organizations show me"),
        ("Print only an organization's id, for a script", "coder organizations show research --only-id"),
    ),
)
