"""`coder users access`: what a user may do, and what acts for the user.

Reads the routes of the dashboard's access review, each with its own rule: a part that the caller may not read is
named, not left out silently.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from urllib.parse import quote, urlencode

from coder.api.access.keys import APIKeyWithOwner, UserSession
from coder.api.login.oauth2 import OAuth2ProviderApp
from coder.api.people.groups import Group
from coder.api.people.organizations import Organization, OrganizationMemberWithUserData
from coder.api.people.users import User
from coder.api.wireguard.wireguard_clients import WireguardClient
from coder.api.workspaces.workspaces import WorkspacesResponse
from coder.base.json_types import Json
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.failures import add_action_to_errors
from coder.cli.declarations.people.user_access import ACCESS, UsersAccessOptions
from coder.cli.ui.output import Row, go_time, print_rows, say
from coder.client.answers import read
from coder.net.blocking import BlockingClient

T = TypeVar("T")

NOT_SHOWN = (403, 404)
"""Answers for a part that the caller may not read."""
OAUTH2_OFF = (400,)
"""Answers of the OAuth2 routes where the deployment has switched them off. Elsewhere, 400 is a failure."""
_SYNCED = {"oidc": "identity provider", "github": "GitHub"}


@dataclass(frozen=True)
class Grant:
    """A row of the review."""

    kind: str
    name: str
    origin: str
    """Where it comes from: "by hand", "identity provider", or the user who shared it."""
    id: str
    last_used: datetime | None = None
    expires_at: datetime | None = None


def _part(client: BlockingClient, title: str, path: str, kind: type[T], off: tuple[int, ...] = ()) -> T | None:
    """Return a part of the review, or None after naming the part that cannot be shown. `off`: statuses of a part that
    the deployment has switched off."""
    answer = client.request("GET", path, expect=(200, *NOT_SHOWN, *off))
    if answer.status in off:
        say(f"Not shown: {title} (this deployment has none)")
        return None
    if answer.status != 200:
        say(f"Not shown: {title} (you may not see them, or the deployment has none)")
        return None
    return None if answer.json() is None else read(answer, kind)


def _roles(client: BlockingClient, user: User) -> Iterator[Grant]:
    origin = "by hand, or the identity provider" if user.login_type in _SYNCED else "by hand"
    for role in user.roles:
        yield Grant("site role", role.display_name or role.name, origin, role.name)
    organizations = _part(client, "organizations", f"/api/v2/users/{user.id}/organizations", list[Organization]) or []
    for organization in organizations:
        path = f"/api/v2/organizations/{organization.id}/members/{user.id}"
        member = _part(client, f"roles in {organization.name}", path, OrganizationMemberWithUserData)
        yield Grant("organization", organization.name, "membership", str(organization.id))
        for role in member.roles if member else ():
            name = f"{organization.name}/{role.display_name or role.name}"
            yield Grant("organization role", name, origin, role.name)


def _groups(client: BlockingClient, user: User) -> Iterator[Grant]:
    for group in _part(client, "groups", f"/api/v2/groups?has_member={user.id}", list[Group]) or []:
        everyone = group.id == group.organization_id
        origin = "membership" if everyone else _SYNCED["oidc"] if group.source == "oidc" else "by hand"
        yield Grant("group", f"{group.organization_name}/{group.name}", origin, str(group.id))


def _shares(client: BlockingClient, user: User) -> Iterator[Grant]:
    for kind, terms in (
        ("shared with the user", f"shared_with_user:{user.id}"),
        ("shared by the user", f"owner:{user.username} shared:true"),
    ):
        found = _part(client, kind, f"/api/v2/workspaces?{urlencode({'q': terms})}", WorkspacesResponse)
        for workspace in found.workspaces if found else ():
            name = f"{workspace.owner_name}/{workspace.name}"
            yield Grant(kind, name, f"shared by {workspace.owner_name}", str(workspace.id), workspace.last_used_at)


def _readable(client: BlockingClient, user: User) -> dict[str, bool]:
    """Return which kinds of credentials the caller may read: lists of hidden ones are empty, not refused."""
    kinds = {"keys": "api_key", "consents": "oauth2_app_code_token"}
    checks: dict[str, Json] = {
        name: {"object": {"resource_type": kind, "owner_id": str(user.id)}, "action": "read"}
        for name, kind in kinds.items()
    }
    answer = client.request("POST", "/api/v2/authcheck", json={"checks": checks})
    return read(answer, dict[str, bool])


def _keys(client: BlockingClient, user: User) -> Iterator[Grant]:
    base = f"/api/v2/users/{user.id}"
    for token in _part(client, "tokens", f"{base}/keys/tokens", list[APIKeyWithOwner]) or []:
        if token.user_id == user.id:
            scopes = ", ".join(token.scopes)
            yield Grant("token", token.token_name, scopes, token.id, token.last_used, token.expires_at)
    for item in _part(client, "sessions", f"{base}/sessions", list[UserSession]) or []:
        place = item.ip_address or "-"
        yield Grant("session", item.user_agent or "unknown program", place, item.id, item.last_used, item.expires_at)
    for device in _part(client, "devices", f"{base}/wireguard-clients", list[WireguardClient]) or []:
        place = device.endpoint or "-"
        yield Grant("device", device.name, place, str(device.id), device.last_handshake_at, device.expires_at)


def _consents(client: BlockingClient, user: User) -> Iterator[Grant]:
    path = f"/api/v2/oauth2-provider/apps?user_id={user.id}"
    for app in _part(client, "OAuth2 consents", path, list[OAuth2ProviderApp], OAUTH2_OFF) or []:
        last_used = app.last_used if isinstance(app.last_used, datetime) else None
        yield Grant("OAuth2 consent", app.name, "consent", str(app.id), last_used)


def _credentials(client: BlockingClient, user: User) -> Iterator[Grant]:
    readable = _readable(client, user)
    for name, titles, part in (
        ("keys", "tokens, sessions and devices", _keys),
        ("consents", "OAuth2 consents", _consents),
    ):
        if readable.get(name, False):
            yield from part(client, user)
        else:
            say(f"Not shown: {titles} (you may not see them)")


def _grants(client: BlockingClient, user: User) -> Iterable[Grant]:
    for part in (_roles, _groups, _shares, _credentials):
        yield from part(client, user)


def _time(moment: datetime | None) -> str:
    """Return a time, or "-" for none: the API's zero time is in the year 1."""
    return go_time(moment) if moment is not None and moment.year > 1 else "-"


def _row(grant: Grant) -> Row:
    return {
        "kind": grant.kind,
        "name": grant.name,
        "from": grant.origin,
        "last used": _time(grant.last_used),
        "expires at": _time(grant.expires_at),
        "id": grant.id,
    }


@implements(ACCESS)
def _access(invocation: Invocation[UsersAccessOptions]) -> int:
    client = session.client(invocation)
    with add_action_to_errors("fetch user"):
        user = read(client.request("GET", f"/api/v2/users/{quote(invocation.args[0], safe='')}"), User)
    seen = _time(user.last_seen_at if isinstance(user.last_seen_at, datetime) else None)
    say(f"{user.username}: {user.status}, signs in with {user.login_type or 'nothing'}, last seen {seen}")
    grants = list(_grants(client, user))

    def as_json() -> Json:
        return [{key.replace(" ", "_"): str(value) for key, value in _row(grant).items()} for grant in grants]

    print_rows(invocation, lambda: [_row(grant) for grant in grants], as_json)
    return 0
