"""Logins through identity providers: the redirect there and back, and the conversion from a password to a provider."""

from __future__ import annotations

import hmac
import secrets
from datetime import datetime
from email.utils import format_datetime
from html import escape
from typing import get_args
from urllib.parse import quote, urlsplit

from quart import Blueprint, Response, request

from coder.api.base.enums import LoginType
from coder.api.base.refusals import Invalid, Unauthenticated
from coder.api.login.external_auth import ExternalAuthDevice
from coder.api.login.oauth2 import OAuth2DeviceFlowCallbackResponse, OAuthConversionResponse, OIDCClaimsResponse
from coder.api.people.passwords import ConvertLoginRequest
from coder.appproxy.http.errors import STATUS
from coder.coderd.http.login.refusal_pages import refused_as_page
from coder.coderd.http.login.sessions import set_session_cookie
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.audited import about
from coder.coderd.http.server.auth import caller, context, remote_ip, subject, user_agent
from coder.coderd.http.server.declarations import BYTES
from coder.coderd.http.server.json import read_body, reply
from coder.coderd.http.server.route import route
from coder.coderd.http.site import pages
from coder.coderd.services.access.authorization import require
from coder.coderd.services.login import github_login, login_conversion, oidc, provider_login
from coder.coderd.services.login.oauth_exchange import ProviderEndpoint, authorize_url, exchange
from coder.coderd.services.login.provider_accounts import Attempt, LoginRefused
from coder.coderd.services.people import users
from coder.coderd.services.people.users import user_resource
from coder.domain.access.rate_budgets import PASSWORDS
from coder.domain.access.route_scopes import PUBLIC
from coder.domain.login.identity import ClaimFields, ClaimProblem, person_of

blueprint = Blueprint("provider_logins", __name__, url_prefix="/api/v2/users")

STATE_COOKIE = "oauth_state"
REDIRECT_COOKIE = "oauth_redirect"
VERIFIER_COOKIE = "oauth_pkce_verifier"
CONVERSION_COOKIE = "coder_oauth_convert_jwt"
_NOT_SET_UP = "The oauth2 method requested is not configured!"
_TYPES: dict[str, LoginType] = {"github": "github", "oidc": "oidc"}


@route(
    blueprint,
    "GET",
    "/oidc/callback",
    scope=PUBLIC,
    query={"code": str, "error": str, "error_description": str, "oidc_merge_state": str, "redirect": str, "state": str},
    answers=BYTES,
    status=307,
    refuses=(400, 401, 403, 404, 500),
)
@refused_as_page
async def oidc_callback() -> Response:
    ctx = context()
    if not oidc.enabled(ctx):
        raise Invalid(_NOT_SET_UP)
    provider = ctx.services.api.oidc
    check_provider_error("oidc")
    endpoint = await provider.endpoint()
    code = request.args.get("code", "")
    if not code:
        state = await _begin_state("oidc")
        return to_endpoint(endpoint, state, oidc.nonce_of(state) if endpoint.nonce else "")
    state = check_state("oidc")
    convert = await _conversion(state, "oidc")
    granted = await exchange(ctx, endpoint, code, verifier_of(endpoint))
    claims = await provider.verified_claims(granted, oidc.nonce_of(state) if endpoint.nonce else "")
    config = ctx.config
    try:
        person = person_of(
            claims.merged,
            ClaimFields(config.oidc_email_field, config.oidc_username_field, config.oidc_name_field),
            domains=config.oidc_email_domain,
            ignore_verified=config.oidc_ignore_email_verified,
        )
    except ClaimProblem as problem:
        return pages.problem(problem.status, problem.title, [str(problem)])
    return await enter(
        Attempt(
            "oidc",
            person,
            granted,
            {"id_token_claims": claims.id_token, "user_info_claims": claims.user_info, "merged_claims": claims.merged},
            allow_signups=config.oidc_allow_signups,
            signups_disabled=config.oidc_signups_disabled_text,
            ip=remote_ip(),
            user_agent=user_agent(),
            convert=convert,
        )
    )


@route(
    blueprint,
    "GET",
    "/oauth2/github/callback",
    scope=PUBLIC,
    query={"code": str, "error": str, "error_description": str, "oidc_merge_state": str, "redirect": str, "state": str},
    answers=OAuth2DeviceFlowCallbackResponse,
    others={307: BYTES},
    refuses=(400, 401, 403, 404, 500, 502),
)
@refused_as_page
async def github_callback() -> Response:
    ctx = context()
    if not github_login.enabled(ctx):
        raise Invalid(_NOT_SET_UP)
    check_provider_error("oauth2")
    by_device = ctx.config.oauth2_github_device_flow
    code = request.args.get("code", "")
    if not code:
        state = await _begin_state("github")
        if by_device:
            # The dashboard shows the code to enter at GitHub, then returns here with the device's code.
            return to_provider(f"/login/device?state={quote(state)}", state)
        return to_endpoint(github_login.endpoint(ctx), state)
    convert = await _conversion(check_state("github"), "github")
    if by_device:
        granted = await github_login.exchange_device(ctx, code)
    else:
        granted = await exchange(ctx, github_login.endpoint(ctx), code)
    person = await github_login.person(ctx, granted)
    response = await enter(
        Attempt(
            "github",
            person,
            granted,
            {},
            allow_signups=ctx.config.oauth2_github_allow_signups,
            ip=remote_ip(),
            user_agent=user_agent(),
            convert=convert,
        )
    )
    if not by_device or response.status_code != 307:
        return response
    answer = reply(OAuth2DeviceFlowCallbackResponse(redirect_url=response.headers["Location"]))
    for line in response.headers.getlist("Set-Cookie"):
        answer.headers.add("Set-Cookie", line)
    return answer


@route(blueprint, "GET", "/oauth2/github/device", scope=PUBLIC, answers=ExternalAuthDevice, refuses=(400, 502))
async def github_device() -> Response:
    return reply(await github_login.begin_device(context()))


async def _begin_state(login_type: str) -> str:
    """Return a new state, or that of the conversion this browser has begun. Raises Unauthenticated for any other."""
    state = request.args.get("oidc_merge_state", "")
    if not state:
        return new_state(login_type)
    # A state chosen by an attacker would let the attacker finish this login, or make it end in the attacker's account.
    await login_conversion.begun_conversion(context(), request.cookies.get(CONVERSION_COOKIE, ""), state, login_type)
    return state


async def _conversion(state: str, login_type: str) -> login_conversion.Conversion | None:
    return await login_conversion.conversion_of(
        context(), request.cookies.get(CONVERSION_COOKIE, ""), state, login_type
    )


async def enter(attempt: Attempt) -> Response:
    """Set a session cookie and redirect to the requested page, or show the reason for refusal."""
    try:
        token = await provider_login.sign_in(context(), attempt)
    except LoginRefused as error:
        return pages.problem(STATUS[error.kind], error.message, [error.detail])
    response = moved(local_path(request.cookies.get(REDIRECT_COOKIE, "")))
    set_session_cookie(response, token)
    forget(
        response,
        STATE_COOKIE,
        REDIRECT_COOKIE,
        VERIFIER_COOKIE,
        *([CONVERSION_COOKIE] if attempt.convert is not None else []),
    )
    return response


def check_provider_error(name: str) -> None:
    """Raise Invalid with the provider's error."""
    error = request.args.get("error", "")
    if error:
        raise Invalid(f"Encountered error in {name} process: {error}", request.args.get("error_description", ""))


def to_endpoint(endpoint: ProviderEndpoint, state: str, nonce: str = "") -> Response:
    """Redirect as `to_provider` does, starting a new conversation with an authorization server, by PKCE where
    supported."""
    verifier = endpoint.new_verifier()
    response = to_provider(authorize_url(endpoint, state, verifier, nonce), state)
    if verifier:
        response.headers.add("Set-Cookie", cookie(VERIFIER_COOKIE, verifier))
    return response


def verifier_of(endpoint: ProviderEndpoint) -> str:
    """Return the PKCE verifier of this browser's conversation. Raises Unauthenticated when it is required and
    missing."""
    verifier = request.cookies.get(VERIFIER_COOKIE, "")
    if endpoint.pkce and not verifier:
        raise Unauthenticated(f'Cookie "{VERIFIER_COOKIE}" must be provided.')
    return verifier if endpoint.pkce else ""


def to_provider(url: str, state: str) -> Response:
    """Redirect to the provider, with cookies for the comparison and the final page."""
    response = moved(url)
    for name, value in ((STATE_COOKIE, state), (REDIRECT_COOKIE, local_path(request.args.get("redirect", "")))):
        response.headers.add("Set-Cookie", cookie(name, value))
    return response


def cookie(name: str, value: str) -> str:
    """Return a cookie of the login flow; it lives as long as the browser's session."""
    return f"{name}={value}; Path=/; HttpOnly{_secure()}; SameSite=Lax"


def forget(response: Response, *names: str) -> None:
    """Delete the cookies of the login flow."""
    for name in names:
        response.headers.add("Set-Cookie", f"{name}=; Path=/; Max-Age=0; HttpOnly{_secure()}; SameSite=Lax")


def new_state(purpose: str) -> str:
    """Return a new state; `purpose` restricts its use, as one cookie serves the flows of all providers."""
    return f"{purpose}.{secrets.token_urlsafe(32)}"


def check_state(purpose: str) -> str:
    """Return the state, equal in query and cookie: only a flow that began in this browser, for that purpose, may end in
    it.

    Raises Invalid, Unauthenticated.
    """
    state = request.args.get("state", "")
    if not state:
        raise Invalid("State must be provided.")
    cookie = request.cookies.get(STATE_COOKIE, "")
    if not cookie:
        raise Unauthenticated(f'Cookie "{STATE_COOKIE}" must be provided.')
    if not hmac.compare_digest(cookie.encode(), state.encode()):
        raise Unauthenticated("State mismatched.")
    if state.rpartition(".")[0].removeprefix(login_conversion.CONVERT) != purpose:
        raise Unauthenticated("State mismatched.", "This browser has started another login since. Start again.")
    return state


def local_path(text: str) -> str:
    """Return a path on this site for any requested address: a login must not redirect users elsewhere."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return "/"
    path = "/" + parts.path.lstrip("/\\")
    whole = path + (f"?{parts.query}" if parts.query else "")
    return whole if whole.isascii() and not set(whole) & set('\r\n\t ;"\\,') else "/"


def moved(url: str, status: int = 307) -> Response:
    """Return a redirect with the body that old browsers need."""
    response = Response(f'<a href="{escape(url)}">See there</a>.\n\n', status)
    response.headers["Content-Type"] = "text/html; charset=utf-8"
    response.headers["Location"] = url
    return response


def _secure() -> str:
    ctx = context()
    return "; Secure" if ctx.config.secure_auth_cookie or ctx.access_url.startswith("https://") else ""


@route(blueprint, "GET", "/oidc-claims", scope="user:read_personal", answers=OIDCClaimsResponse)
async def get_claims() -> Response:
    """Return the OpenID provider's claims of the user from the last login; empty before the first."""
    user = caller().user
    require(subject(), "read_personal", user_resource(user.id))
    if user.login_type != "oidc":
        raise Invalid("User is not an OIDC user.")
    return reply(OIDCClaimsResponse(claims=dict(await provider_login.claims_of(context(), user.id))))


@route(
    blueprint,
    "POST",
    "/<user>/convert-login",
    scope="user:update_personal",
    budget=PASSWORDS,
    body=ConvertLoginRequest,
    required=("to_type", "password"),
    answers=OAuthConversionResponse,
    status=201,
    audit=Audited("convert_login", "create", "view"),
)
async def post_convert_login(user: str) -> Response:
    """Return (state, cookie, expiry): proof for the provider's callback that the user started the conversion."""
    row = await users.resolve_user(context(), subject(), user)
    require(subject(), "update_personal", user_resource(row.id))
    body = await read_body(ConvertLoginRequest)
    to_type = _TYPES.get(body.to_type)
    if to_type is None:
        known = body.to_type in get_args(LoginType) and body.to_type
        raise Invalid(f'{"Cannot convert to" if known else "Unknown"} login type "{body.to_type}".')
    await about(row.id, name=body.to_type)
    state, cookie, expires = await login_conversion.begin_conversion(context(), row, body.to_type, body.password)
    response = reply(
        OAuthConversionResponse(state_string=state, expires_at=expires, to_type=to_type, user_id=row.id),
        201,
    )
    response.headers.add(
        "Set-Cookie",
        f"{CONVERSION_COOKIE}={cookie}; Path=/; Expires={_http_date(expires)}; HttpOnly{_secure()}; SameSite=Lax",
    )
    return response


def _http_date(value: datetime) -> str:
    return format_datetime(value, usegmt=True)
