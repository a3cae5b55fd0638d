"""`coder organizations settings`: identity provider sync and sharing of an organization, as JSON."""

from __future__ import annotations

import json
import sys

from coder.base.errors import CoderError
from coder.cli.core import session
from coder.cli.core.command import ORG, Command, Invocation
from coder.cli.core.failures import add_action_to_errors
from coder.cli.templates.templates import organization_of
from coder.cli.ui.output import print_json
from coder.net.blocking import BlockingClient

_SYNC_SETTINGS = {
    "group-sync": ("groups", "how identity provider claims map to groups"),
    "role-sync": ("roles", "how identity provider claims map to roles"),
}
_SUMMARIES = {name: summary for name, (_, summary) in _SYNC_SETTINGS.items()} | {
    "organization-sync": "how identity provider claims map to memberships",
    "workspace-sharing": "whether workspaces can be shared",
}


def _path(invocation: Invocation, client: BlockingClient, name: str) -> str:
    if name == "organization-sync":  # a setting of the whole deployment
        return "/api/v2/settings/idpsync/organization"
    root = f"/api/v2/organizations/{organization_of(invocation, client).id}/settings"
    return f"{root}/{name}" if name == "workspace-sharing" else f"{root}/idpsync/{_SYNC_SETTINGS[name][0]}"


def _show(invocation: Invocation, name: str) -> int:
    client = session.client(invocation)
    with add_action_to_errors(f"get {name} settings"):
        print_json(client.request("GET", _path(invocation, client, name)).json())
    return 0


def _set(invocation: Invocation, name: str) -> int:
    """Read the settings as JSON from standard input and print the stored settings."""
    try:
        settings: object = json.loads(sys.stdin.read())
    except ValueError as error:
        raise CoderError(
            "settings", "standard input is not JSON", f"Start from the output of `show {name}`."
        ) from error
    client = session.client(invocation)
    with add_action_to_errors(f"set {name} settings"):
        print_json(client.request("PATCH", _path(invocation, client, name), json=settings).json())
    return 0


def _command(verb: str, name: str) -> Command:
    run = _show if verb == "show" else _set
    return Command(
        words=f"organizations settings {verb} {name}",
        summary=f"{verb.title()} {_SUMMARIES[name]}",
        run=lambda invocation: run(invocation, name),
        max_args=0,
        options=(ORG,),
        long="" if verb == "show" else "Reads the settings as JSON from standard input.",
    )


SHOW_GROUP_SYNC, SET_GROUP_SYNC = _command("show", "group-sync"), _command("set", "group-sync")
SHOW_ROLE_SYNC, SET_ROLE_SYNC = _command("show", "role-sync"), _command("set", "role-sync")
SHOW_ORGANIZATION_SYNC = _command("show", "organization-sync")
SET_ORGANIZATION_SYNC = _command("set", "organization-sync")
SHOW_SHARING, SET_SHARING = _command("show", "workspace-sharing"), _command("set", "workspace-sharing")
