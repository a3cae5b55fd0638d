"""`coder sharing`: shares workspaces with users and groups."""

from __future__ import annotations

from urllib.parse import quote

from coder.api.people.groups import Group
from coder.api.people.users import User
from coder.api.workspaces.workspace_settings import WorkspaceACL
from coder.api.workspaces.workspaces import Workspace
from coder.base.errors import CoderError
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.failures import add_action_to_errors
from coder.cli.core.options import TableOptions
from coder.cli.declarations.workspaces.sharing import ADD, REMOVE, STATUS, SharingAddOptions, SharingStatusOptions
from coder.cli.ui.output import print_json, print_table
from coder.cli.workspaces.find_workspace import find_workspace
from coder.client.answers import read
from coder.net.blocking import BlockingClient

ROLES = ("use", "admin")


@implements(STATUS)
def _status(invocation: Invocation[SharingStatusOptions]) -> int:
    client = session.client(invocation)
    return _print(invocation, client, find_workspace(client, invocation.args[0]))


def _print(invocation: Invocation[TableOptions], client: BlockingClient, workspace: Workspace) -> int:
    with add_action_to_errors("unable to fetch ACL for workspace"):
        answer = client.request("GET", f"/api/v2/workspaces/{workspace.id}/acl")
    if invocation.options.output == "json":
        print_json(answer.json())
        return 0
    acl = read(answer, WorkspaceACL)
    rows = [{"user": user.username, "group": "", "role": user.role} for user in acl.users]
    rows += [{"user": "", "group": group.name, "role": group.role} for group in acl.group]
    if rows:
        print_table([column.strip().lower() for column in invocation.options.column], rows)
    return 0


@implements(ADD)
def _add(invocation: Invocation[SharingAddOptions]) -> int:
    client = session.client(invocation)
    workspace = find_workspace(client, invocation.args[0])
    users = {_user(client, name): role for name, role in _with_roles(invocation.options.user)}
    groups = {_group(client, workspace, name): role for name, role in _with_roles(invocation.options.group)}
    _change(client, workspace, users, groups)
    return _print(invocation, client, workspace)


@implements(REMOVE)
def _remove(invocation: Invocation[SharingAddOptions]) -> int:
    client = session.client(invocation)
    workspace = find_workspace(client, invocation.args[0])
    users = {_user(client, name): "" for name in invocation.options.user}
    groups = {_group(client, workspace, name): "" for name in invocation.options.group}
    _change(client, workspace, users, groups)
    return _print(invocation, client, workspace)


def _change(client: BlockingClient, workspace: Workspace, users: dict[str, str], groups: dict[str, str]) -> None:
    if not users and not groups:
        raise CoderError("usage", "at least one user or group must be provided", "Name them with --user and --group.")
    with add_action_to_errors("update workspace sharing"):
        body = {"user_roles": users, "group_roles": groups}
        client.request("PATCH", f"/api/v2/workspaces/{workspace.id}/acl", json=body)


def _with_roles(words: tuple[str, ...]) -> list[tuple[str, str]]:
    """Parse `name` or `name:role`."""
    roles = []
    for word in words:
        name, _, role = word.partition(":")
        role = role or "use"
        if role not in ROLES:
            raise CoderError("role", f'invalid role "{role}": expected one of {", ".join(ROLES)}')
        roles.append((name, role))
    return roles


def _user(client: BlockingClient, name: str) -> str:
    with add_action_to_errors(f'could not find user "{name}"'):
        return str(read(client.request("GET", f"/api/v2/users/{quote(name, safe='')}"), User).id)


def _group(client: BlockingClient, workspace: Workspace, name: str) -> str:
    with add_action_to_errors(f'could not find group "{name}"'):
        path = f"/api/v2/organizations/{workspace.organization_id}/groups/{quote(name, safe='')}"
        return str(read(client.request("GET", path), Group).id)
