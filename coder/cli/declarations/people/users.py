"""Declarations of the commands of `coder users`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import Options, OrgOption, TableOptions, YesOption, column_option, option, output_option

COLUMNS = ("id", "username", "name", "email", "created at", "updated at", "status")
DEFAULT = ("username", "email", "created at", "status")
_USER = "<username|user_id>"


class UsersActivateOptions(Options):
    """Options of `coder users activate`."""

    column: tuple[str, ...] = column_option(DEFAULT, DEFAULT)


class UsersCreateOptions(OrgOption):
    """Options of `coder users create`."""

    email: str = option(
        "",
        "E-mail address of the new user; prompted for if not set.",
        short="e",
    )
    username: str = option(
        "",
        "User name of the new user; prompted for if not set.",
        short="u",
    )
    full_name: str = option(
        "",
        'Full name of the new user, like "Alice Example".',
        short="n",
    )
    password: str = option(
        "",
        "Password of the new user; generated and printed if not set.",
        short="p",
        secret=True,
    )
    login_type: str = option(
        "",
        "Login method of the user: password, github, oidc or none.",
    )
    service_account: bool = option(
        False,
        "Create a service account, which uses tokens and cannot log in.",
    )


class UsersEditRolesOptions(YesOption, bases_first=True):
    """Options of `coder users edit-roles`."""

    roles: tuple[str, ...] = option(
        (),
        "New roles of the user, separated by commas; an empty list removes all roles.",
    )


class UsersListOptions(TableOptions):
    """Options of `coder users list`."""

    github_user_id: int = option(
        0,
        "List only the user with this GitHub user id.",
    )
    column: tuple[str, ...] = column_option(COLUMNS, DEFAULT)
    output: str = output_option()


class UsersOidcClaimsOptions(TableOptions):
    """Options of `coder users oidc-claims`."""

    column: tuple[str, ...] = column_option(("key", "value"), ("key", "value"))
    output: str = output_option()


class UsersShowOptions(Options):
    """Options of `coder users show`."""

    output: str = output_option()


ACTIVATE = Command(
    words="users activate",
    summary="Update a user's status to 'active'. Active users can fully interact with the platform",
    options=UsersActivateOptions,
    usage=_USER,
    min_args=1,
    max_args=1,
    examples=(("Reactivate a suspended user", "coder users activate bob"),),
)

CREATE = Command(
    words="users create",
    summary="Create a new user.",
    options=UsersCreateOptions,
    max_args=0,
    examples=(
        ("Create a user", "coder users create -u alice -e alice@example.com"),
        ("Create a service account", "coder users create -u deploy-bot --service-account"),
    ),
)

DELETE = Command(
    words="users delete",
    summary="Delete a user by username or user_id.",
    options=Options,
    usage=_USER,
    min_args=1,
    max_args=1,
    examples=(("Delete a user without workspaces", "coder users delete bob"),),
)

EDIT_ROLES = Command(
    words="users edit-roles",
    summary="Edit a user's roles by username or id",
    options=UsersEditRolesOptions,
    usage=_USER,
    min_args=1,
    max_args=1,
    examples=(("Make a user template administrator", "coder users edit-roles alice --roles template-admin"),),
)

LIST = Command(
    words="users list",
    summary="Prints the list of users.",
    options=UsersListOptions,
    max_args=0,
    examples=(
        ("List all users as JSON", "coder users list -o json"),
        ("List user names and e-mail addresses", "coder users list --column username,email"),
    ),
)

OIDC_CLAIMS = Command(
    words="users oidc-claims",
    summary="Show your claims from the OpenID provider",
    options=UsersOidcClaimsOptions,
    max_args=0,
    examples=(("Show your claims from the identity provider", "coder users oidc-claims"),),
)

SHOW = Command(
    words="users show",
    summary="Show a single user. Use 'me' to indicate the currently authenticated user.",
    options=UsersShowOptions,
    usage="<username|user_id|'me'>",
    min_args=1,
    max_args=1,
    examples=(
        ("Show your own account", "coder users show me"),
        ("Print a user as JSON", "coder users show alice -o json"),
    ),
)

SUSPEND = Command(
    words="users suspend",
    summary="Update a user's status to 'suspended'. A suspended user cannot log into the platform",
    options=UsersActivateOptions,
    usage=_USER,
    min_args=1,
    max_args=1,
    examples=(("Suspend a user and keep the workspaces", "coder users suspend bob"),),
)
