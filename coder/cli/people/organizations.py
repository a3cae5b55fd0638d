"""`coder organizations`: organizations, their members and their roles."""

from __future__ import annotations

import json
import sys
from urllib.parse import quote

from coder.api.people.organizations import Organization, OrganizationMember, OrganizationMemberWithUserData
from coder.api.people.roles import AssignableRoles, Role
from coder.base.errors import CoderError
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.failures import add_action_to_errors
from coder.cli.core.options import OrgOption, YesOption
from coder.cli.core.organization_choice import find_organization, named_organization, organization_of
from coder.cli.declarations.people.organizations import (
    CREATE,
    DELETE,
    LIST,
    MEMBERS,
    MEMBERS_ADD,
    MEMBERS_EDIT_ROLES,
    MEMBERS_REMOVE,
    ROLES_CREATE,
    ROLES_SHOW,
    ROLES_UPDATE,
    SHOW,
    OrganizationsListOptions,
    OrganizationsMembersListOptions,
    OrganizationsRolesCreateOptions,
    OrganizationsRolesShowOptions,
    OrganizationsRolesUpdateOptions,
    OrganizationsShowOptions,
    RoleInputOptions,
)
from coder.cli.ui.output import Row, confirm, go_time, print_json, print_rows
from coder.client.answers import read, read_rows
from coder.net.blocking import BlockingClient


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


@implements(LIST)
def _list(invocation: Invocation[OrganizationsListOptions]) -> int:
    client = session.client(invocation)
    organizations = read_rows(client.request("GET", "/api/v2/organizations"), Organization)
    print_rows(
        invocation,
        lambda: [_row(organization) for organization, _ in organizations],
        lambda: [raw for _, raw in organizations],
    )
    return 0


@implements(SHOW)
def _show(invocation: Invocation[OrganizationsShowOptions]) -> int:
    client = session.client(invocation)
    selector = invocation.args[0] if invocation.args else "selected"
    if selector in {"selected", "current"}:
        organizations = [find_organization(invocation, client)]
    elif selector == "me":
        organizations = read_rows(client.request("GET", "/api/v2/users/me/organizations"), Organization)
    else:
        organizations = [named_organization(client, selector)]
    if invocation.options.only_id:
        sys.stdout.write("".join(f"{organization.id}\n" for organization, _ in organizations))
    elif invocation.options.output == "text":
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


@implements(CREATE)
def _create(invocation: Invocation[YesOption]) -> int:
    client = session.client(invocation)
    name = invocation.args[0]
    if sys.stdin.isatty():  # no data is lost, so no confirmation is required
        confirm(invocation.options.yes, f'Are you sure you want to create an organization with the name "{name}"?')
    with add_action_to_errors("failed to create organization"):
        created = read(
            client.request("POST", "/api/v2/organizations", json={"name": name}, expect=(201,)), Organization
        )
    sys.stdout.write(f"Organization {created.name} ({created.id}) created.\n")
    return 0


@implements(DELETE)
def _delete(invocation: Invocation[YesOption]) -> int:
    client = session.client(invocation)
    organization, _ = named_organization(client, invocation.args[0])
    confirm(invocation.options.yes, f"Are you sure you want to delete the organization {organization.name}?")
    with add_action_to_errors("delete organization"):
        client.request("DELETE", f"/api/v2/organizations/{organization.id}")
    sys.stdout.write(f"Organization {organization.name} ({organization.id}) deleted.\n")
    return 0


# ---- members


@implements(MEMBERS)
def _members(invocation: Invocation[OrganizationsMembersListOptions]) -> int:
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


def _member_path(invocation: Invocation[OrgOption], client: BlockingClient) -> tuple[str, str]:
    organization = organization_of(invocation, client)
    user = invocation.args[0]
    return f"/api/v2/organizations/{organization.id}/members/{quote(user, safe='')}", organization.name


@implements(MEMBERS_ADD)
def _add(invocation: Invocation[OrgOption]) -> int:
    client = session.client(invocation)
    path, name = _member_path(invocation, client)
    with add_action_to_errors(f"could not add {invocation.args[0]} to organization {name}"):
        client.request("POST", path)
    sys.stdout.write(f"Organization member added to {name}\n")
    return 0


@implements(MEMBERS_REMOVE)
def _remove(invocation: Invocation[OrgOption]) -> int:
    client = session.client(invocation)
    path, name = _member_path(invocation, client)
    with add_action_to_errors(f"could not remove {invocation.args[0]} from organization {name}"):
        client.request("DELETE", path)
    sys.stdout.write(f"Organization member removed from {name}\n")
    return 0


@implements(MEMBERS_EDIT_ROLES)
def _edit_roles(invocation: Invocation[OrgOption]) -> int:
    client = session.client(invocation)
    path, _ = _member_path(invocation, client)
    with add_action_to_errors("update member roles"):
        updated = read(client.request("PUT", f"{path}/roles", json={"roles": invocation.args[1:]}), OrganizationMember)
    roles = ", ".join(role.name for role in updated.roles)
    sys.stdout.write(f"Member roles updated: {roles or 'none'}\n")
    return 0


# ---- roles


@implements(ROLES_SHOW)
def _roles(invocation: Invocation[OrganizationsRolesShowOptions]) -> int:
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


def _save_role(invocation: Invocation[RoleInputOptions], method: str) -> int:
    if not invocation.options.stdin:
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
    if invocation.options.dry_run:
        print_json(role)
        return 0
    confirm(invocation.options.yes, f"Are you sure you want to save the role {role['name']}?", default=True)
    with add_action_to_errors("patch role" if method == "PUT" else "create role"):
        path = f"/api/v2/organizations/{organization.id}/members/roles"
        saved = client.request(method, path, json=role)
    if method == "POST":
        sys.stdout.write(f"Role {role['name']} created.\n")
        return 0
    print_rows(invocation, lambda: [_role_row(read(saved, Role))], lambda: [saved.json()])
    return 0


@implements(ROLES_CREATE)
def _run_roles_create(invocation: Invocation[OrganizationsRolesCreateOptions]) -> int:
    return _save_role(invocation, "POST")


@implements(ROLES_UPDATE)
def _run_roles_update(invocation: Invocation[OrganizationsRolesUpdateOptions]) -> int:
    return _save_role(invocation, "PUT")
