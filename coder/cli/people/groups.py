"""`coder groups`: groups of an organization's members, for permissions and quotas."""

from __future__ import annotations

import sys
from urllib.parse import quote

from coder.api.people.groups import Group
from coder.api.people.users import GetUsersResponse, User
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.failures import add_action_to_errors
from coder.cli.core.options import OrgOption
from coder.cli.core.organization_choice import organization_of
from coder.cli.declarations.people.groups import (
    CREATE,
    DELETE,
    EDIT,
    LIST,
    GroupsCreateOptions,
    GroupsEditOptions,
    GroupsListOptions,
)
from coder.cli.ui.output import Row, print_rows, say
from coder.client.answers import read, read_rows
from coder.net.blocking import BlockingClient


@implements(LIST)
def _list(invocation: Invocation[GroupsListOptions]) -> int:
    client = session.client(invocation)
    organization = organization_of(invocation, client)
    with add_action_to_errors("get groups"):
        groups = read_rows(client.request("GET", f"/api/v2/organizations/{organization.id}/groups"), Group)
    if not groups and invocation.options.output != "json":
        say("No groups found! Create one:\n\n  coder groups create <name>\n")
        return 0
    print_rows(invocation, lambda: [_row(group) for group, _ in groups], lambda: [raw for _, raw in groups])
    return 0


def _row(group: Group) -> Row:
    return {
        "name": group.name,
        "display name": group.display_name,
        "organization id": group.organization_id,
        "members": "[" + " ".join(member.email for member in group.members) + "]",
        "avatar url": group.avatar_url,
    }


@implements(CREATE)
def _create(invocation: Invocation[GroupsCreateOptions]) -> int:
    client = session.client(invocation)
    organization = organization_of(invocation, client)
    body = {
        "name": invocation.args[0],
        "display_name": invocation.options.display_name,
        "avatar_url": invocation.options.avatar_url,
    }
    with add_action_to_errors("create group"):
        path = f"/api/v2/organizations/{organization.id}/groups"
        group = read(client.request("POST", path, json=body, expect=(201,)), Group)
    sys.stdout.write(f"Successfully created group {group.name}!\n")
    return 0


def _find(invocation: Invocation[OrgOption], client: BlockingClient) -> Group:
    organization = organization_of(invocation, client)
    with add_action_to_errors("group by org and name"):
        path = f"/api/v2/organizations/{organization.id}/groups/{quote(invocation.args[0], safe='')}"
        return read(client.request("GET", path), Group)


@implements(EDIT)
def _edit(invocation: Invocation[GroupsEditOptions]) -> int:
    client = session.client(invocation)
    group = _find(invocation, client)
    body = invocation.given_values({name: name for name in ("name", "avatar_url", "display_name")})
    body["add_users"] = [_user_id(client, user) for user in invocation.options.add_users]
    body["remove_users"] = [_user_id(client, user) for user in invocation.options.rm_users]
    with add_action_to_errors("patch group"):
        group = read(client.request("PATCH", f"/api/v2/groups/{group.id}", json=body), Group)
    sys.stdout.write(f"Successfully patched group {group.name}!\n")
    return 0


def _user_id(client: BlockingClient, name: str) -> str:
    """Return the id of the user with this name, id or e-mail address."""
    if "@" not in name:
        return str(read(client.request("GET", f"/api/v2/users/{quote(name, safe='')}"), User).id)
    users = read(client.request("GET", f"/api/v2/users?q={quote(name)}"), GetUsersResponse).users
    match = next((user for user in users if user.email.lower() == name.lower()), None)
    return str(match.id) if match else name


@implements(DELETE)
def _delete(invocation: Invocation[OrgOption]) -> int:
    client = session.client(invocation)
    group = _find(invocation, client)
    with add_action_to_errors("delete group"):
        client.request("DELETE", f"/api/v2/groups/{group.id}")
    sys.stdout.write(f"Successfully deleted group {group.name}!\n")
    return 0
