"""`coder users`: accounts of the deployment's users."""

from __future__ import annotations

import json
import re
import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import quote

from coder.api.login.oauth2 import OIDCClaimsResponse
from coder.api.people.organizations import Organization
from coder.api.people.roles import AssignableRoles
from coder.api.people.users import GetUsersResponse, User
from coder.base.errors import CoderError
from coder.base.json_types import Json, as_object
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.failures import add_action_to_errors
from coder.cli.core.options import Options
from coder.cli.core.organization_choice import organization_of
from coder.cli.core.parsing import usage_error
from coder.cli.declarations.people.users import (
    ACTIVATE,
    CREATE,
    DELETE,
    EDIT_ROLES,
    LIST,
    OIDC_CLAIMS,
    SHOW,
    SUSPEND,
    UsersActivateOptions,
    UsersCreateOptions,
    UsersEditRolesOptions,
    UsersListOptions,
    UsersOidcClaimsOptions,
    UsersShowOptions,
)
from coder.cli.ui.choices import select_many
from coder.cli.ui.chooser import Choice
from coder.cli.ui.output import Row, ask, confirm, go_time, print_json, print_rows, print_table, say
from coder.client.answers import read
from coder.net.blocking import BlockingClient, HttpAnswer
from coder.net.errors import HttpError
from coder.net.masking import without_web_login

_USERNAME = re.compile(r"[a-zA-Z0-9]+(?:-[a-zA-Z0-9]+)*")


@implements(LIST)
def _list(invocation: Invocation[UsersListOptions]) -> int:
    client = session.client(invocation)
    query = f"?q=github_com_user_id:{invocation.options.github_user_id}" if invocation.options.github_user_id else ""
    answer = client.request("GET", f"/api/v2/users{query}")
    users = read(answer, GetUsersResponse).users
    print_rows(invocation, lambda: [_row(user) for user in users], lambda: as_object(answer.json())["users"] or [])
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


@implements(SHOW)
def _show(invocation: Invocation[UsersShowOptions]) -> int:
    client = session.client(invocation)
    answer = _fetch(client, invocation.args[0])
    user = read(answer, User)
    organizations = read(client.request("GET", f"/api/v2/users/{user.id}/organizations"), list[Organization])
    names = [organization.name for organization in organizations]
    if invocation.options.output == "json":
        print_json({**as_object(answer.json()), "organization_names": names})
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


@implements(OIDC_CLAIMS)
def _oidc_claims(invocation: Invocation[UsersOidcClaimsOptions]) -> int:
    client = session.client(invocation)
    with add_action_to_errors("get oidc claims"):
        answer = client.request("GET", "/api/v2/users/oidc-claims")
    claims = read(answer, OIDCClaimsResponse).claims
    print_rows(invocation, lambda: _claim_rows(claims), answer.json)
    return 0


def _claim_rows(claims: Mapping[str, Json]) -> list[Row]:
    plain = (str, int, float)
    return [
        {"key": key, "value": value if isinstance(value, plain) else json.dumps(value)}
        for key, value in sorted(claims.items())
    ]


@implements(CREATE)
def _create(invocation: Invocation[UsersCreateOptions]) -> int:
    username = invocation.options.username
    if username and not _USERNAME.fullmatch(username):
        raise usage_error(
            invocation.command,
            invocation.typed,
            f'invalid argument "{username}" for "-u, --username" flag: username "{username}" is invalid: must be '
            "alphanumeric with hyphens",
        )
    client = session.client(invocation)
    organization = organization_of(invocation, client)
    is_service = invocation.options.service_account
    login_type = "none" if is_service else invocation.options.login_type or "password"
    username = username or ask("Username:")
    email = "" if is_service else invocation.options.email or ask("Email:")
    password, generated = _password(invocation, login_type)
    body = {
        "username": username,
        "email": email,
        "name": invocation.options.full_name,
        "password": password,
        "login_type": login_type,
        "organization_ids": [organization.id],
        **({"service_account": True} if is_service else {}),
    }
    with next_step_of_refusal():
        client.request("POST", "/api/v2/users", json=body, expect=(201,))
    say(f"A new user has been created! They sign in with: coder login {without_web_login(client.policy.url)}")
    say(f"Username: {username}")
    if generated:
        say(f"Password: {password}")
    return 0


@contextmanager
def next_step_of_refusal() -> Iterator[None]:
    """Say what to change when the server refuses a new user."""
    try:
        yield
    except HttpError as error:
        if error.status == 409:
            error.hint = "Choose another --username and --email; `coder users list` shows those that are taken."
        elif any(item.get("field") == "email" for item in error.validations):
            error.hint = "Give an e-mail address with --email, such as ana@example.com."
        raise


def _password(invocation: Invocation[UsersCreateOptions], login_type: str) -> tuple[str, bool]:
    """Return the password and whether it was generated."""
    if login_type != "password":
        return "", False
    password = invocation.options.password
    if password:
        return password, False
    return secrets.token_urlsafe(15), True


def _set_status(invocation: Invocation[UsersActivateOptions], verb: str, status: str) -> int:
    client = session.client(invocation)
    with add_action_to_errors("fetch user"):
        user = read(_fetch(client, invocation.args[0]), User)
    if user.status == status:
        raise CoderError("status", f"The user {user.username} is already {status}")
    print_table([column.strip().lower() for column in invocation.options.column], [_row(user)])
    confirm(False, f"Are you sure you want to {verb} this user?", default=True)
    with add_action_to_errors(f"{verb} user"):
        client.request("PUT", f"/api/v2/users/{user.id}/status/{verb}")
    sys.stdout.write(f"\nUser {user.username} has been {status}!\n")
    return 0


@implements(DELETE)
def _delete(invocation: Invocation[Options]) -> int:
    client = session.client(invocation)
    with add_action_to_errors("fetch user"):
        user = read(_fetch(client, invocation.args[0]), User)
    with add_action_to_errors("delete user"):
        client.request("DELETE", f"/api/v2/users/{user.id}")
    say(f"Successfully deleted {user.username}.")
    return 0


@implements(EDIT_ROLES)
def _edit_roles(invocation: Invocation[UsersEditRolesOptions]) -> int:
    client = session.client(invocation)
    with add_action_to_errors("fetch user"):
        user = read(_fetch(client, invocation.args[0]), User)
    assignable = [role.name for role in read(client.request("GET", "/api/v2/users/roles"), list[AssignableRoles])]
    if invocation.given("roles"):
        requested = [role for role in invocation.options.roles if role]
    else:
        choices = [Choice(name, name) for name in assignable]
        requested = select_many("Roles:", choices, defaults=[role.name for role in user.roles])
    for role in requested:
        if role not in assignable:
            listed = ", ".join(name for name in assignable if name != "member")
            raise CoderError(
                "role", f"The role {role} is not valid. Please use one or more of the following roles: {listed}"
            )
    if not invocation.options.yes:
        confirm(
            invocation.options.yes, f"Give {user.username} the roles {', '.join(requested) or 'of a regular member'}?"
        )
    with add_action_to_errors("update user roles"):
        client.request("PUT", f"/api/v2/users/{user.id}/roles", json={"roles": requested})
    return 0


@implements(ACTIVATE)
def _run_activate(invocation: Invocation[UsersActivateOptions]) -> int:
    return _set_status(invocation, "activate", "active")


@implements(SUSPEND)
def _run_suspend(invocation: Invocation[UsersActivateOptions]) -> int:
    return _set_status(invocation, "suspend", "suspended")
