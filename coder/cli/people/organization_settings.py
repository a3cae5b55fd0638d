"""`coder organizations settings`: identity provider sync and sharing of an organization, as JSON."""

from __future__ import annotations

import json
import sys

from coder.base.errors import CoderError
from coder.base.json_types import Json
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.failures import add_action_to_errors
from coder.cli.core.options import OrgOption
from coder.cli.core.organization_choice import organization_of
from coder.cli.declarations.people.organization_settings import (
    SET_GROUP_SYNC,
    SET_ORGANIZATION_SYNC,
    SET_ROLE_SYNC,
    SET_SHARING,
    SHOW_GROUP_SYNC,
    SHOW_ORGANIZATION_SYNC,
    SHOW_ROLE_SYNC,
    SHOW_SHARING,
)
from coder.cli.ui.output import print_json
from coder.net.blocking import BlockingClient

_CLAIMS = {"group-sync": "groups", "role-sync": "roles"}


def _path(invocation: Invocation[OrgOption], client: BlockingClient, name: str) -> str:
    if name == "organization-sync":  # a setting of the whole deployment
        return "/api/v2/settings/idpsync/organization"
    root = f"/api/v2/organizations/{organization_of(invocation, client).id}/settings"
    return f"{root}/{name}" if name == "workspace-sharing" else f"{root}/idpsync/{_CLAIMS[name]}"


def _show(invocation: Invocation[OrgOption], name: str) -> int:
    client = session.client(invocation)
    with add_action_to_errors(f"get {name} settings"):
        print_json(client.request("GET", _path(invocation, client, name)).json())
    return 0


def _set(invocation: Invocation[OrgOption], name: str) -> int:
    """Read the settings as JSON from standard input and print the stored settings."""
    try:
        settings: Json = json.loads(sys.stdin.read())
    except ValueError as error:
        raise CoderError(
            "settings", "standard input is not JSON", f"Start from the output of `show {name}`."
        ) from error
    client = session.client(invocation)
    with add_action_to_errors(f"set {name} settings"):
        print_json(client.request("PATCH", _path(invocation, client, name), json=settings).json())
    return 0


@implements(SHOW_GROUP_SYNC)
def _show_group_sync(invocation: Invocation[OrgOption]) -> int:
    return _show(invocation, "group-sync")


@implements(SHOW_ROLE_SYNC)
def _show_role_sync(invocation: Invocation[OrgOption]) -> int:
    return _show(invocation, "role-sync")


@implements(SHOW_ORGANIZATION_SYNC)
def _show_organization_sync(invocation: Invocation[OrgOption]) -> int:
    return _show(invocation, "organization-sync")


@implements(SHOW_SHARING)
def _show_sharing(invocation: Invocation[OrgOption]) -> int:
    return _show(invocation, "workspace-sharing")


@implements(SET_GROUP_SYNC)
def _set_group_sync(invocation: Invocation[OrgOption]) -> int:
    return _set(invocation, "group-sync")


@implements(SET_ROLE_SYNC)
def _set_role_sync(invocation: Invocation[OrgOption]) -> int:
    return _set(invocation, "role-sync")


@implements(SET_ORGANIZATION_SYNC)
def _set_organization_sync(invocation: Invocation[OrgOption]) -> int:
    return _set(invocation, "organization-sync")


@implements(SET_SHARING)
def _set_sharing(invocation: Invocation[OrgOption]) -> int:
    return _set(invocation, "workspace-sharing")
