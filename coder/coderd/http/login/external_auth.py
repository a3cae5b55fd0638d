"""External authentication: the caller's links to providers, the redirect there and back, the device flow."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from msgspec import UNSET
from quart import Blueprint, Response, request

from coder.api.base.refusals import NotFound
from coder.api.login.external_auth import (
    DeleteExternalAuthByIDResponse,
    ExternalAuth,
    ExternalAuthDevice,
    ExternalAuthDeviceExchange,
    ListUserExternalAuthResponse,
)
from coder.coderd.http.login.provider_logins import (
    REDIRECT_COOKIE,
    STATE_COOKIE,
    VERIFIER_COOKIE,
    check_provider_error,
    check_state,
    forget,
    local_path,
    moved,
    new_state,
    to_endpoint,
    verifier_of,
)
from coder.coderd.http.login.refusal_pages import refused_as_page
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.auth import caller, context, optional_caller
from coder.coderd.http.server.declarations import BYTES, HTML, NOTHING
from coder.coderd.http.server.json import no_content, read_body, reply
from coder.coderd.http.server.route import route
from coder.coderd.http.site.dashboard_files import page
from coder.coderd.services.access.authorization import require
from coder.coderd.services.login import external_auth, external_auth_device
from coder.coderd.services.people.users import user_resource
from coder.domain.access.credentials import SIGNED_OUT
from coder.domain.access.rate_budgets import PUBLIC_ROUTE

if TYPE_CHECKING:
    from uuid import UUID

    from coder.domain.login.external_providers import ExternalProvider

blueprint = Blueprint("external_auth", __name__)

_API = "/api/v2/external-auth"


@route(blueprint, "GET", _API, scope="user:read_personal", answers=ListUserExternalAuthResponse)
async def get_all() -> Response:
    """Return all providers, and the user's links to them with their current state."""
    return reply(await external_auth.list_own_links(context(), _permitted_caller("read_personal")))


@route(blueprint, "GET", f"{_API}/<provider>", scope="user:read_personal", answers=ExternalAuth)
async def get_one(provider: str) -> Response:
    return reply(await external_auth.show(context(), _permitted_caller("read_personal"), provider))


@route(
    blueprint,
    "DELETE",
    f"{_API}/<provider>",
    scope="user:update_personal",
    answers=DeleteExternalAuthByIDResponse,
    audit=Audited("user", "write", "caller"),
)
async def delete_one(provider: str) -> Response:
    """Delete a link; return whether the token was revoked at the provider, and why not. The link is deleted either
    way."""
    revoked, problem = await external_auth.unlink(context(), _permitted_caller("update_personal"), provider)
    return reply(DeleteExternalAuthByIDResponse(token_revoked=revoked, token_revocation_error=problem or UNSET))


@route(
    blueprint,
    "GET",
    f"{_API}/<provider>/device",
    scope="user:read_personal",
    answers=ExternalAuthDevice,
    refuses=(502,),
)
async def get_device(provider: str) -> Response:
    _permitted_caller("read_personal")
    return reply(await external_auth_device.begin_device(context(), provider))


@route(
    blueprint,
    "POST",
    f"{_API}/<provider>/device",
    scope="user:update_personal",
    body=ExternalAuthDeviceExchange,
    required=("device_code",),
    status=204,
    audit=Audited("user", "write", "caller"),
    refuses=(502,),
)
async def post_device(provider: str) -> Response:
    """Create the link once the user has consented."""
    _permitted_caller("update_personal")
    body = await read_body(ExternalAuthDeviceExchange)
    await external_auth_device.finish_device(context(), caller().subject, provider, body.device_code)
    return no_content()


@route(
    blueprint,
    "GET",
    ("/external-auth/<provider>/callback", "/gitauth/<provider>/callback"),
    scope="user:update_personal",
    asks_itself=True,
    budget=PUBLIC_ROUTE,
    query={"code": str, "error": str, "error_description": str, "redirect": str, "state": str},
    answers=(HTML, BYTES),
    others={303: BYTES, 304: NOTHING, 307: BYTES},
    refuses=(500,),
)
@refused_as_page
async def callback(provider: str) -> Response:
    """Redirect to the provider, or handle its redirect back with a code."""
    ctx = context()
    requester = await optional_caller()
    if requester is None:
        target = request.path + (f"?{request.query_string.decode('latin-1')}" if request.query_string else "")
        return moved("/login?" + urlencode({"message": SIGNED_OUT, "redirect": target}), 303)
    try:
        result = external_auth.find_provider(ctx, provider)
    except NotFound:
        return await page(f"external-auth/{provider}")  # the page reports that the provider does not exist
    if result.device_flow:
        return await page(f"external-auth/{provider}")  # the dashboard shows the code to enter there
    require(requester.subject, "update_personal", user_resource(requester.user.id))
    check_provider_error("oidc")
    endpoint = external_auth.endpoint_of(ctx, result)
    code = request.args.get("code", "")
    if not code:
        return to_endpoint(endpoint, new_state(_purpose(result)))
    check_state(_purpose(result))
    await external_auth.link(ctx, requester.subject, result, code, verifier_of(endpoint))
    redirect_path = request.cookies.get(REDIRECT_COOKIE, "")
    response = moved(local_path(redirect_path) if redirect_path not in {"", "/"} else f"/external-auth/{result.id}")
    forget(response, STATE_COOKIE, REDIRECT_COOKIE, VERIFIER_COOKIE)
    return response


def _purpose(provider: ExternalProvider) -> str:
    return f"external:{provider.id}"


def _permitted_caller(action: str) -> UUID:
    """Return the caller, whose key must allow the action on personal objects."""
    requester = caller()
    require(requester.subject, action, user_resource(requester.user.id))
    return requester.user.id
