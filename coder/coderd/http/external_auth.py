"""External authentication: links of the caller to providers, the browser's way there and back, the device flow."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from msgspec import UNSET
from quart import Blueprint, Response, request

from coder.api.external_auth import DeleteExternalAuthByIDResponse, ExternalAuthDeviceExchange
from coder.coderd.http.auth import authenticated, caller, context, optional_caller
from coder.coderd.http.json import no_content, read_body, reply
from coder.coderd.http.provider_logins import (
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
from coder.coderd.http.site import page
from coder.coderd.services import external_auth
from coder.coderd.services.authorization import require
from coder.coderd.services.credentials import SIGNED_OUT
from coder.coderd.services.errors import NotFound
from coder.coderd.services.users import user_resource

if TYPE_CHECKING:
    from uuid import UUID

    from coder.domain.external_providers import Provider

blueprint = Blueprint("external_auth", __name__)

_API = "/api/v2/external-auth"


@blueprint.get(_API)
@authenticated
async def get_all() -> Response:
    return reply(await external_auth.list_mine(context(), _me("read_personal")))


@blueprint.get(f"{_API}/<provider>")
@authenticated
async def get_one(provider: str) -> Response:
    return reply(await external_auth.show(context(), _me("read_personal"), provider))


@blueprint.delete(f"{_API}/<provider>")
@authenticated
async def delete_one(provider: str) -> Response:
    revoked, problem = await external_auth.unlink(context(), _me("update_personal"), provider)
    return reply(DeleteExternalAuthByIDResponse(token_revoked=revoked, token_revocation_error=problem or UNSET))


@blueprint.get(f"{_API}/<provider>/device")
@authenticated
async def get_device(provider: str) -> Response:
    _me("read_personal")
    return reply(await external_auth.begin_device(context(), provider))


@blueprint.post(f"{_API}/<provider>/device")
@authenticated
async def post_device(provider: str) -> Response:
    user_id = _me("update_personal")
    body = await read_body(ExternalAuthDeviceExchange, ("device_code",))
    await external_auth.finish_device(context(), user_id, provider, body.device_code)
    return no_content()


@blueprint.get("/external-auth/<provider>/callback")
@blueprint.get("/gitauth/<provider>/callback")
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


def _purpose(provider: Provider) -> str:
    return f"external:{provider.id}"


def _me(action: str) -> UUID:
    """The caller, whose key must allow that with what is personal."""
    who = caller()
    require(who.subject, action, user_resource(who.user.id))
    return who.user.id
