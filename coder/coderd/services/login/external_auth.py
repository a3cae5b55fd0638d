"""External authentication: links of users to git hosts and other providers, and their tokens.

An expired token is refreshed where the provider allows it. Every token is validated at the provider's validate URL
before use. Tokens are sent to the user's workspaces (git's askpass) and builds, never to a page or a log.

`external_auth_device` links an account by the device flow.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from msgspec import UNSET

from coder.api.base.refusals import NotFound
from coder.api.login.external_auth import (
    ExternalAuth,
    ExternalAuthAppInstallation,
    ExternalAuthLink,
    ExternalAuthLinkProvider,
    ExternalAuthUser,
    ListUserExternalAuthResponse,
    TemplateVersionExternalAuth,
)
from coder.base.json_types import Json, JsonObject, as_object
from coder.base.secret import Secret
from coder.coderd.services.access.application_limits import refuse_applications
from coder.coderd.services.foundation.outgoing_requests import OutgoingReply, fetch, split_url
from coder.coderd.services.login.oauth_exchange import ExchangeRefused, ProviderEndpoint, TokenGrant, exchange, renew
from coder.coderd.store.login import external_auth as store
from coder.coderd.store.login.external_auth import ExternalLink
from coder.domain.foundation.zero import ZERO_TIME
from coder.domain.login.external_providers import ExternalProvider, provider_for
from coder.net.errors import NetError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from coder.coderd.services.foundation.context import Context
    from coder.domain.access.policy import Subject

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class CheckedLink:
    """A link, its current token, and the result of validating it."""

    link: ExternalLink
    token: Secret
    user: ExternalAuthUser | None
    problem: str = ""
    "Reason why the token is invalid; empty for a valid token."

    @property
    def valid(self) -> bool:
        return not self.problem


def find_provider(ctx: Context, ident: str) -> ExternalProvider:
    """Return the provider with that id. Raises NotFound."""
    provider = provider_for(ctx.config.external_auth_providers, ident=ident)
    if provider is None:
        raise NotFound
    return provider


def endpoint_of(ctx: Context, provider: ExternalProvider) -> ProviderEndpoint:
    return ProviderEndpoint(
        client_id=provider.client_id,
        client_secret=Secret(provider.client_secret),
        auth_url=provider.auth_url,
        token_url=provider.token_url,
        scopes=provider.scopes,
        redirect_url=f"{ctx.access_url}/external-auth/{provider.id}/callback",
        extra={"access_type": "offline"},
        pkce=provider.pkce,
    )


async def link(ctx: Context, subject: Subject, provider: ExternalProvider, code: str, verifier: str) -> None:
    """Link an account with the code of the provider's callback. Raises ExchangeRefused, Forbidden (an application)."""
    await refuse_applications(ctx, subject, "external_auth_link")
    granted = await exchange(ctx, endpoint_of(ctx, provider), code, verifier)
    await store_link(ctx, provider, subject.user_id, granted)


async def store_link(ctx: Context, provider: ExternalProvider, user_id: UUID, granted: TokenGrant) -> None:
    await ctx.db.run(store.put_link, _row(ctx, provider, user_id, granted))


def _row(ctx: Context, provider: ExternalProvider, user_id: UUID, granted: TokenGrant) -> ExternalLink:
    sealer = ctx.services.sealer
    now = ctx.clock.now()
    return ExternalLink(
        provider.id,
        user_id,
        now,
        now,
        sealer.seal(granted.access),
        sealer.seal(granted.refresh),
        granted.expires_at,
        _extra(provider, granted),
    )


def _extra(provider: ExternalProvider, granted: TokenGrant) -> JsonObject | None:
    """Return data to store with the link. Slack sends the user's own token in addition to the application's."""
    user = granted.document.get("authed_user")
    return {"authed_user": user} if provider.kind == "slack" and isinstance(user, dict) else None


async def check(ctx: Context, provider: ExternalProvider, row: ExternalLink) -> CheckedLink:
    """Refresh the token of a link if it has expired, and validate it at the provider."""
    sealer = ctx.services.sealer
    token = sealer.open(row.access_token)
    now = ctx.clock.now()
    if row.expires_at is not None and row.expires_at <= now:
        refresh = sealer.open(row.refresh_token)
        if provider.no_refresh or not refresh:
            return CheckedLink(row, token, None, "token expired, refreshing is either disabled or not supported")
        row, problem = await _refreshed(ctx, provider, row, refresh)
        token = sealer.open(row.access_token)
        if problem:
            return CheckedLink(row, token, None, problem)
    valid, user = await _validate(provider, token)
    return CheckedLink(row, token, user, "" if valid else "token failed to validate")


async def _refreshed(
    ctx: Context, provider: ExternalProvider, row: ExternalLink, refresh: Secret
) -> tuple[ExternalLink, str]:
    """Return the link as stored now, and the reason why its token is invalid.

    Some providers accept each refresh token once, so the slower of two concurrent refreshes is refused. It must not
    overwrite the faster one's result, and uses that instead.
    """
    try:
        granted = await renew(ctx, endpoint_of(ctx, provider), refresh)
    except ExchangeRefused as error:
        problem = f"token failed to refresh: {error.detail}"
        if not error.error:
            return row, problem
        # A refused refresh token stays refused: retrying would only get the server blocked.
        updated = replace(row, refresh_token="", updated_at=ctx.clock.now())
    else:
        problem, updated = "", replace(_row(ctx, provider, row.user_id, granted), created_at=row.created_at)
    if await ctx.db.run(store.renew_link, updated, row.refresh_token):
        return (row if problem else updated), problem
    newer = await ctx.db.read(store.get_link, provider.id, row.user_id)
    if newer is None:
        return row, "the account was unlinked"
    expired = newer.expires_at is not None and newer.expires_at <= ctx.clock.now()
    return newer, (problem or "token expired") if expired else ""


async def _validate(provider: ExternalProvider, token: Secret) -> tuple[bool, ExternalAuthUser | None]:
    """Return whether the token is valid, and its user if the provider names one. Without a validate URL it counts as
    valid.
    """
    if not provider.validate_url:
        return True, None
    try:
        reply = await fetch("GET", provider.validate_url, bearer=token)
    except NetError:
        return False, None
    if not reply.fine:
        return False, None
    return True, _parsed(reply, _github_user) if provider.kind == "github" else None


async def _installations(provider: ExternalProvider, token: Secret) -> list[ExternalAuthAppInstallation] | None:
    """Return the repositories' owners where the provider's application is installed; None if the provider does not
    say.
    """
    if not provider.app_installations_url:
        return None
    try:
        reply = await fetch("GET", provider.app_installations_url, bearer=token)
    except NetError:
        return None
    return _parsed(reply, _github_installations) if reply.fine else None


def _parsed(reply: OutgoingReply, read: Callable[[Mapping[str, Json]], _Result]) -> _Result | None:
    """Parse an untrusted reply. Return None for one that `read` does not understand."""
    try:
        return read(json.loads(reply.body))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None


_MAX_TEXT = 2048
"Characters of a provider's text (ours) that are shown."


def _text(value: Json) -> str:
    text = str(value or "")[:_MAX_TEXT]
    text.encode()  # raises UnicodeEncodeError for what no answer can contain
    return text


def _link(value: Json) -> str:
    return "" if split_url(str(value)) is None else str(value)


def _github_user(document: Mapping[str, Json]) -> ExternalAuthUser:
    return ExternalAuthUser(
        id=_number(document["id"]),
        login=_text(document["login"]),
        avatar_url=_link(document.get("avatar_url")),
        profile_url=_link(document.get("html_url")),
        name=_text(document.get("name")),
    )


def _github_installations(document: Mapping[str, Json]) -> list[ExternalAuthAppInstallation]:
    installations = document["installations"]
    if not isinstance(installations, list):
        raise TypeError("the installations are not a list")
    return [
        ExternalAuthAppInstallation(
            id=_number(item["id"]),
            account=_github_user(as_object(item["account"])),
            configure_url=_link(item.get("html_url")),
        )
        for item in installations
    ]


def _number(value: Json) -> int:
    number = int(str(value))
    return number if abs(number) < 2**63 else 0  # the API's JSON has no larger numbers


async def show(ctx: Context, user_id: UUID, ident: str) -> ExternalAuth:
    provider = find_provider(ctx, ident)
    row = await ctx.db.read(store.get_link, provider.id, user_id)
    checked = await check(ctx, provider, row) if row is not None else None
    installations = await _installations(provider, checked.token) if checked is not None and checked.valid else None
    return ExternalAuth(
        authenticated=checked is not None and checked.valid,
        device=provider.device_flow,
        display_name=provider.display_name,
        supports_revocation=provider.supports_revocation,
        user=checked.user if checked is not None else None,
        app_installable=installations is not None,
        installations=installations or [],
        app_install_url=provider.app_install_url,
    )


async def list_own_links(ctx: Context, user_id: UUID) -> ListUserExternalAuthResponse:
    """List all providers, and the user's links with their current state."""
    links = []
    for row in await ctx.db.read(store.list_links, user_id):
        provider = provider_for(ctx.config.external_auth_providers, ident=row.provider_id)
        if provider is None:
            continue
        checked = await check(ctx, provider, row)
        links.append(
            ExternalAuthLink(
                provider_id=row.provider_id,
                created_at=row.created_at,
                updated_at=checked.link.updated_at,
                has_refresh_token=bool(checked.link.refresh_token),
                expires=checked.link.expires_at or ZERO_TIME,
                authenticated=checked.valid,
                validate_error=checked.problem,
            )
        )
    return ListUserExternalAuthResponse(
        providers=[_provider_view(provider) for provider in ctx.config.external_auth_providers], links=links
    )


def _provider_view(provider: ExternalProvider) -> ExternalAuthLinkProvider:
    return ExternalAuthLinkProvider(
        id=provider.id,
        type=provider.kind,
        device=provider.device_flow,
        display_name=provider.display_name,
        display_icon=provider.display_icon,
        allow_refresh=not provider.no_refresh,
        allow_validate=bool(provider.validate_url),
        supports_revocation=provider.supports_revocation,
        code_challenge_methods_supported=["S256"] if provider.pkce else [],
    )


async def unlink(ctx: Context, user_id: UUID, ident: str) -> tuple[bool, str]:
    """Delete a link. Return whether the provider revoked the token, and the reason if not. Raises NotFound."""
    provider = find_provider(ctx, ident)
    row = await ctx.db.read(store.get_link, provider.id, user_id)
    if row is None:
        raise NotFound
    await ctx.db.run(store.delete_link, provider.id, user_id)
    if not provider.revoke_url:
        return False, ""
    token = ctx.services.sealer.open(row.access_token)
    form = {"token": token.reveal(), "client_id": provider.client_id, "client_secret": provider.client_secret}
    try:
        reply = await fetch("POST", provider.revoke_url, form=form)
    except NetError as error:
        return False, error.message
    return reply.fine, "" if reply.fine else f"the provider answered with status {reply.status}"


async def required_of(
    ctx: Context, user_id: UUID, requirements: Iterable[tuple[str, bool]]
) -> list[TemplateVersionExternalAuth]:
    """Return the providers that a template requires, each with whether the user is linked."""
    providers = []
    for ident, optional in requirements:
        provider = provider_for(ctx.config.external_auth_providers, ident=ident)
        if provider is None:
            raise NotFound(f'The template requires the external auth provider "{ident}", which is not configured.')
        row = await ctx.db.read(store.get_link, provider.id, user_id)
        providers.append(
            TemplateVersionExternalAuth(
                id=provider.id,
                type=provider.kind,
                display_name=provider.display_name,
                display_icon=provider.display_icon,
                authenticate_url=f"{ctx.access_url}/external-auth/{provider.id}",
                authenticated=row is not None and (await check(ctx, provider, row)).valid,
                optional=True if optional else UNSET,
            )
        )
    return providers


async def token_for(ctx: Context, provider: ExternalProvider, user_id: UUID) -> tuple[Secret, datetime | None] | None:
    """Return a valid token of the user and its expiry; None without a link or a valid token."""
    row = await ctx.db.read(store.get_link, provider.id, user_id)
    if row is None:
        return None
    checked = await check(ctx, provider, row)
    return (checked.token, checked.link.expires_at) if checked.valid else None
