"""First user, login, logout, passwords, one-time passcodes."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.deployment import RequestOneTimePasscodeRequest
from coder.api.oauth2 import GithubAuthMethod, OIDCAuthMethod
from coder.api.users import (
    AuthMethod,
    AuthMethods,
    ChangePasswordWithOneTimePasscodeRequest,
    CreateFirstUserRequest,
    CreateFirstUserResponse,
    LoginWithPasswordRequest,
    LoginWithPasswordResponse,
    ValidateUserPasswordRequest,
    ValidateUserPasswordResponse,
)
from coder.coderd.http.auth import authenticated, caller, context, remote_ip
from coder.coderd.http.json import message, no_content, read_body, reply
from coder.coderd.services import sessions
from coder.coderd.services.credentials import SESSION_COOKIE
from coder.coderd.services.errors import InvalidFields
from coder.coderd.services.users import is_email
from coder.domain.passwords import explain_password

blueprint = Blueprint("sessions", __name__, url_prefix="/api/v2/users")

COOKIE_AGE = 365 * 24 * 3600
"""Seconds a browser keeps the session cookie; the key behind it ends much earlier."""


@blueprint.get("/first")
async def get_first_user() -> Response:
    if await sessions.has_first_user(context()):
        return message("The initial user has already been created!")
    return message("The initial user has not been created!", 404)


@blueprint.post("/first")
async def post_first_user() -> Response:
    body = await read_body(CreateFirstUserRequest, ("email", "username", "password"))
    user_id, organization_id = await sessions.create_first_user(
        context(), body.email, body.username, body.name, body.password
    )
    return reply(CreateFirstUserResponse(user_id=user_id, organization_id=organization_id), 201)


@blueprint.get("/authmethods")
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


@blueprint.post("/login")
async def post_login() -> Response:
    body = await read_body(LoginWithPasswordRequest, ("email", "password"))
    _check_email(body.email)
    token = await sessions.login(context(), body.email, body.password, remote_ip())
    response = reply(LoginWithPasswordResponse(session_token=token), 201)
    set_session_cookie(response, token)
    return response


@blueprint.get("/login")
@authenticated
async def get_login() -> Response:
    # Upstream's router sees a user called "login" here.
    from coder.coderd.services.errors import NotFound

    raise NotFound


@blueprint.post("/logout")
@authenticated
async def post_logout() -> Response:
    await sessions.logout(context(), caller())
    response = message("Logged out!")
    response.headers.add("Set-Cookie", f"{SESSION_COOKIE}=; Path=/; Max-Age=0; SameSite=Lax")
    return response


@blueprint.post("/otp/request")
async def post_passcode_request() -> Response:
    body = await read_body(RequestOneTimePasscodeRequest, ("email",))
    _check_email(body.email)
    await sessions.request_passcode(context(), body.email)
    return no_content()


@blueprint.post("/otp/change-password")
async def post_passcode_change() -> Response:
    body = await read_body(ChangePasswordWithOneTimePasscodeRequest, ("email", "password", "one_time_passcode"))
    _check_email(body.email)
    await sessions.change_with_passcode(context(), body.email, body.password, body.one_time_passcode)
    return no_content()


@blueprint.post("/validate-password")
async def post_validate_password() -> Response:
    body = await read_body(ValidateUserPasswordRequest, ("password",))
    why = explain_password(body.password)
    return reply(ValidateUserPasswordResponse(valid=not why, details=why))


def set_session_cookie(response: Response, token: str) -> None:
    """The cookie a browser is logged in by."""
    config = context().config
    secure = "; Secure" if config.secure_auth_cookie or context().access_url.startswith("https://") else ""
    same_site = "None" if config.samesite_auth_cookie == "none" else "Lax"
    response.headers.add(
        "Set-Cookie",
        f"{SESSION_COOKIE}={token}; Path=/; Max-Age={COOKIE_AGE}; HttpOnly{secure}; SameSite={same_site}",
    )


def _check_email(email: str) -> None:
    if not is_email(email):
        raise InvalidFields(("email", f'Validation failed for tag "email" with value: "{email}"'))
