"""External authentication: links of the caller to providers, the browser's way there and back, the device flow."""

from __future__ import annotations

import secrets
from urllib.parse import urlencode

from msgspec import UNSET
from quart import Blueprint, Response, request

from coder.api.external_auth import DeleteExternalAuthByIDResponse, ExternalAuthDeviceExchange
from coder.coderd.http.auth import authenticated, caller, context, optional_caller
from coder.coderd.http.json import no_content, read_body, reply
from coder.coderd.http.provider_logins import (
    REDIRECT_COOKIE,
    check_provider_error,
    check_state,
    cookie,
    local_path,
    moved,
    to_provider,
)
from coder.coderd.http.site import page
from coder.coderd.services import external_auth
from coder.coderd.services.authentication import SIGNED_OUT
from coder.coderd.services.errors import NotFound
from coder.coderd.services.oauth_exchange import authorize_url

blueprint = Blueprint("external_auth", __name__)

VERIFIER_COOKIE = "oauth_pkce_verifier"
_API = "/api/v2/external-auth"


@blueprint.get(_API)
@authenticated
async def get_all() -> Response:
    return reply(await external_auth.list_mine(context(), caller().user.id))


@blueprint.get(f"{_API}/<provider>")
@authenticated
async def get_one(provider: str) -> Response:
    return reply(await external_auth.show(context(), caller().user.id, provider))


@blueprint.delete(f"{_API}/<provider>")
@authenticated
async def delete_one(provider: str) -> Response:
    revoked, problem = await external_auth.unlink(context(), caller().user.id, provider)
    return reply(DeleteExternalAuthByIDResponse(token_revoked=revoked, token_revocation_error=problem or UNSET))


@blueprint.get(f"{_API}/<provider>/device")
@authenticated
async def get_device(provider: str) -> Response:
    return reply(await external_auth.begin_device(context(), provider))


@blueprint.post(f"{_API}/<provider>/device")
@authenticated
async def post_device(provider: str) -> Response:
    body = await read_body(ExternalAuthDeviceExchange, ("device_code",))
    await external_auth.finish_device(context(), caller().user.id, provider, body.device_code)
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
    check_provider_error("oidc")
    code = request.args.get("code", "")
    if not code:
        state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48) if found.pkce else ""
        response = to_provider(authorize_url(external_auth.endpoint_of(ctx, found), state, verifier), state)
        if verifier:
            response.headers.add("Set-Cookie", cookie(VERIFIER_COOKIE, verifier))
        return response
    check_state()
    await external_auth.link(ctx, found, who.user.id, code, request.cookies.get(VERIFIER_COOKIE, ""))
    wanted = request.cookies.get(REDIRECT_COOKIE, "")
    return moved(local_path(wanted) if wanted not in {"", "/"} else f"/external-auth/{found.id}")
