"""`coder users`: accounts of the deployment's users."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from urllib.parse import quote

from coder.api.login.oauth2 import OIDCClaimsResponse
from coder.api.people.organizations import Organization
from coder.api.people.roles import AssignableRoles
from coder.api.people.users import GetUsersResponse, User
from coder.base.config import Option
from coder.base.errors import CoderError
from coder.cli.core import session
from coder.cli.core.command import ORG, YES, Command, Invocation, column_option, output_option, usage_error
from coder.cli.core.failures import add_action_to_errors
from coder.cli.templates.templates import organization_of
from coder.cli.ui.output import Row, ask, confirm, go_time, print_json, print_rows, print_table, say
from coder.client.answers import read
from coder.net.blocking import BlockingClient, HttpAnswer

COLUMNS = ("id", "username", "name", "email", "created at", "updated at", "status")
DEFAULT = ("username", "email", "created at", "status")
_USERNAME = re.compile(r"[a-zA-Z0-9]+(?:-[a-zA-Z0-9]+)*")


def _list(invocation: Invocation) -> int:
    client = session.client(invocation)
    query = f"?q=github_com_user_id:{invocation['github_user_id']}" if invocation["github_user_id"] else ""
    answer = client.request("GET", f"/api/v2/users{query}")
    users = read(answer, GetUsersResponse).users
    print_rows(invocation, lambda: [_row(user) for user in users], lambda: answer.json()["users"] or [])
    return 0


def _row(user: User) -> Row:
    return {
        "id": user.id,
        "username": user.username,
        "name": user.name or "",
        "email": user.email,
        "created at": go_time(user.created_at),
        "updated at": go_time(user.updated_at),
        "status": user.status,
    }


def _fetch(client: BlockingClient, name: str) -> HttpAnswer:
    return client.request("GET", f"/api/v2/users/{quote(name, safe='')}")


def _show(invocation: Invocation) -> int:
    client = session.client(invocation)
    answer = _fetch(client, invocation.args[0])
    user = read(answer, User)
    organizations = read(client.request("GET", f"/api/v2/users/{user.id}/organizations"), list[Organization])
    names = [organization.name for organization in organizations]
    if invocation["output"] == "json":
        print_json({**answer.json(), "organization_names": names})
        return 0
    roles = ", ".join(role.display_name or role.name for role in user.roles) or "Member"
    rows = (
        ("ID", user.id),
        ("Username", user.username),
        ("Full name", user.name or ""),
        ("Email", user.email),
        ("Status", user.status),
        ("Created At", go_time(user.created_at)),
        ("Updated At", go_time(user.updated_at)),
        ("Roles", roles),
        ("Organizations", ", ".join(names)),
    )
    for label, value in rows:
        sys.stdout.write(f"{label + ':':16}{value}  \n")
    return 0


def _oidc_claims(invocation: Invocation) -> int:
    client = session.client(invocation)
    with add_action_to_errors("get oidc claims"):
        answer = client.request("GET", "/api/v2/users/oidc-claims")
    claims = read(answer, OIDCClaimsResponse).claims
    print_rows(invocation, lambda: _claim_rows(claims), answer.json)
    return 0


def _claim_rows(claims: Mapping[str, object]) -> list[Row]:
    plain = (str, int, float)
    return [
        {"key": key, "value": value if isinstance(value, plain) else json.dumps(value)}
        for key, value in sorted(claims.items())
    ]


def _create(invocation: Invocation) -> int:
    username = invocation["username"]
    if username and not _USERNAME.fullmatch(username):
        raise usage_error(
            invocation.command,
            invocation.typed,
            f'invalid argument "{username}" for "-u, --username" flag: username "{username}" is invalid: must be '
            "alphanumeric with hyphens",
        )
    client = session.client(invocation)
    organization = organization_of(invocation, client)
    is_service = invocation["service_account"]
    login_type = "none" if is_service else invocation["login_type"] or "password"
    username = username or ask("Username:")
    email = "" if is_service else invocation["email"] or ask("Email:")
    password, generated = _password(invocation, login_type)
    body = {
        "username": username,
        "email": email,
        "name": invocation["full_name"],
        "password": password,
        "login_type": login_type,
        "organization_ids": [organization.id],
        **({"service_account": True} if is_service else {}),
    }
    client.request("POST", "/api/v2/users", json=body, expect=(201,))
    say(f"A new user has been created! They sign in with: coder login {client.policy.url}")
    say(f"Username: {username}")
    if generated:
        say(f"Password: {password}")
    return 0


def _password(invocation: Invocation, login_type: str) -> tuple[str, bool]:
    """Return the password and whether it was generated."""
    if login_type != "password":
        return "", False
    password = invocation["password"]
    if password:
        return password, False
    import secrets

    return secrets.token_urlsafe(15), True


def _set_status(invocation: Invocation, verb: str, status: str) -> int:
    client = session.client(invocation)
    with add_action_to_errors("fetch user"):
        user = read(_fetch(client, invocation.args[0]), User)
    if user.status == status:
        raise CoderError("status", f"The user {user.username} is already {status}")
    print_table([column.strip().lower() for column in invocation["column"]], [_row(user)])
    confirm(invocation, f"Are you sure you want to {verb} this user?", default=True)
    with add_action_to_errors(f"{verb} user"):
        client.request("PUT", f"/api/v2/users/{user.id}/status/{verb}")
    sys.stdout.write(f"\nUser {user.username} has been {status}!\n")
    return 0


def _delete(invocation: Invocation) -> int:
    client = session.client(invocation)
    with add_action_to_errors("fetch user"):
        user = read(_fetch(client, invocation.args[0]), User)
    with add_action_to_errors("delete user"):
        client.request("DELETE", f"/api/v2/users/{user.id}")
    say(f"Successfully deleted {user.username}.")
    return 0


def _edit_roles(invocation: Invocation) -> int:
    client = session.client(invocation)
    with add_action_to_errors("fetch user"):
        user = read(_fetch(client, invocation.args[0]), User)
    assignable = [role.name for role in read(client.request("GET", "/api/v2/users/roles"), list[AssignableRoles])]
    if invocation.given("roles"):
        requested = [role for role in invocation["roles"] if role]
    else:
        from coder.cli.ui.choices import Choice, select_many

        choices = [Choice(name, name) for name in assignable]
        requested = select_many("Roles:", choices, defaults=[role.name for role in user.roles])
    for role in requested:
        if role not in assignable:
            listed = ", ".join(name for name in assignable if name != "member")
            raise CoderError(
                "role", f"The role {role} is not valid. Please use one or more of the following roles: {listed}"
            )
    if not invocation["yes"]:
        confirm(invocation, f"Give {user.username} the roles {', '.join(requested) or 'of a regular member'}?")
    with add_action_to_errors("update user roles"):
        client.request("PUT", f"/api/v2/users/{user.id}/roles", json={"roles": requested})
    return 0


_USER = "<username|user_id>"
LIST = Command(
    words="users list",
    summary="Prints the list of users.",
    run=_list,
    max_args=0,
    options=(
        Option(
            "github_user_id",
            "github-user-id",
            kind="int",
            default=0,
            help="List only the user with this GitHub user id.",
        ),
        column_option(COLUMNS, DEFAULT),
        output_option(),
    ),
)
SHOW = Command(
    words="users show",
    summary="Show a single user. Use 'me' to indicate the currently authenticated user.",
    usage="<username|user_id|'me'>",
    run=_show,
    min_args=1,
    max_args=1,
    options=(output_option(),),
)
CREATE = Command(
    words="users create",
    summary="Create a new user.",
    run=_create,
    max_args=0,
    options=(
        Option("email", "email", short="e", help="E-mail address of the new user; prompted for if not set."),
        Option("username", "username", short="u", help="User name of the new user; prompted for if not set."),
        Option("full_name", "full-name", short="n", help='Full name of the new user, like "Alice Example".'),
        Option(
            "password",
            "password",
            short="p",
            secret=True,
            help="Password of the new user; generated and printed if not set.",
        ),
        Option("login_type", "login-type", help="Login method of the user: password, github, oidc or none."),
        Option(
            "service_account",
            "service-account",
            kind="bool",
            default=False,
            help="Create a service account, which uses tokens and cannot log in.",
        ),
        ORG,
    ),
)
SUSPEND = Command(
    words="users suspend",
    summary="Update a user's status to 'suspended'. A suspended user cannot log into the platform",
    usage=_USER,
    run=lambda invocation: _set_status(invocation, "suspend", "suspended"),
    min_args=1,
    max_args=1,
    options=(column_option(DEFAULT, DEFAULT),),
)
ACTIVATE = Command(
    words="users activate",
    summary="Update a user's status to 'active'. Active users can fully interact with the platform",
    usage=_USER,
    run=lambda invocation: _set_status(invocation, "activate", "active"),
    min_args=1,
    max_args=1,
    options=(column_option(DEFAULT, DEFAULT),),
)
DELETE = Command(
    words="users delete",
    summary="Delete a user by username or user_id.",
    usage=_USER,
    run=_delete,
    min_args=1,
    max_args=1,
)
EDIT_ROLES = Command(
    words="users edit-roles",
    summary="Edit a user's roles by username or id",
    usage=_USER,
    run=_edit_roles,
    min_args=1,
    max_args=1,
    options=(
        YES,
        Option(
            "roles",
            "roles",
            kind="string-array",
            default=(),
            help="New roles of the user, separated by commas; an empty list removes all roles.",
        ),
    ),
)
OIDC_CLAIMS = Command(
    words="users oidc-claims",
    summary="Show your claims from the OpenID provider",
    run=_oidc_claims,
    max_args=0,
    options=(column_option(("key", "value"), ("key", "value")), output_option()),
)
