"""`coder organizations`: organizations, their members and their roles."""

from __future__ import annotations

import json
import sys
from urllib.parse import quote

from coder.api.people.organizations import Organization, OrganizationMember, OrganizationMemberWithUserData
from coder.api.people.roles import AssignableRoles, Role
from coder.base.config import Option
from coder.base.errors import CoderError
from coder.cli.core import session
from coder.cli.core.command import ORG, YES, Command, Invocation, column_option, output_option
from coder.cli.core.failures import add_action_to_errors
from coder.cli.templates.templates import find_organization, named_organization, organization_of
from coder.cli.ui.output import Row, confirm, go_time, print_json, print_rows
from coder.client.answers import read, read_rows
from coder.net.blocking import BlockingClient

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


def _row(organization: Organization) -> Row:
    return {
        "id": organization.id,
        "name": organization.name,
        "display name": organization.display_name,
        "icon": organization.icon,
        "description": organization.description,
        "created at": go_time(organization.created_at),
        "updated at": go_time(organization.updated_at),
        "default": organization.is_default,
        "default org member roles": "[" + " ".join(organization.default_org_member_roles) + "]",
    }


def _list(invocation: Invocation) -> int:
    client = session.client(invocation)
    organizations = read_rows(client.request("GET", "/api/v2/organizations"), Organization)
    print_rows(
        invocation,
        lambda: [_row(organization) for organization, _ in organizations],
        lambda: [raw for _, raw in organizations],
    )
    return 0


def _show(invocation: Invocation) -> int:
    client = session.client(invocation)
    selector = invocation.args[0] if invocation.args else "selected"
    if selector in {"selected", "current"}:
        organizations = [find_organization(invocation, client)]
    elif selector == "me":
        organizations = read_rows(client.request("GET", "/api/v2/users/me/organizations"), Organization)
    else:
        organizations = [named_organization(client, selector)]
    if invocation["only_id"]:
        sys.stdout.write("".join(f"{organization.id}\n" for organization, _ in organizations))
    elif invocation["output"] == "text":
        for organization, _ in organizations:
            label = "Current CLI Organization" if selector in {"selected", "current"} else "Organization"
            sys.stdout.write(f"{label}: {organization.name} ({organization.id})\n")
    else:
        print_rows(
            invocation,
            lambda: [_row(organization) for organization, _ in organizations],
            lambda: [raw for _, raw in organizations],
        )
    return 0


def _create(invocation: Invocation) -> int:
    client = session.client(invocation)
    name = invocation.args[0]
    if sys.stdin.isatty():  # no data is lost, so no confirmation is required
        confirm(invocation, f'Are you sure you want to create an organization with the name "{name}"?')
    with add_action_to_errors("failed to create organization"):
        created = read(
            client.request("POST", "/api/v2/organizations", json={"name": name}, expect=(201,)), Organization
        )
    sys.stdout.write(f"Organization {created.name} ({created.id}) created.\n")
    return 0


def _delete(invocation: Invocation) -> int:
    client = session.client(invocation)
    organization, _ = named_organization(client, invocation.args[0])
    confirm(invocation, f"Are you sure you want to delete the organization {organization.name}?")
    with add_action_to_errors("delete organization"):
        client.request("DELETE", f"/api/v2/organizations/{organization.id}")
    sys.stdout.write(f"Organization {organization.name} ({organization.id}) deleted.\n")
    return 0


# ---- members


def _members(invocation: Invocation) -> int:
    client = session.client(invocation)
    organization = organization_of(invocation, client)
    answer = client.request("GET", f"/api/v2/organizations/{organization.id}/members")
    members = read_rows(answer, OrganizationMemberWithUserData)
    rows, raw = [member for member, _ in members], [raw for _, raw in members]
    print_rows(invocation, lambda: [_member_row(row) for row in rows], lambda: raw)
    return 0


def _member_row(member: OrganizationMemberWithUserData) -> Row:
    times = {
        column: go_time(getattr(member, column.replace(" ", "_")))
        for column in ("last seen at", "user created at", "user updated at", "created at", "updated at")
    }
    roles = " ".join(role.display_name or role.name for role in member.roles)
    return {
        **times,
        "username": member.username,
        "name": member.name or "",
        "user id": member.user_id,
        "organization id": member.organization_id,
        "organization roles": f"[{roles}]" if roles else "",
    }


def _member_path(invocation: Invocation, client: BlockingClient) -> tuple[str, str]:
    organization = organization_of(invocation, client)
    user = invocation.args[0]
    return f"/api/v2/organizations/{organization.id}/members/{quote(user, safe='')}", organization.name


def _add(invocation: Invocation) -> int:
    client = session.client(invocation)
    path, name = _member_path(invocation, client)
    with add_action_to_errors(f"could not add {invocation.args[0]} to organization {name}"):
        client.request("POST", path)
    sys.stdout.write(f"Organization member added to {name}\n")
    return 0


def _remove(invocation: Invocation) -> int:
    client = session.client(invocation)
    path, name = _member_path(invocation, client)
    with add_action_to_errors(f"could not remove {invocation.args[0]} from organization {name}"):
        client.request("DELETE", path)
    sys.stdout.write(f"Organization member removed from {name}\n")
    return 0


def _edit_roles(invocation: Invocation) -> int:
    client = session.client(invocation)
    path, _ = _member_path(invocation, client)
    with add_action_to_errors("update member roles"):
        updated = read(client.request("PUT", f"{path}/roles", json={"roles": invocation.args[1:]}), OrganizationMember)
    roles = ", ".join(role.name for role in updated.roles)
    sys.stdout.write(f"Member roles updated: {roles or 'none'}\n")
    return 0


# ---- roles


def _roles(invocation: Invocation) -> int:
    client = session.client(invocation)
    organization = organization_of(invocation, client)
    answer = client.request("GET", f"/api/v2/organizations/{organization.id}/members/roles")
    roles = [
        role for role in read_rows(answer, AssignableRoles) if not invocation.args or role[0].name in invocation.args
    ]
    print_rows(invocation, lambda: [_role_row(role) for role, _ in roles], lambda: [raw for _, raw in roles])
    return 0


def _role_row(role: AssignableRoles | Role) -> Row:
    counts = {
        column: f"{len(getattr(role, column.replace(' ', '_')))} permissions"
        for column in ("site permissions", "organization permissions", "user permissions")
    }
    return {
        **counts,
        "name": role.name,
        "display name": role.display_name,
        "organization id": role.organization_id or "",
    }


def _save_role(invocation: Invocation, method: str) -> int:
    if not invocation["stdin"]:
        raise CoderError("usage", "a role is read as JSON from standard input", "Pass --stdin and pipe the role in.")
    client = session.client(invocation)
    organization = organization_of(invocation, client)
    try:
        sent = json.load(sys.stdin)
    except ValueError as error:
        raise CoderError("role", "standard input is not JSON") from error
    role = sent[0] if isinstance(sent, list) and len(sent) == 1 else sent
    if not isinstance(role, dict) or not role.get("name"):
        raise CoderError(
            "role", "exactly one role with a name is required", "Print one with `organizations roles show -o json`."
        )
    if invocation["dry_run"]:
        print_json(role)
        return 0
    confirm(invocation, f"Are you sure you want to save the role {role['name']}?", default=True)
    with add_action_to_errors("patch role" if method == "PUT" else "create role"):
        path = f"/api/v2/organizations/{organization.id}/members/roles"
        saved = client.request(method, path, json=role)
    if method == "POST":
        sys.stdout.write(f"Role {role['name']} created.\n")
        return 0
    print_rows(invocation, lambda: [_role_row(read(saved, Role))], lambda: [saved.json()])
    return 0


_ONLY_ID = Option(
    "only_id",
    "only-id",
    kind="bool",
    default=False,
    help="Print only the id of the organization, for scripts.",
)
_STDIN = Option(
    "stdin",
    "stdin",
    kind="bool",
    default=False,
    help="Read the role as JSON from standard input instead of prompting.",
)
_DRY_RUN = Option("dry_run", "dry-run", kind="bool", default=False, help="Print the resulting role without saving it.")

LIST = Command(
    words="organizations list",
    summary="List all organizations",
    run=_list,
    max_args=0,
    options=(column_option(COLUMNS, ("name", "display name", "id", "default")), output_option()),
)
SHOW = Command(
    words="organizations show",
    summary="Show the organization. Using 'selected' will show the selected organization from the '--org' flag.",
    usage="['selected'|'me'|uuid|org_name]",
    run=_show,
    max_args=1,
    options=(
        column_option(COLUMNS, ("id", "name", "default")),
        output_option(("text", "table", "json"), "text"),
        _ONLY_ID,
        ORG,
    ),
)
CREATE = Command(
    words="organizations create",
    summary="Create a new organization.",
    usage="<organization name>",
    run=_create,
    min_args=1,
    max_args=1,
    options=(YES,),
)
DELETE = Command(
    words="organizations delete",
    summary="Delete an organization",
    usage="<organization_name_or_id>",
    run=_delete,
    min_args=1,
    max_args=1,
    options=(YES,),
)
MEMBERS = Command(
    words="organizations members list",
    summary="List all organization members",
    run=_members,
    max_args=0,
    options=(column_option(MEMBER_COLUMNS, ("username", "organization roles")), output_option(), ORG),
)
MEMBERS_ADD = Command(
    words="organizations members add",
    summary="Add a new member to the current organization",
    usage="<username | user_id>",
    run=_add,
    min_args=1,
    max_args=1,
    options=(ORG,),
)
MEMBERS_REMOVE = Command(
    words="organizations members remove",
    summary="Remove a new member to the current organization",
    usage="<username | user_id>",
    run=_remove,
    min_args=1,
    max_args=1,
    options=(ORG,),
)
MEMBERS_EDIT_ROLES = Command(
    words="organizations members edit-roles",
    summary="Edit organization member's roles",
    usage="<username | user_id> [roles...]",
    run=_edit_roles,
    min_args=1,
    options=(ORG,),
)
ROLES_SHOW = Command(
    words="organizations roles show",
    summary="Show role(s)",
    usage="[role_names ...]",
    run=_roles,
    options=(column_option(ROLE_COLUMNS, _ROLE_DEFAULT), output_option(), ORG),
)
ROLES_CREATE = Command(
    words="organizations roles create",
    summary="Create a new organization custom role",
    usage="<role_name>",
    run=lambda invocation: _save_role(invocation, "POST"),
    max_args=1,
    options=(_DRY_RUN, _STDIN, YES, ORG),
)
ROLES_UPDATE = Command(
    words="organizations roles update",
    summary="Update an organization custom role",
    usage="<role_name>",
    run=lambda invocation: _save_role(invocation, "PUT"),
    max_args=1,
    options=(_DRY_RUN, _STDIN, column_option(ROLE_COLUMNS, _ROLE_DEFAULT), output_option(), YES, ORG),
)
