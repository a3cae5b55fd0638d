"""First user, login, logout, passwords, one-time passcodes."""

from __future__ import annotations

from functools import partial

from quart import Blueprint, Response

from coder.api.base.errors import Response as Envelope
from coder.api.login.auth_methods import AuthMethod, AuthMethods, GithubAuthMethod, OIDCAuthMethod
from coder.api.people.passwords import (
    ChangePasswordWithOneTimePasscodeRequest,
    LoginWithPasswordRequest,
    LoginWithPasswordResponse,
    ValidateUserPasswordRequest,
    ValidateUserPasswordResponse,
)
from coder.api.people.user_requests import CreateFirstUserRequest, CreateFirstUserResponse
from coder.api.site.deployment import RequestOneTimePasscodeRequest
from coder.coderd.http.server.audit_rules import LOGIN, Audited
from coder.coderd.http.server.audited import about, do_afterwards
from coder.coderd.http.server.auth import caller, context, remote_ip, user_agent
from coder.coderd.http.server.json import message, no_content, read_body, reply
from coder.coderd.http.server.route import route
from coder.coderd.services.audit.audit_snapshots import user_with_email
from coder.coderd.services.login import passcodes, sessions
from coder.domain.access.passwords import explain_password
from coder.domain.access.policy import NIL
from coder.domain.access.rate_budgets import PASSWORDS
from coder.domain.access.route_scopes import ANY_KEY, PUBLIC
from coder.domain.access.session_cookies import session_cookie_line

blueprint = Blueprint("sessions", __name__, url_prefix="/api/v2/users")

COOKIE_AGE = 365 * 24 * 3600
"""Seconds a browser keeps the session cookie; the key behind it expires much earlier."""


@route(blueprint, "GET", "/first", scope=PUBLIC, answers=Envelope, refuses=(404,))
async def get_first_user() -> Response:
    if await sessions.has_first_user(context()):
        return message("The initial user has already been created!")
    return message("The initial user has not been created!", 404)


@route(
    blueprint,
    "POST",
    "/first",
    scope=PUBLIC,
    body=CreateFirstUserRequest,
    required=("email", "username", "password"),
    answers=CreateFirstUserResponse,
    status=201,
    refuses=(404, 409),
)
async def post_first_user() -> Response:
    """Create the owner of an empty site; return user id and default organization id."""
    body = await read_body(CreateFirstUserRequest)
    user_id, organization_id = await sessions.create_first_user(
        context(), body.email, body.username, body.name, body.password
    )
    return reply(CreateFirstUserResponse(user_id=user_id, organization_id=organization_id), 201)


@route(blueprint, "GET", "/authmethods", scope=PUBLIC, answers=AuthMethods)
async def get_auth_methods() -> Response:
    config = context().config
    return reply(
        AuthMethods(
            password=AuthMethod(enabled=not config.disable_password_auth),
            github=GithubAuthMethod(enabled=bool(config.oauth2_github_client_id), default_provider_configured=False),
            oidc=OIDCAuthMethod(
                enabled=bool(config.oidc_client_id),
                signInText=config.oidc_sign_in_text if config.oidc_client_id else "",
                iconUrl=config.oidc_icon_url if config.oidc_client_id else "",
            ),
            **({"terms_of_service_url": config.terms_of_service_url} if config.terms_of_service_url else {}),
        )
    )


@route(
    blueprint,
    "POST",
    "/login",
    scope=PUBLIC,
    budget=PASSWORDS,
    body=LoginWithPasswordRequest,
    required=("email", "password"),
    answers=LoginWithPasswordResponse,
    status=201,
    refuses=(401, 403),
    audit=LOGIN,
)
async def post_login() -> Response:
    body = await read_body(LoginWithPasswordRequest)
    token = await sessions.login(context(), body.email, body.password, remote_ip(), user_agent())
    response = reply(LoginWithPasswordResponse(session_token=token), 201)
    set_session_cookie(response, token)
    return response


@route(blueprint, "GET", "/login", scope=ANY_KEY, refuses=(404,))
async def get_login() -> Response:
    # Upstream's router reads a user called "login" here.
    from coder.api.base.refusals import NotFound

    raise NotFound


@route(blueprint, "POST", "/logout", scope=ANY_KEY, answers=Envelope, audit=Audited("api_key", "logout", "me"))
async def post_logout() -> Response:
    """Revoke this session and the keys applications were opened with."""
    await sessions.logout(context(), caller())
    response = message("Logged out!")
    response.headers.add("Set-Cookie", _cookie("", 0, "Lax"))
    return response


@route(
    blueprint,
    "POST",
    "/otp/request",
    scope=PUBLIC,
    budget=PASSWORDS,
    body=RequestOneTimePasscodeRequest,
    required=("email",),
    status=204,
    audit=Audited("user", "request_password_reset", "view"),
)
async def post_passcode_request() -> Response:
    """Create a passcode for a user who may reset a password; the response does not reveal whether the user exists."""
    body = await read_body(RequestOneTimePasscodeRequest)
    if "\0" not in body.email:
        await do_afterwards(body.email, partial(passcodes.request_passcode, context(), body.email))
    return no_content()


@route(
    blueprint,
    "POST",
    "/otp/change-password",
    scope=PUBLIC,
    budget=PASSWORDS,
    body=ChangePasswordWithOneTimePasscodeRequest,
    required=("email", "password", "one_time_passcode"),
    status=204,
    audit=Audited("user", "write", "view"),
)
async def post_passcode_change() -> Response:
    body = await read_body(ChangePasswordWithOneTimePasscodeRequest)
    await _declare_user(body.email)
    await sessions.change_with_passcode(context(), body.email, body.password, body.one_time_passcode)
    return no_content()


async def _declare_user(email: str) -> None:
    """Look up the user by email for the audit entry, without a session; an unknown address costs the same queries."""
    if "\0" not in email:
        await about(await user_with_email(context(), email) or NIL)


@route(
    blueprint,
    "POST",
    "/validate-password",
    scope=PUBLIC,
    budget=PASSWORDS,
    body=ValidateUserPasswordRequest,
    required=("password",),
    answers=ValidateUserPasswordResponse,
)
async def post_validate_password() -> Response:
    body = await read_body(ValidateUserPasswordRequest)
    why = explain_password(body.password)
    return reply(ValidateUserPasswordResponse(valid=not why, details=why))


def set_session_cookie(response: Response, token: str) -> None:
    """Set the cookie that signs a browser in."""
    same_site = "None" if context().config.samesite_auth_cookie == "none" else "Lax"
    response.headers.add("Set-Cookie", _cookie(token, COOKIE_AGE, same_site))


def _cookie(token: str, max_age: int, same_site: str) -> str:
    config = context().config
    secure = bool(token) and (config.secure_auth_cookie or context().access_url.startswith("https://"))
    return session_cookie_line(
        token, prefixed=config.host_prefix_cookie, secure=secure, same_site=same_site, max_age=max_age
    )
