"""The OAuth2 provider: applications for administrators, the endpoints of the RFCs for their clients."""

from __future__ import annotations

import base64
import binascii
import functools
import hmac
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ParamSpec
from urllib.parse import parse_qs, quote, unquote_plus, urlencode, urlsplit
from uuid import UUID

from msgspec import UNSET
from quart import Blueprint, Response, request

from coder.api.login.oauth2 import (
    OAuth2AppEndpoints,
    OAuth2AuthorizationServerMetadata,
    OAuth2ClientConfiguration,
    OAuth2ClientRegistrationResponse,
    OAuth2Error,
    OAuth2ProtectedResourceMetadata,
    OAuth2ProviderApp,
    OAuth2ProviderAppSecret,
    OAuth2ProviderAppSecretFull,
    OAuth2ProviderSettings,
    OAuth2TokenResponse,
    PostOAuth2ProviderAppRequest,
    PutOAuth2ProviderAppRequest,
)
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.auth import (
    CSRF_COOKIE,
    check_csrf,
    context,
    count_request,
    credentials,
    optional_caller,
    remote_ip,
    subject,
)
from coder.coderd.http.server.declarations import BYTES, FORM, HTML, NOTHING
from coder.coderd.http.server.json import no_content, read_body, read_bytes, read_document, reply
from coder.coderd.http.server.query import Query, path_uuid
from coder.coderd.http.server.route import route
from coder.coderd.http.site import pages
from coder.coderd.services.access.authentication import Caller, subject_of
from coder.coderd.services.access.credentials import SIGNED_OUT
from coder.coderd.services.login import oauth2_apps, oauth2_clients, oauth2_grants
from coder.coderd.services.login.oauth2_apps import OAuth2AppRow
from coder.coderd.services.login.oauth2_grants import GrantError, Tokens
from coder.domain.access import scopes
from coder.domain.access.route_scopes import CLIENT, OPTIONAL, PUBLIC
from coder.domain.foundation.zero import NIL_UUID

blueprint = Blueprint("oauth2", __name__)

P = ParamSpec("P")
View = Callable[P, Awaitable[Response]]
_API = "/api/v2/oauth2-provider"
_WRONG = {400: OAuth2Error, 401: OAuth2Error}
"""What RFC 6749 section 5.2 says of a refusal."""
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
_MAX_FORM = 64 << 10
_REQUIRED = ("name", "callback_url")
_MALFORMED = "The request is missing required parameters or is otherwise malformed"


def experimental(view: View[P]) -> View[P]:
    """Only where the experiment is on."""

    @functools.wraps(view)
    async def guarded(*args: P.args, **kwargs: P.kwargs) -> Response:
        oauth2_apps.require_experiment(context())
        return await view(*args, **kwargs)

    return guarded


def refusing(view: View[P]) -> View[P]:
    """Answers a GrantError as the RFCs want it."""

    @functools.wraps(view)
    async def answered(*args: P.args, **kwargs: P.kwargs) -> Response:
        try:
            return await view(*args, **kwargs)
        except GrantError as error:
            return _refusal(error)

    return answered


def _refusal(error: GrantError, content_type: str = "application/json; charset=utf-8") -> Response:
    body = json.dumps({"error": error.error, "error_description": error.description}, separators=(",", ":"))
    response = Response(body, error.status, content_type=content_type)
    if error.error == "invalid_client":
        response.headers["WWW-Authenticate"] = 'Basic realm="coder"'
    return response


# ---- applications


@route(
    blueprint, "GET", f"{_API}/apps", scope="oauth2_app:read", query={"user_id": UUID}, answers=list[OAuth2ProviderApp]
)
@experimental
async def get_apps() -> Response:
    """All, or those a user has let in (one's own list, for everybody but an administrator)."""
    query = Query()
    user = query.uuid("user_id")
    query.check()
    rows = await oauth2_apps.list_apps(context(), subject(), None if user in {None, NIL_UUID} else user)
    return reply([_view(row) for row in rows])


@route(
    blueprint,
    "POST",
    f"{_API}/apps",
    scope="oauth2_app:create",
    body=PostOAuth2ProviderAppRequest,
    required=("name", "callback_url"),
    answers=OAuth2ProviderApp,
    status=201,
    audit=Audited("oauth2_provider_app", "create", "body:id"),
)
@experimental
async def post_app() -> Response:
    body = await read_body(PostOAuth2ProviderAppRequest)
    row = await oauth2_apps.create_app(context(), subject(), body)
    return reply(_view(row), 201)


@route(blueprint, "GET", f"{_API}/apps/<id:app>", scope="oauth2_app:read", answers=OAuth2ProviderApp)
@experimental
async def get_app(app: str) -> Response:
    return reply(_view(await oauth2_apps.get_app(context(), subject(), path_uuid(app))))


@route(
    blueprint,
    "PUT",
    f"{_API}/apps/<id:app>",
    scope="oauth2_app:update",
    body=PutOAuth2ProviderAppRequest,
    required=("name", "callback_url"),
    answers=OAuth2ProviderApp,
    audit=Audited("oauth2_provider_app", "write"),
)
@experimental
async def put_app(app: str) -> Response:
    body = await read_body(PutOAuth2ProviderAppRequest)
    row = await oauth2_apps.update_app(context(), subject(), path_uuid(app), body)
    return reply(_view(row))


@route(
    blueprint,
    "DELETE",
    f"{_API}/apps/<id:app>",
    scope="oauth2_app:delete",
    status=204,
    audit=Audited("oauth2_provider_app", "delete"),
)
@experimental
async def delete_app(app: str) -> Response:
    await oauth2_apps.delete_app(context(), subject(), path_uuid(app))
    return no_content()


@route(
    blueprint,
    "GET",
    f"{_API}/apps/<id:app>/secrets",
    scope="oauth2_app_secret:read",
    answers=list[OAuth2ProviderAppSecret],
)
@experimental
async def get_secrets(app: str) -> Response:
    rows = await oauth2_apps.list_secrets(context(), subject(), path_uuid(app))
    return reply(
        [
            OAuth2ProviderAppSecret(
                id=row.id, last_used_at=row.last_used_at, client_secret_truncated=row.display_secret
            )
            for row in rows
        ]
    )


@route(
    blueprint,
    "POST",
    f"{_API}/apps/<id:app>/secrets",
    scope="oauth2_app_secret:create",
    answers=OAuth2ProviderAppSecretFull,
    status=201,
    audit=Audited("oauth2_provider_app_secret", "create", "body:id"),
)
@experimental
async def post_secret(app: str) -> Response:
    """(id, the secret, shown only now)."""
    secret_id, secret = await oauth2_apps.create_secret(context(), subject(), path_uuid(app))
    return reply(OAuth2ProviderAppSecretFull(id=secret_id, client_secret_full=secret), 201)


@route(
    blueprint,
    "DELETE",
    f"{_API}/apps/<id:app>/secrets/<id:secret>",
    scope="oauth2_app_secret:delete",
    status=204,
    audit=Audited("oauth2_provider_app_secret", "delete", "path:1"),
)
@experimental
async def delete_secret(app: str, secret: str) -> Response:
    await oauth2_apps.delete_secret(context(), subject(), path_uuid(app), path_uuid(secret))
    return no_content()


@route(blueprint, "GET", f"{_API}/settings", scope="deployment_config:read", answers=OAuth2ProviderSettings)
@experimental
async def get_settings() -> Response:
    allowed = await oauth2_apps.read_settings(context(), subject())
    return reply(OAuth2ProviderSettings(dynamic_client_registration_enabled=allowed))


@route(
    blueprint,
    "PUT",
    f"{_API}/settings",
    scope="deployment_config:update",
    body=OAuth2ProviderSettings,
    answers=OAuth2ProviderSettings,
)
@experimental
async def put_settings() -> Response:
    """None leaves the setting as it is."""
    body = await read_body(OAuth2ProviderSettings)
    wanted = body.dynamic_client_registration_enabled
    allowed = await oauth2_apps.change_settings(context(), subject(), None if wanted is UNSET else bool(wanted))
    return reply(OAuth2ProviderSettings(dynamic_client_registration_enabled=allowed))


def _view(row: OAuth2AppRow) -> OAuth2ProviderApp:
    base = context().access_url
    return OAuth2ProviderApp(
        id=row.id,
        name=row.name,
        callback_url=row.callback_url,
        icon=row.icon,
        endpoints=OAuth2AppEndpoints(
            authorization=f"{base}/oauth2/authorize",
            token=f"{base}/oauth2/tokens",
            token_revoke=f"{base}/oauth2/revoke",
            device_authorization="",
        ),
    )


# ---- what a client reads first (RFC 8414, RFC 9728)


@route(
    blueprint,
    "GET",
    ("/.well-known/oauth-authorization-server", "/.well-known/oauth-authorization-server/<path:_rest>"),
    scope=PUBLIC,
    answers=OAuth2AuthorizationServerMetadata,
    refuses=(403,),
)
@experimental
async def server_metadata(_rest: str = "") -> Response:
    """May clients register themselves (RFC 7591)? Off until an administrator allows it."""
    base = context().access_url
    registration: Any = UNSET
    if await oauth2_apps.dynamic_registration(context()):
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
    """The scopes of ours among those an application asks for; none of ours means full access, as with upstream."""
    caller = await optional_caller()
    if caller is None:
        return _to_login()
    app = await oauth2_grants.find_app(context(), request.args.get("client_id", ""))
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
        scopes=oauth2_grants.asked_scopes(request.args.get("scope", "")),
        csrf=request.cookies.get(CSRF_COOKIE) or str(request.scope.get("coder_csrf", "")),
        cancel=_with_query(_redirect_uri(app), denied),
    )


@route(
    blueprint,
    "POST",
    "/oauth2/authorize",
    scope="oauth2_app_code_token:create",
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
    """The user consents: a code for the application's redirect address."""
    caller = await optional_caller()
    if caller is None:
        return _to_login()
    await _check_form_csrf()
    app = await oauth2_grants.find_app(context(), request.args.get("client_id", ""))
    problems = _problems(app)
    if problems:
        raise GrantError("invalid_request", "; ".join(problems))
    if request.args["response_type"] != "code":
        raise GrantError("unsupported_response_type", "Only the response type code is known")
    redirect_uri = _redirect_uri(app)
    code = await oauth2_grants.issue_code(
        context(),
        _acting(caller),
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
    found = [f"{name}: is required" for name in ("client_id", "response_type") if not args.get(name)]
    if _redirect_uri(app) not in app.allowed_redirects:
        found.append("redirect_uri: is not one of the application's")
    if args.get("code_challenge_method", "S256") not in {"", "S256"}:
        found.append("code_challenge_method: only S256 is supported")
    if not _CHALLENGE.fullmatch(args.get("code_challenge", "")):
        found.append("code_challenge: is required, 43 characters by S256 (RFC 7636)")
    return found


def _redirect_uri(app: OAuth2AppRow) -> str:
    return request.args.get("redirect_uri") or app.callback_url


def _with_query(uri: str, values: Mapping[str, str]) -> str:
    state = request.args.get("state", "")
    query = urlencode({**values, **({"state": state} if state else {})})
    return f"{uri}{'&' if urlsplit(uri).query else '?'}{query}"


def _to_login() -> Response:
    there = request.path + (f"?{request.query_string.decode('latin-1')}" if request.query_string else "")
    target = "/login?" + urlencode({"message": SIGNED_OUT, "redirect": there})
    response = Response(f'<a href="{quote(target, safe="/?&=%+")}">See Other</a>.\n\n', 303)
    response.headers["Content-Type"] = "text/html; charset=utf-8"
    response.headers["Location"] = target
    return response


async def _check_form_csrf() -> None:
    """The page's form carries the token as a field; a program may use the header. Raises CsrfMismatch."""
    if not credentials().from_cookie:
        return
    sent = (await _form()).get("csrf_token", "")
    cookie = request.cookies.get(CSRF_COOKIE, "")
    if not (cookie and hmac.compare_digest(cookie.encode(), sent.encode())):
        check_csrf()


# ---- tokens


@route(
    blueprint,
    "POST",
    "/oauth2/tokens",
    scope=CLIENT,
    takes=FORM,
    answers=OAuth2TokenResponse,
    refuses=(401, 403),
    others=_WRONG,
)
@experimental
@refusing
async def post_tokens() -> Response:
    form = await _form()
    kind = form.get("grant_type", "")
    if kind not in {"authorization_code", "refresh_token"}:
        raise GrantError("unsupported_grant_type", "The grant type is missing or not supported")
    client_id, secret = _client(form)
    wanted = "code" if kind == "authorization_code" else "refresh_token"
    if not form.get(wanted) or not client_id:
        raise GrantError("invalid_request", _MALFORMED)
    app = await oauth2_grants.find_app(context(), client_id)
    await oauth2_grants.check_client(context(), app, secret)
    if kind == "refresh_token":
        return _granted(await oauth2_grants.refresh(context(), app, form["refresh_token"], remote_ip()))
    return _granted(
        await oauth2_grants.exchange_code(
            context(),
            app,
            code=form["code"],
            redirect_uri=form.get("redirect_uri", ""),
            verifier=form.get("code_verifier", ""),
            ip=remote_ip(),
        )
    )


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
    query={"client_id": str},
    status=204,
    refuses=(428, 429),
    others=_WRONG,
)
@experimental
@refusing
async def delete_tokens() -> Response:
    """Ends all a user has given an application."""
    app = await oauth2_grants.find_app(context(), request.args.get("client_id", ""))
    await oauth2_grants.revoke_all(context(), subject(), app)
    return no_content()


@route(blueprint, "POST", "/oauth2/revoke", scope=CLIENT, takes=FORM, refuses=(401, 403), others=_WRONG)
@experimental
@refusing
async def post_revoke() -> Response:
    """Ends an access or refresh token of the application."""
    form = await _form()
    client_id, secret = _client(form)
    if not form.get("token"):
        raise GrantError("invalid_request", "missing token parameter")
    app = await oauth2_grants.find_app(context(), client_id)
    await oauth2_grants.check_client(context(), app, secret)
    await oauth2_grants.revoke(context(), app, form["token"])
    response = Response(b"", 200)
    del response.headers["Content-Type"]
    return response


async def _form() -> dict[str, str]:
    """The form's fields, each once. Raises GrantError invalid_request."""
    try:
        text = (await read_bytes(_MAX_FORM)).decode()
    except UnicodeDecodeError:
        raise GrantError("invalid_request", _MALFORMED) from None
    try:
        fields = parse_qs(text, keep_blank_values=True, max_num_fields=50)
    except ValueError:
        raise GrantError("invalid_request", "The form has too many fields") from None
    if any(len(values) > 1 for values in fields.values()):
        raise GrantError("invalid_request", "A parameter is given more than once")
    return {name: values[0] for name, values in fields.items()}


def _client(form: Mapping[str, str]) -> tuple[str, str]:
    """(client id, secret) from HTTP Basic (RFC 6749 section 2.3.1) or the form."""
    kind, _, value = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() == "basic":
        try:
            name, _, secret = base64.b64decode(value.strip(), validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            raise oauth2_grants.invalid_client() from None
        return unquote_plus(name), unquote_plus(secret)
    return form.get("client_id", ""), form.get("client_secret", "")


# ---- clients that register themselves


def plainly_refusing(view: View[P]) -> View[P]:
    """As `refusing`, with the content type upstream gives these answers."""

    @functools.wraps(view)
    async def answered(*args: P.args, **kwargs: P.kwargs) -> Response:
        try:
            return await view(*args, **kwargs)
        except GrantError as error:
            return _refusal(error, "application/json")

    return answered


@route(
    blueprint,
    "POST",
    "/oauth2/register",
    scope=PUBLIC,
    body=dict[str, Any],
    answers=OAuth2ClientRegistrationResponse,
    status=201,
    refuses=(401, 403),
    others=_WRONG,
)
@experimental
@plainly_refusing
async def post_register() -> Response:
    """(application, client secret, registration token); both secrets are shown only now."""
    count_request(None)
    row, secret, token = await oauth2_clients.register(context(), await _metadata())
    answer = OAuth2ClientRegistrationResponse(
        client_id=str(row.id),
        client_secret=secret,
        registration_access_token=token,
        registration_client_uri=f"{context().access_url}/oauth2/clients/{row.id}",
        client_id_issued_at=int(row.created_at.timestamp()),
        **dict(row.registration or {}),
    )
    return reply(answer, 201)


@route(blueprint, "GET", "/oauth2/register", scope=PUBLIC, others={405: NOTHING}, refuses=(403,))
@experimental
async def get_registration() -> Response:
    return Response(b"", 405, {"Allow": "POST"})


@route(
    blueprint,
    "GET",
    "/oauth2/clients/<id:client>",
    scope=CLIENT,
    answers=OAuth2ClientConfiguration,
    refuses=(400, 401, 403),
    others=_WRONG,
)
@experimental
@plainly_refusing
async def get_client(client: str) -> Response:
    """The client the registration token belongs to."""
    return _configuration(await _own(client))


@route(
    blueprint,
    "PUT",
    "/oauth2/clients/<id:client>",
    scope=CLIENT,
    body=dict[str, Any],
    answers=OAuth2ClientConfiguration,
    refuses=(401, 403),
    others=_WRONG,
)
@experimental
@plainly_refusing
async def put_client(client: str) -> Response:
    """Replaces the client's metadata."""
    row = await _own(client)
    return _configuration(await oauth2_clients.change(context(), row, await _metadata()))


@route(
    blueprint, "DELETE", "/oauth2/clients/<id:client>", scope=CLIENT, status=204, refuses=(400, 401, 403), others=_WRONG
)
@experimental
@plainly_refusing
async def delete_client(client: str) -> Response:
    """The client the registration token belongs to."""
    await oauth2_clients.remove(context(), await _own(client))
    return no_content()


async def _own(client: str) -> OAuth2AppRow:
    return await oauth2_clients.find_client(context(), path_uuid(client), request.headers.get("Authorization", ""))


async def _metadata() -> dict[str, Any]:
    try:
        value = await read_document()
    except (ValueError, RecursionError):
        raise GrantError("invalid_client_metadata", "The request body is not JSON") from None
    if not isinstance(value, dict):
        raise GrantError("invalid_client_metadata", "The request body is not a JSON object")
    return value


def _configuration(row: OAuth2AppRow) -> Response:
    return reply(
        OAuth2ClientConfiguration(
            client_id=str(row.id),
            client_id_issued_at=int(row.created_at.timestamp()),
            registration_client_uri=f"{context().access_url}/oauth2/clients/{row.id}",
            **dict(row.registration or {}),
        )
    )
