"""The OAuth2 provider for its clients: metadata, consent, tokens.

Obeys RFC 8414, RFC 9728, RFC 6749 and RFC 7009. Applications are in oauth2_apps.py, clients that register themselves in
oauth2_registration.py.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from msgspec import UNSET
from quart import Blueprint, Response, request

from coder.api.login.oauth2 import (
    OAuth2AuthorizationServerMetadata,
    OAuth2Error,
    OAuth2ProtectedResourceMetadata,
    OAuth2TokenResponse,
)
from coder.coderd.http.login.oauth2_refusals import experimental, refusing
from coder.coderd.http.login.oauth2_requests import MALFORMED, by_client, named_client, read_form
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.audited import about
from coder.coderd.http.server.auth import (
    CSRF_COOKIE,
    check_csrf,
    check_origin,
    context,
    credentials,
    optional_caller,
    remote_ip,
    subject,
)
from coder.coderd.http.server.declarations import BYTES, FORM, HTML
from coder.coderd.http.server.json import no_content, reply
from coder.coderd.http.server.route import route
from coder.coderd.http.site import pages
from coder.coderd.services.access.authentication import Caller, subject_of
from coder.coderd.services.login import (
    oauth2_client_authentication,
    oauth2_consent,
    oauth2_grants,
    oauth2_revocation,
    oauth2_settings,
)
from coder.coderd.services.login.oauth2_apps import OAuth2AppRow
from coder.coderd.services.login.oauth2_client_authentication import GrantError
from coder.coderd.services.login.oauth2_grants import Tokens
from coder.domain.access import scopes
from coder.domain.access.credentials import SIGNED_OUT
from coder.domain.access.rate_budgets import PUBLIC_ROUTE
from coder.domain.access.route_scopes import APPLICATION, OPTIONAL, PUBLIC

blueprint = Blueprint("oauth2", __name__)

_WRONG = {400: OAuth2Error, 401: OAuth2Error}
"""Refusals of RFC 6749 section 5.2."""
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
_CREDENTIAL_FIELDS = {"authorization_code": "code", "refresh_token": "refresh_token"}
"""Name of the field with the exchanged credential, by grant type."""


# ---- metadata (RFC 8414, RFC 9728)


@route(
    blueprint,
    "GET",
    ("/.well-known/oauth-authorization-server", "/.well-known/oauth-authorization-server/<path:_rest>"),
    scope=PUBLIC,
    budget=PUBLIC_ROUTE,
    answers=OAuth2AuthorizationServerMetadata,
    refuses=(403,),
)
@experimental
async def server_metadata(_rest: str = "") -> Response:
    """Return the metadata, with a registration endpoint (RFC 7591) once an administrator has enabled it."""
    base = context().access_url
    registration: Any = UNSET
    if await oauth2_settings.dynamic_registration(context()):
        registration = f"{base}/oauth2/register"
    return reply(
        OAuth2AuthorizationServerMetadata(
            issuer=base,
            authorization_endpoint=f"{base}/oauth2/authorize",
            token_endpoint=f"{base}/oauth2/tokens",
            revocation_endpoint=f"{base}/oauth2/revoke",
            registration_endpoint=registration,
            response_types_supported=["code"],
            grant_types_supported=["authorization_code", "refresh_token"],
            code_challenge_methods_supported=["S256"],
            scopes_supported=list(scopes.external()),
            token_endpoint_auth_methods_supported=["client_secret_basic", "client_secret_post"],
        )
    )


@route(
    blueprint,
    "GET",
    ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/<path:_rest>"),
    scope=PUBLIC,
    budget=PUBLIC_ROUTE,
    answers=OAuth2ProtectedResourceMetadata,
    refuses=(403,),
)
@experimental
async def resource_metadata(_rest: str = "") -> Response:
    base = context().access_url
    return reply(
        OAuth2ProtectedResourceMetadata(
            resource=base,
            authorization_servers=[base],
            scopes_supported=list(scopes.external()),
            bearer_methods_supported=["header", "query"],
        )
    )


# ---- consent


@route(
    blueprint,
    "GET",
    "/oauth2/authorize",
    scope=OPTIONAL,
    budget=PUBLIC_ROUTE,
    query={
        "client_id": str,
        "code_challenge": str,
        "code_challenge_method": str,
        "redirect_uri": str,
        "response_type": str,
        "scope": str,
        "state": str,
    },
    answers=HTML,
    others={303: BYTES, 400: (HTML, OAuth2Error), 401: OAuth2Error},
    refuses=(401, 403),
)
@experimental
@refusing
async def get_authorize() -> Response:
    """Show the consent page with our scopes among the requested ones; without any of ours it means full access, as with
    upstream."""
    caller = await optional_caller()
    if caller is None:
        return _to_login()
    app = await oauth2_client_authentication.find_app(context(), request.args.get("client_id", ""))
    problems = _problems(app)
    if problems:
        return pages.problem(400, "400 - Invalid Query Parameters", problems)
    if request.args["response_type"] != "code":
        return pages.problem(
            400,
            "400 - Unsupported Response Type",
            [f"response_type {request.args['response_type']!r}; only code is known"],
        )
    denied = {"error": "access_denied", "error_description": "The person did not let the application in"}
    return pages.consent(
        app=app.name,
        icon=app.icon,
        username=caller.user.username,
        scopes=oauth2_consent.requested_scopes(request.args.get("scope", "")),
        csrf=request.cookies.get(CSRF_COOKIE) or str(request.scope.get("coder_csrf", "")),
        cancel=_with_query(_redirect_uri(app), denied),
    )


@route(
    blueprint,
    "POST",
    "/oauth2/authorize",
    scope="oauth2_app_code_token:create",
    budget=PUBLIC_ROUTE,
    asks_itself=True,
    takes=FORM,
    query={
        "client_id": str,
        "code_challenge": str,
        "code_challenge_method": str,
        "redirect_uri": str,
        "response_type": str,
        "scope": str,
        "state": str,
    },
    status=302,
    others={303: BYTES, **_WRONG},
)
@experimental
@refusing
async def post_authorize() -> Response:
    """Record the user's consent: redirect with a code to the application."""
    caller = await optional_caller()
    if caller is None:
        return _to_login()
    await _check_form_csrf()
    app = await oauth2_client_authentication.find_app(context(), request.args.get("client_id", ""))
    problems = _problems(app)
    if problems:
        raise GrantError("invalid_request", f"Invalid query params: {', '.join(problems)}")
    if request.args["response_type"] != "code":
        raise GrantError("unsupported_response_type", "Only response_type=code is supported")
    redirect_uri = _redirect_uri(app)
    code = await oauth2_consent.issue_code(
        context(),
        _acting(caller),
        caller.key.id,
        app,
        redirect_uri=request.args.get("redirect_uri", ""),
        challenge=request.args.get("code_challenge", ""),
        scope=request.args.get("scope", ""),
    )
    response = Response(b"", 302)
    response.headers["Location"] = _with_query(redirect_uri, {"code": code})
    del response.headers["Content-Type"]
    return response


def _acting(caller: Caller) -> Any:
    return subject_of(context(), caller.user, caller.key)


def _problems(app: OAuth2AppRow) -> list[str]:
    args = request.args
    results = [_missing(name) for name in ("client_id", "response_type") if not args.get(name)]
    if _redirect_uri(app) not in app.allowed_redirects:
        results.append("redirect_uri: is not one of the application's")
    if app.legacy and not args.get("code_challenge") and not args.get("code_challenge_method"):
        return results
    if args.get("code_challenge_method", "S256") not in {"", "S256"}:
        results.append("code_challenge_method: only S256 is supported")
    if not _CHALLENGE.fullmatch(args.get("code_challenge", "")):
        challenge = 'Query param "code_challenge" must have the 43 characters of S256 (RFC 7636)'
        results.append(f"code_challenge: {challenge}" if args.get("code_challenge") else _missing("code_challenge"))
    return results


def _missing(name: str) -> str:
    return f'{name}: Query param "{name}" is required and cannot be empty'


def _redirect_uri(app: OAuth2AppRow) -> str:
    return request.args.get("redirect_uri") or app.callback_url


def _with_query(uri: str, values: Mapping[str, str]) -> str:
    state = request.args.get("state", "")
    query = urlencode({**values, **({"state": state} if state else {})})
    return f"{uri}{'&' if urlsplit(uri).query else '?'}{query}"


def _to_login() -> Response:
    location = request.path + (f"?{request.query_string.decode('latin-1')}" if request.query_string else "")
    target = "/login?" + urlencode({"message": SIGNED_OUT, "redirect": location})
    response = Response(f'<a href="{quote(target, safe="/?&=%+")}">See Other</a>.\n\n', 303)
    response.headers["Content-Type"] = "text/html; charset=utf-8"
    response.headers["Location"] = target
    return response


async def _check_form_csrf() -> None:
    """Check the CSRF token: a field of the page's form, or a program's header. Raises CsrfMismatch."""
    if not credentials().from_cookie:
        return
    check_origin()
    sent = (await read_form()).get("csrf_token", "")
    cookie = request.cookies.get(CSRF_COOKIE, "")
    if not (cookie and hmac.compare_digest(cookie.encode(), sent.encode())):
        check_csrf()


# ---- tokens


@route(
    blueprint,
    "POST",
    "/oauth2/tokens",
    scope=APPLICATION,
    budget=PUBLIC_ROUTE,
    takes=FORM,
    answers=OAuth2TokenResponse,
    refuses=(401, 403),
    others=_WRONG,
    audit=Audited("api_key", "create", "view"),
)
@experimental
@refusing
async def post_tokens() -> Response:
    form, client = await by_client(_credential_of_token_request)
    if form["grant_type"] == "refresh_token":
        return _granted(await oauth2_grants.refresh(context(), client, form["refresh_token"], remote_ip()))
    tokens = await oauth2_grants.exchange_code(
        context(),
        client,
        code=form["code"],
        redirect_uri=form.get("redirect_uri", ""),
        verifier=form.get("code_verifier", ""),
        ip=remote_ip(),
    )
    # A later refresh continues this session.
    await about(tokens.access.partition("-")[0], by=tokens.user_id, new=True)
    return _granted(tokens)


def _credential_of_token_request(form: Mapping[str, str]) -> str:
    field = _CREDENTIAL_FIELDS.get(form.get("grant_type", ""))
    if field is None:
        raise GrantError("unsupported_grant_type", "The grant type is missing or not supported")
    if not form.get(field):
        raise GrantError("invalid_request", "Missing required parameter: code" if field == "code" else MALFORMED)
    return form[field]


def _granted(tokens: Tokens) -> Response:
    response = reply(
        OAuth2TokenResponse(
            access_token=tokens.access,
            token_type="Bearer",  # noqa: S106 - a kind, no secret
            expires_in=tokens.seconds,
            refresh_token=tokens.refresh,
            expiry=tokens.expires_at.isoformat().replace("+00:00", "Z"),
            scope=" ".join(tokens.scopes) or UNSET,
        )
    )
    response.headers["Cache-Control"] = "no-store"  # RFC 6749 section 5.1
    return response


@route(
    blueprint,
    "DELETE",
    "/oauth2/tokens",
    scope="oauth2_app_code_token:delete",
    budget=PUBLIC_ROUTE,
    query={"client_id": str},
    status=204,
    refuses=(428, 429),
    others=_WRONG,
    audit=Audited("api_key", "delete", "view"),
)
@experimental
@refusing
async def delete_tokens() -> Response:
    """Revoke everything the user has given an application."""
    app = await oauth2_client_authentication.find_app(context(), request.args.get("client_id", ""))
    await about(subject().user_id, name=app.name)  # all its tokens, which have the application's name
    await oauth2_revocation.revoke_all(context(), subject(), app)
    return no_content()


@route(
    blueprint,
    "POST",
    "/oauth2/revoke",
    scope=APPLICATION,
    budget=PUBLIC_ROUTE,
    takes=FORM,
    refuses=(401, 403),
    others=_WRONG,
    audit=Audited("oauth2_provider_app", "write", "view"),
)
@experimental
@refusing
async def post_revoke() -> Response:
    """Revoke an access or refresh token of the application."""
    form, client = await by_client(_credential_of_revocation)
    await about(client.app.id, name=client.app.name)
    await oauth2_revocation.revoke(context(), client, form["token"])
    response = Response(b"", 200)
    del response.headers["Content-Type"]
    return response


def _credential_of_revocation(form: Mapping[str, str]) -> str:
    named_client(form)
    if not form.get("token"):
        raise GrantError("invalid_request", "missing token parameter")
    return form["token"]
