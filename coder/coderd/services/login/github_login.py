"""Log in with GitHub: read the user's identity, and check membership in an allowed organization or team.

Uses GitHub's REST API v3; `--oauth2-github-enterprise-base-url` sets the URL of a GitHub Enterprise server.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from coder.api.base.refusals import BadGateway, Forbidden, Invalid, Unauthenticated
from coder.api.login.external_auth import ExternalAuthDevice
from coder.base.json_types import Json, as_object
from coder.base.secret import Secret
from coder.coderd.services.foundation.outgoing_requests import fetch
from coder.coderd.services.login.oauth_exchange import (
    ExchangeRefused,
    ProviderEndpoint,
    TokenGrant,
    parse_device_reply,
    parse_token_reply,
)
from coder.domain.login.identity import Person, username_from
from coder.net.errors import NetError

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

CALLBACK = "/api/v2/users/oauth2/github/callback"
_SCOPES = ("read:user", "read:org", "user:email")
_DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


@dataclass(frozen=True, slots=True)
class Hosts:
    """Base URLs of GitHub."""

    web: str
    api: str


def enabled(ctx: Context) -> bool:
    return bool(ctx.config.oauth2_github_client_id)


def hosts(ctx: Context) -> Hosts:
    own = ctx.config.oauth2_github_enterprise_base_url.rstrip("/")
    return Hosts(own, f"{own}/api/v3") if own else Hosts("https://github.com", "https://api.github.com")


def endpoint(ctx: Context) -> ProviderEndpoint:
    web = hosts(ctx).web
    return ProviderEndpoint(
        client_id=ctx.config.oauth2_github_client_id,
        client_secret=ctx.config.oauth2_github_client_secret,
        auth_url=f"{web}/login/oauth/authorize",
        token_url=f"{web}/login/oauth/access_token",
        scopes=_SCOPES,
        redirect_url=ctx.access_url + CALLBACK,
    )


async def person(ctx: Context, granted: TokenGrant) -> Person:
    """Return the user's identity. Raises Unauthenticated (not in an allowed group), Forbidden (no verified email),
    BadGateway.
    """
    user = as_object(await _get(ctx, "/user", granted.access))
    number, login = user.get("id"), user.get("login")
    if not isinstance(number, int) or not 0 < number < 2**63 or not isinstance(login, str) or not login.isascii():
        raise BadGateway("GitHub did not identify the user.")
    await _check_membership(ctx, granted.access, login)
    return Person(
        linked_id=str(number),
        email=await _primary_email(ctx, granted.access),
        username=username_from(login),
        name=str(user.get("name") or "")[:128].strip(),
        picture=str(user.get("avatar_url") or ""),
    )


async def _check_membership(ctx: Context, token: Secret, login: str) -> None:
    config = ctx.config
    if config.oauth2_github_allow_everyone:
        return
    memberships = await _get(ctx, "/user/memberships/orgs?state=active&per_page=100", token)
    own_organizations = {
        str(as_object(item["organization"]).get("login", "")).lower()
        for item in (memberships if isinstance(memberships, list) else [])
        if isinstance(item, dict) and isinstance(item.get("organization"), dict) and item.get("state") == "active"
    }
    allowed = {name.lower() for name in config.oauth2_github_allowed_orgs} & own_organizations
    if not allowed:
        raise Unauthenticated("You aren't a member of the authorized Github organizations!")
    if not config.oauth2_github_allowed_teams:
        return
    for entry in config.oauth2_github_allowed_teams:
        organization, _, team = entry.partition("/")
        if organization.lower() in allowed and await _in_team(ctx, token, organization, team, login):
            return
    names = ", ".join(sorted(allowed))
    raise Unauthenticated(f"You aren't a member of an authorized team in the {names} Github organization(s)!")


async def _in_team(ctx: Context, token: Secret, organization: str, team: str, login: str) -> bool:
    path = f"/orgs/{quote(organization, safe='')}/teams/{quote(team, safe='')}/memberships/{quote(login, safe='')}"
    document = await _get(ctx, path, token, missing={})
    return isinstance(document, dict) and document.get("state") == "active"


async def _primary_email(ctx: Context, token: Secret) -> str:
    document = await _get(ctx, "/user/emails", token)
    for item in document if isinstance(document, list) else []:
        if isinstance(item, dict) and item.get("primary") and isinstance(item.get("email"), str):
            if item.get("verified"):
                return str(item["email"])
            break
    raise Forbidden("Your primary email must be verified on GitHub!")


async def _get(ctx: Context, path: str, token: Secret, missing: Json = None) -> Json:
    """Return the JSON at a path of the API, or `missing` for status 404. Raises BadGateway."""
    try:
        reply = await fetch("GET", hosts(ctx).api + path, bearer=token)
        if reply.status == 404 and missing is not None:
            return missing
        if not reply.fine:
            raise BadGateway("GitHub refused a request.", f"{path.partition('?')[0]}: status {reply.status}")
        document: Json = json.loads(reply.body)
    except (NetError, ValueError, RecursionError) as error:
        raise BadGateway("GitHub cannot be reached.", str(error)) from error
    return document


# ---- the device flow (RFC 8628)


async def begin_device(ctx: Context) -> ExternalAuthDevice:
    """Start the device flow. Raises Invalid when it is disabled, BadGateway."""
    if not enabled(ctx):
        raise Invalid("Github OAuth2 is not enabled.")
    if not ctx.config.oauth2_github_device_flow:
        raise Invalid("Device flow is not enabled for Github OAuth2.")
    form = {"client_id": ctx.config.oauth2_github_client_id, "scope": " ".join(_SCOPES)}
    try:
        return parse_device_reply(await fetch("POST", hosts(ctx).web + "/login/device/code", form=form))
    except (NetError, ValueError, KeyError, TypeError) as error:
        raise BadGateway("GitHub sent no device code.", str(error)) from error


async def exchange_device(ctx: Context, device_code: str) -> TokenGrant:
    """Exchange the device code. Raises Invalid before the user has agreed, with GitHub's error code as detail."""
    form = {
        "client_id": ctx.config.oauth2_github_client_id,
        "device_code": device_code,
        "grant_type": _DEVICE_GRANT,
    }
    try:
        return parse_token_reply(ctx, await fetch("POST", endpoint(ctx).token_url, form=form))
    except ExchangeRefused as error:
        raise Invalid("Failed to exchange device code.", error.error or error.detail) from error
    except NetError as error:
        raise BadGateway("GitHub cannot be reached.", error.message) from error
