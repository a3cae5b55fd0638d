"""SCIM 2.0 for identity providers, open only where `--scim-auth-header` is set."""

from __future__ import annotations

import functools
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ParamSpec

from quart import Blueprint, Response, request

from coder.api.base.refusals import Invalid, Refusal
from coder.api.people.users import User
from coder.appproxy.http.errors import STATUS
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.audited import about
from coder.coderd.http.server.auth import context, known_as, let_in
from coder.coderd.http.server.declarations import Content
from coder.coderd.http.server.json import read_document, reply
from coder.coderd.http.server.route import route
from coder.coderd.services.audit.audit_snapshots import user_with_email
from coder.coderd.services.people import scim, user_views
from coder.coderd.services.people.users import UserRow
from coder.domain.access.rate_budgets import GUESSES, PUBLIC_ROUTE
from coder.domain.access.route_scopes import CLIENT, PUBLIC
from coder.domain.people.scim_documents import USER_SCHEMA

blueprint = Blueprint("scim", __name__, url_prefix="/scim/v2")

P = ParamSpec("P")
_TYPE = "application/scim+json"
_ERROR = "urn:ietf:params:scim:api:messages:2.0:Error"


def guarded(view: Callable[P, Awaitable[Response]]) -> Callable[P, Awaitable[Response]]:
    """Let only the provider through, and respond to refusals as RFC 7644 section 3.12 requires."""

    @functools.wraps(view)
    async def answered(*args: P.args, **kwargs: P.kwargs) -> Response:
        key = context().config.scim_auth_header
        if not key:
            return _disabled()
        header = request.headers.get("Authorization", "")
        if not (key.equals(header) or key.equals(header.removeprefix("Bearer ").strip())):
            return _error(401, "invalidAuthorization")
        known_as("scim")
        let_in()  # providers send many users, and each takes a while
        try:
            return await view(*args, **kwargs)
        except Refusal as error:
            return _error(STATUS[error.kind], error.message)

    return answered


def _disabled() -> Response:
    return reply(
        {
            "message": "SCIM is disabled, please contact your administrator if you believe this is an error",
            "detail": "SCIM endpoints are disabled if no SCIM is configured. Configure 'CODER_SCIM_AUTH_HEADER' to "
            "enable.",
        },
        404,
    )


def _scim(document: Mapping[str, Any], status: int = 200) -> Response:
    return Response(json.dumps(document), status, content_type=_TYPE)


def _error(status: int, detail: str) -> Response:
    return _scim({"schemas": [_ERROR], "status": str(status), "detail": detail}, status)


@route(
    blueprint,
    "GET",
    "/ServiceProviderConfig",
    scope=PUBLIC,
    budget=PUBLIC_ROUTE,
    answers=Content("application/scim+json"),
    refuses=(404,),
)
async def get_config() -> Response:
    if not context().config.scim_auth_header:
        return _disabled()
    unsupported = {"supported": False}
    return _scim(
        {
            "schemas": ["urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"],
            "documentationUri": f"{context().config.docs_url}/admin/users/oidc-auth#scim",
            "patch": {"supported": True},
            "bulk": {**unsupported, "maxOperations": 0, "maxPayloadSize": 0},
            "filter": {**unsupported, "maxResults": 0},
            "changePassword": unsupported,
            "sort": unsupported,
            "etag": unsupported,
            "authenticationSchemes": [
                {
                    "type": "oauthbearertoken",
                    "name": "HTTP Header Authentication",
                    "description": "The key of --scim-auth-header as a bearer token",
                }
            ],
            "meta": {
                "resourceType": "ServiceProviderConfig",
                "location": f"{context().access_url}/scim/v2/ServiceProviderConfig",
            },
        }
    )


@route(
    blueprint,
    "GET",
    "/Users",
    scope=CLIENT,
    budget=GUESSES,
    answers=Content("application/scim+json"),
    others={401: Content("application/scim+json")},
    refuses=(404,),
)
@guarded
async def get_users() -> Response:
    """Return an empty list: providers then send their users instead of comparing."""
    return _scim(
        {
            "schemas": ["urn:ietf:params:scim:api:messages:2.0:ListResponse"],
            "totalResults": 0,
            "startIndex": 1,
            "itemsPerPage": 0,
            "Resources": [],
        }
    )


@route(
    blueprint,
    "POST",
    "/Users",
    scope=CLIENT,
    budget=GUESSES,
    body=dict[str, Any],
    answers=Content("application/scim+json"),
    others={
        400: Content("application/scim+json"),
        401: Content("application/scim+json"),
        403: Content("application/scim+json"),
        404: (dict[str, Any], Content("application/scim+json")),
        408: Content("application/scim+json"),
        409: Content("application/scim+json"),
        413: Content("application/scim+json"),
    },
    audit=Audited("user", "create", "view"),
)
@guarded
async def post_user() -> Response:
    """Create the user of a SCIM document, or return the existing one with that address."""
    document = await _document()
    email = scim.describe(document).email
    known = await user_with_email(context(), email) if "\0" not in email else None
    if known is not None:
        await about(known, action="write")
    row = await scim.provision(context(), document)
    if known is None:
        await about(row.id, new=True)
    return _scim({**document, "id": str(row.id), "userName": row.username, "active": row.status != "suspended"})


@route(
    blueprint,
    "GET",
    "/Users/<ident>",
    scope=CLIENT,
    budget=GUESSES,
    answers=Content("application/scim+json"),
    others={401: Content("application/scim+json"), 404: (dict[str, Any], Content("application/scim+json"))},
)
@guarded
async def get_user(ident: str) -> Response:
    """Return the user by the id from `provision`."""
    return _scim(_described(await scim.find(context(), ident)))


@route(
    blueprint,
    ("PATCH", "PUT"),
    "/Users/<ident>",
    scope=CLIENT,
    budget=GUESSES,
    body=dict[str, Any],
    answers=User,
    others={
        400: Content("application/scim+json"),
        401: Content("application/scim+json"),
        403: Content("application/scim+json"),
        404: (dict[str, Any], Content("application/scim+json")),
        408: Content("application/scim+json"),
        413: Content("application/scim+json"),
    },
    audit=Audited("user", "write", "view"),
)
@guarded
async def change_user(ident: str) -> Response:
    """Suspend or activate a user; nothing changes for None or an equal state."""
    document = await _document()
    row = await scim.find(context(), ident)
    change = scim.describe(scim.patched(document))
    # userName is compared without regard to case (RFC 7643 section 4.1.1)
    if request.method == "PUT" and change.username and change.username.lower() != row.username.lower():
        return _error(400, "immutable: userName cannot be changed")
    await about(row.id)
    changed = await scim.set_active(context(), row, change.active)
    return reply(user_views.user_view(changed))


def _described(row: UserRow) -> dict[str, Any]:
    return {
        "schemas": [USER_SCHEMA],
        "id": str(row.id),
        "userName": row.username,
        "name": {"givenName": row.name, "familyName": ""},
        "emails": [{"primary": True, "value": row.email, "type": "work"}],
        "active": row.status != "suspended",
        "groups": [],
        "meta": {"resourceType": "User"},
    }


async def _document() -> dict[str, object]:
    """Return the body by the canonical names. Raises Invalid."""
    try:
        document = await read_document()
    except (ValueError, RecursionError):
        raise Invalid("The body is not JSON.") from None
    if not isinstance(document, dict):
        raise Invalid("The body is not a JSON object.")
    return scim.canonical(document)
