"""`coder groups`: groups of an organization's members, for permissions and quotas."""

from __future__ import annotations

import sys
from urllib.parse import quote

from coder.api.people.groups import Group
from coder.api.people.users import GetUsersResponse, User
from coder.base.config import Option
from coder.cli.core import session
from coder.cli.core.command import ORG, Command, Invocation, column_option, output_option
from coder.cli.core.failures import add_action_to_errors
from coder.cli.templates.templates import organization_of
from coder.cli.ui.output import Row, print_rows, say
from coder.client.answers import read, read_rows
from coder.net.blocking import BlockingClient

COLUMNS = ("name", "display name", "organization id", "members", "avatar url")


def _list(invocation: Invocation) -> int:
    client = session.client(invocation)
    organization = organization_of(invocation, client)
    with add_action_to_errors("get groups"):
        groups = read_rows(client.request("GET", f"/api/v2/organizations/{organization.id}/groups"), Group)
    if not groups and invocation["output"] != "json":
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


def _create(invocation: Invocation) -> int:
    client = session.client(invocation)
    organization = organization_of(invocation, client)
    body = {
        "name": invocation.args[0],
        "display_name": invocation["display_name"],
        "avatar_url": invocation["avatar_url"],
    }
    with add_action_to_errors("create group"):
        path = f"/api/v2/organizations/{organization.id}/groups"
        group = read(client.request("POST", path, json=body, expect=(201,)), Group)
    sys.stdout.write(f"Successfully created group {group.name}!\n")
    return 0


def _find(invocation: Invocation, client: BlockingClient) -> Group:
    organization = organization_of(invocation, client)
    with add_action_to_errors("group by org and name"):
        path = f"/api/v2/organizations/{organization.id}/groups/{quote(invocation.args[0], safe='')}"
        return read(client.request("GET", path), Group)


def _edit(invocation: Invocation) -> int:
    client = session.client(invocation)
    group = _find(invocation, client)
    names = (("name", "name"), ("avatar_url", "avatar_url"), ("display_name", "display_name"))
    body = {key: invocation[option] for option, key in names if invocation.given(option)}
    body["add_users"] = [_user_id(client, user) for user in invocation["add_users"]]
    body["remove_users"] = [_user_id(client, user) for user in invocation["rm_users"]]
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


def _delete(invocation: Invocation) -> int:
    client = session.client(invocation)
    group = _find(invocation, client)
    with add_action_to_errors("delete group"):
        client.request("DELETE", f"/api/v2/groups/{group.id}")
    sys.stdout.write(f"Successfully deleted group {group.name}!\n")
    return 0


LIST = Command(
    words="groups list",
    summary="List user groups",
    run=_list,
    max_args=0,
    options=(column_option(COLUMNS, COLUMNS), output_option(), ORG),
)
CREATE = Command(
    words="groups create",
    summary="Create a user group",
    usage="<name>",
    run=_create,
    min_args=1,
    max_args=1,
    options=(
        Option(
            "avatar_url",
            "avatar-url",
            "CODER_AVATAR_URL",
            short="u",
            help="URL or path of the group's picture.",
        ),
        Option(
            "display_name",
            "display-name",
            "CODER_DISPLAY_NAME",
            help="Display name, which can contain spaces and capitals.",
        ),
        ORG,
    ),
)
EDIT = Command(
    words="groups edit",
    summary="Edit a user group",
    usage="<name>",
    run=_edit,
    min_args=1,
    max_args=1,
    options=(
        Option("name", "name", short="n", help="New name; links and scripts that use the old name stop working."),
        Option("avatar_url", "avatar-url", short="u", help="URL or path of the group's new picture."),
        Option(
            "display_name",
            "display-name",
            "CODER_DISPLAY_NAME",
            help="New display name; the name for commands does not change.",
        ),
        Option(
            "add_users",
            "add-users",
            kind="string-array",
            default=(),
            short="a",
            help="Users to add, by name, id or e-mail address, separated by commas.",
        ),
        Option(
            "rm_users",
            "rm-users",
            kind="string-array",
            default=(),
            short="r",
            help="Users to remove, by name, id or e-mail address, separated by commas.",
        ),
        ORG,
    ),
)
DELETE = Command(
    words="groups delete",
    summary="Delete a user group",
    usage="<name>",
    run=_delete,
    min_args=1,
    max_args=1,
    options=(ORG,),
)
