"""Choice of the organization that a command acts in."""

from __future__ import annotations

from urllib.parse import quote

from coder.api.people.organizations import Organization
from coder.base.errors import CoderError
from coder.base.json_types import Json
from coder.cli.core import session
from coder.cli.core.command import Invocation
from coder.cli.core.options import OrgOption
from coder.client.answers import read, read_rows
from coder.net.blocking import BlockingClient


def organization_of(invocation: Invocation[OrgOption], client: BlockingClient) -> Organization:
    """Return the organization of the flag or the saved file, else the only one. Raise CoderError for several."""
    return find_organization(invocation, client)[0]


def find_organization(invocation: Invocation[OrgOption], client: BlockingClient) -> tuple[Organization, Json]:
    """Return the result of `organization_of` with the server's answer."""
    chosen = invocation.options.org or session.read_file(session.config_dir(invocation), "organization")
    if chosen:
        return named_organization(client, chosen)
    organizations = read_rows(client.request("GET", "/api/v2/users/me/organizations"), Organization)
    if not organizations:
        raise CoderError("no_organization", "you are not a member of any organization", "Ask an administrator.")
    if len(organizations) > 1:
        names = ", ".join(sorted(item.name for item, _ in organizations))
        raise CoderError(
            "organization", f"you are a member of several organizations: choose one with --org (one of: {names})"
        )
    return organizations[0]


def named_organization(client: BlockingClient, name: str) -> tuple[Organization, Json]:
    """Return the organization with this name or id, with the server's answer."""
    answer = client.request("GET", f"/api/v2/organizations/{quote(name, safe='')}")
    return read(answer, Organization), answer.json()
