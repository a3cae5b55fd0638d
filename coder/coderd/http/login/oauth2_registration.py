"""Clients of the OAuth2 provider that register and manage themselves (RFC 7591, RFC 7592)."""

from __future__ import annotations

import functools

from msgspec import to_builtins
from quart import Blueprint, Response, request

from coder.api.base.refusals import Refusal
from coder.api.login.oauth2 import OAuth2ClientConfiguration, OAuth2ClientRegistrationResponse, OAuth2Error
from coder.base.json_types import JsonObject
from coder.coderd.http.login.oauth2_refusals import P, View, experimental, refusal
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.audited import about
from coder.coderd.http.server.auth import context, count_request
from coder.coderd.http.server.declarations import NOTHING
from coder.coderd.http.server.json import empty, no_content, read_document, reply
from coder.coderd.http.server.query import path_uuid
from coder.coderd.http.server.route import route
from coder.coderd.services.login import oauth2_client_authentication, oauth2_clients
from coder.coderd.services.login.oauth2_apps import OAuth2AppRow
from coder.coderd.services.login.oauth2_client_authentication import GrantError
from coder.domain.access.rate_budgets import PUBLIC_ROUTE, REGISTRATION
from coder.domain.access.route_scopes import APPLICATION, PUBLIC

blueprint = Blueprint("oauth2_registration", __name__)

_WRONG = {400: OAuth2Error, 401: OAuth2Error}
"""Refusals of RFC 6749 section 5.2."""


def plainly_refusing(view: View[P]) -> View[P]:
    """Refuse like `refusing`, with the content type upstream gives these responses."""

    @functools.wraps(view)
    async def answered(*args: P.args, **kwargs: P.kwargs) -> Response:
        try:
            return await view(*args, **kwargs)
        except GrantError as error:
            return refusal(error, "application/json")

    return answered


@route(
    blueprint,
    "POST",
    "/oauth2/register",
    scope=PUBLIC,
    budget=REGISTRATION,
    body=JsonObject,
    answers=OAuth2ClientRegistrationResponse,
    status=201,
    refuses=(401, 403),
    others=_WRONG,
    audit=Audited("oauth2_provider_app", "create", "view"),
)
@experimental
@plainly_refusing
async def post_register() -> Response:
    """Register a client; return application, client secret and registration token, whose secrets are never shown
    again."""
    row, secret, token = await oauth2_clients.register(context(), await _metadata())
    await about(row.id, name=row.name, new=True)
    answer = OAuth2ClientRegistrationResponse(
        client_id=str(row.id),
        client_secret=secret,
        registration_access_token=token,
        registration_client_uri=f"{context().access_url}/oauth2/clients/{row.id}",
        client_id_issued_at=int(row.created_at.timestamp()),
        **to_builtins(row.registration or {}),
    )
    return reply(answer, 201)


@route(
    blueprint,
    "GET",
    ("/oauth2/register", "/oauth2/revoke", "/oauth2/tokens"),
    scope=PUBLIC,
    budget=PUBLIC_ROUTE,
    others={405: NOTHING},
    refuses=(403,),
)
@experimental
async def get_nothing() -> Response:
    """Return 405: unlike other addresses below the root, this is not a page of the dashboard."""
    return empty(405, Allow="DELETE, POST" if request.path.endswith("/tokens") else "POST")


@route(
    blueprint,
    "GET",
    "/oauth2/clients/<id:client>",
    scope=APPLICATION,
    budget=PUBLIC_ROUTE,
    answers=OAuth2ClientConfiguration,
    refuses=(400, 401, 403),
    others=_WRONG,
)
@experimental
@plainly_refusing
async def get_client(client: str) -> Response:
    """Return the client of the registration token."""
    return _configuration(await _authenticated_client(client))


@route(
    blueprint,
    "PUT",
    "/oauth2/clients/<id:client>",
    scope=APPLICATION,
    budget=PUBLIC_ROUTE,
    body=JsonObject,
    answers=OAuth2ClientConfiguration,
    refuses=(401, 403),
    others=_WRONG,
    audit=Audited("oauth2_provider_app", "write", "view"),
)
@experimental
@plainly_refusing
async def put_client(client: str) -> Response:
    """Replace the client's metadata."""
    row = await _authenticated_client(client)
    await about(row.id, name=row.name)
    return _configuration(await oauth2_clients.change(context(), row, await _metadata()))


@route(
    blueprint,
    "DELETE",
    "/oauth2/clients/<id:client>",
    scope=APPLICATION,
    budget=PUBLIC_ROUTE,
    status=204,
    refuses=(400, 401, 403),
    others=_WRONG,
    audit=Audited("oauth2_provider_app", "delete", "view"),
)
@experimental
@plainly_refusing
async def delete_client(client: str) -> Response:
    """Delete the client of the registration token."""
    row = await _authenticated_client(client)
    await about(row.id, name=row.name)
    await oauth2_clients.remove(context(), row)
    return no_content()


async def _authenticated_client(client: str) -> OAuth2AppRow:
    """Return the client of the registration token, counted. Raises GrantError, RateLimited."""
    try:
        result = await oauth2_clients.find_client(
            context(), path_uuid(client), request.headers.get("Authorization", "")
        )
    except (GrantError, Refusal):
        await count_request(None)
        raise
    await count_request(oauth2_client_authentication.application_account(result.id))
    return result


async def _metadata() -> JsonObject:
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
            **to_builtins(row.registration or {}),
        )
    )
