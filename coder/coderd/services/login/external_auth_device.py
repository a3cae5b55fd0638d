"""Link an account by the device flow (RFC 8628)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coder.api.base.refusals import BadGateway, Invalid
from coder.api.login.external_auth import ExternalAuthDevice
from coder.coderd.services.access.application_limits import refuse_applications
from coder.coderd.services.foundation.outgoing_requests import fetch
from coder.coderd.services.login.external_auth import find_provider, store_link
from coder.coderd.services.login.oauth_exchange import ExchangeRefused, parse_device_reply, parse_token_reply
from coder.net.errors import NetError

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.domain.access.policy import Subject


_DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_NO_DEVICE = "Git auth provider does not support device flow."
_PENDING = frozenset({"authorization_pending", "slow_down"})


async def begin_device(ctx: Context, ident: str) -> ExternalAuthDevice:
    """Start the device flow. Raises Invalid, BadGateway."""
    provider = find_provider(ctx, ident)
    if not provider.device_flow:
        raise Invalid(_NO_DEVICE)
    form = {"client_id": provider.client_id, "scope": " ".join(provider.scopes)}
    try:
        return parse_device_reply(await fetch("POST", provider.device_code_url, form=form))
    except (NetError, ValueError, KeyError, TypeError) as error:
        raise BadGateway("The provider sent no device code.", str(error)) from error


async def finish_device(ctx: Context, subject: Subject, ident: str, device_code: str) -> None:
    """Link the account after the user has agreed. Raises Invalid before that, with the provider's error code as
    detail. Raises Forbidden for applications.
    """
    provider = find_provider(ctx, ident)
    await refuse_applications(ctx, subject, "external_auth_link")
    if not provider.device_flow:
        raise Invalid(_NO_DEVICE)
    form = {
        "client_id": provider.client_id,
        "client_secret": provider.client_secret,
        "device_code": device_code,
        "grant_type": _DEVICE_GRANT,
    }
    try:
        granted = parse_token_reply(ctx, await fetch("POST", provider.token_url, form=form))
    except ExchangeRefused as error:
        code = error.error or "the provider cannot be reached"
        raise Invalid("Failed to exchange device code.", code if code in _PENDING else error.detail) from error
    except NetError as error:
        raise BadGateway("The provider cannot be reached.", error.message) from error
    await store_link(ctx, provider, subject.user_id, granted)
