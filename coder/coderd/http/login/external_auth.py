"""External authentication: links of the caller to providers, the browser's way there and back, the device flow."""

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
    """All providers, and the user's links to them with their state now."""
    return reply(await external_auth.list_mine(context(), _me("read_personal")))


@route(blueprint, "GET", f"{_API}/<provider>", scope="user:read_personal", answers=ExternalAuth)
async def get_one(provider: str) -> Response:
    return reply(await external_auth.show(context(), _me("read_personal"), provider))


@route(
    blueprint,
    "DELETE",
    f"{_API}/<provider>",
    scope="user:update_personal",
    answers=DeleteExternalAuthByIDResponse,
    audit=Audited("user", "write", "caller"),
)
async def delete_one(provider: str) -> Response:
    """(was the token revoked at the provider, why not); the link is gone either way."""
    revoked, problem = await external_auth.unlink(context(), _me("update_personal"), provider)
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
    _me("read_personal")
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
    """Links once the person has agreed."""
    user_id = _me("update_personal")
    body = await read_body(ExternalAuthDeviceExchange)
    await external_auth_device.finish_device(context(), user_id, provider, body.device_code)
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
async def callback(provider: str) -> Response:
    """To the provider, or back from it with a code."""
    ctx = context()
    who = await optional_caller()
    if who is None:
        there = request.path + (f"?{request.query_string.decode('latin-1')}" if request.query_string else "")
        return moved("/login?" + urlencode({"message": SIGNED_OUT, "redirect": there}), 303)
    try:
        found = external_auth.find_provider(ctx, provider)
    except NotFound:
        return await page(f"external-auth/{provider}")  # the page says that it does not exist
    if found.device_flow:
        return await page(f"external-auth/{provider}")  # the dashboard shows the code to type there
    require(who.subject, "update_personal", user_resource(who.user.id))
    check_provider_error("oidc")
    endpoint = external_auth.endpoint_of(ctx, found)
    code = request.args.get("code", "")
    if not code:
        return to_endpoint(endpoint, new_state(_purpose(found)))
    check_state(_purpose(found))
    await external_auth.link(ctx, found, who.user.id, code, verifier_of(endpoint))
    wanted = request.cookies.get(REDIRECT_COOKIE, "")
    response = moved(local_path(wanted) if wanted not in {"", "/"} else f"/external-auth/{found.id}")
    forget(response, STATE_COOKIE, REDIRECT_COOKIE, VERIFIER_COOKIE)
    return response


def _purpose(provider: ExternalProvider) -> str:
    return f"external:{provider.id}"


def _me(action: str) -> UUID:
    """The caller, whose key must allow that with what is personal."""
    who = caller()
    require(who.subject, action, user_resource(who.user.id))
    return who.user.id
