"""SCIM 2.0 for identity providers, open only where `--scim-auth-header` is set.

Every path and method below /scim/v2 asks for the provider's key first. What is not served is 404 or 405: a provider
takes every other response for success, and would believe that a user is locked out.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, ParamSpec

from quart import Blueprint, Response, request

from coder.api.base.refusals import Forbidden, Invalid, NotFound, Refusal
from coder.api.people.users import User
from coder.appproxy.http.errors import STATUS
from coder.base.json_types import JsonObject
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.audited import about
from coder.coderd.http.server.auth import context, known_as, let_in
from coder.coderd.http.server.declarations import Content
from coder.coderd.http.server.json import read_document, reply
from coder.coderd.http.server.query import go_int
from coder.coderd.http.server.route import route
from coder.coderd.services.audit.audit_snapshots import user_with_email
from coder.coderd.services.people import scim, user_views
from coder.coderd.services.people.users import UserRow
from coder.domain.access.rate_budgets import GUESSES, PUBLIC_ROUTE
from coder.domain.access.route_scopes import CLIENT, PUBLIC
from coder.domain.people import scim_discovery
from coder.domain.people.scim_documents import USER_SCHEMA, select_attributes
from coder.domain.people.scim_filters import parse_filter

blueprint = Blueprint("scim", __name__, url_prefix="/scim/v2")

P = ParamSpec("P")
_TYPE = "application/scim+json"
_ERROR = "urn:ietf:params:scim:api:messages:2.0:Error"
_BEARER = re.compile(r"^Bearer\s+", re.IGNORECASE)
_MOST = 200
"""Maximum users of one list."""
_SCIM = Content(_TYPE)
_METHODS = {
    r"ServiceProviderConfig": "GET",
    r"(ResourceTypes|Schemas)(/[^/]+)?": "GET",
    r"Groups": "GET",
    r"Users": "GET, POST",
    r"Users/[^/]+": "DELETE, GET, PATCH, PUT",
}
"""Allowed methods by path below /scim/v2, for 405."""


def guarded(view: Callable[P, Awaitable[Response]]) -> Callable[P, Awaitable[Response]]:
    """Let only the provider through, and respond to refusals as RFC 7644 section 3.12 requires."""

    @functools.wraps(view)
    async def answered(*args: P.args, **kwargs: P.kwargs) -> Response:
        key = context().config.scim_auth_header
        if not key:
            return _disabled()
        header = request.headers.get("Authorization", "")
        if not (key.equals(header) or key.equals(_BEARER.sub("", header).strip())):
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


def _error(status: int, detail: str, **more: str) -> Response:
    return _scim({"schemas": [_ERROR], "status": str(status), **more, "detail": detail}, status)


@route(
    blueprint,
    "GET",
    "/ServiceProviderConfig",
    scope=PUBLIC,
    budget=PUBLIC_ROUTE,
    answers=_SCIM,
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
            "filter": {"supported": True, "maxResults": _MOST},
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


def _unfiltered() -> None:
    """Raise Forbidden for a filter, which RFC 7644 section 4 forbids for discovery."""
    if "filter" in request.args:
        raise Forbidden("This endpoint cannot be filtered.")


@route(
    blueprint,
    "GET",
    ("/ResourceTypes", "/Schemas"),
    scope=CLIENT,
    budget=GUESSES,
    answers=_SCIM,
    others={401: _SCIM, 403: _SCIM},
    refuses=(404,),
)
@guarded
async def get_descriptions() -> Response:
    _unfiltered()
    return _scim(scim_discovery.listed(list(_descriptions().values())))


@route(
    blueprint,
    "GET",
    ("/ResourceTypes/<name>", "/Schemas/<name>"),
    scope=CLIENT,
    budget=GUESSES,
    answers=_SCIM,
    others={401: _SCIM, 404: (dict[str, Any], _SCIM)},
)
@guarded
async def get_description(name: str) -> Response:
    document = _descriptions().get(name)
    if document is None:
        raise NotFound
    return _scim(document)


def _descriptions() -> dict[str, dict[str, Any]]:
    """Return the documents of the requested kind, by id."""
    is_type = request.path.startswith("/scim/v2/ResourceTypes")
    return (scim_discovery.resource_types if is_type else scim_discovery.schemas)(context().access_url)


@route(blueprint, "GET", "/Groups", scope=CLIENT, budget=GUESSES, answers=_SCIM, others={401: _SCIM}, refuses=(404,))
@guarded
async def get_groups() -> Response:
    """Return an empty list, which an import of users survives: groups come from the claims of a login."""
    return _scim(scim_discovery.listed([]))


@route(
    blueprint,
    "GET",
    "/Users",
    scope=CLIENT,
    budget=GUESSES,
    answers=_SCIM,
    others={400: _SCIM, 401: _SCIM},
    refuses=(404,),
)
@guarded
async def get_users() -> Response:
    """Return a page of the users that match a filter (RFC 7644 sections 3.4.2.2 and 3.4.2.4)."""
    try:
        comparisons = parse_filter(request.args.get("filter", ""))
    except ValueError as error:
        return _error(400, str(error), scimType="invalidFilter")
    start = max(1, go_int(request.args.get("startIndex", "")) or 1)
    count = go_int(request.args.get("count", ""))
    size = _MOST if count is None else min(_MOST, max(0, count))
    rows, total = await scim.search(context(), comparisons, offset=start - 1, limit=size)
    return _scim(scim_discovery.listed([_selected(row) for row in rows], total=total, start=start))


@route(
    blueprint,
    "POST",
    "/Users",
    scope=CLIENT,
    budget=GUESSES,
    body=dict[str, Any],
    answers=_SCIM,
    others={
        400: _SCIM,
        401: _SCIM,
        403: _SCIM,
        404: (dict[str, Any], _SCIM),
        408: _SCIM,
        409: _SCIM,
        413: _SCIM,
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
    answers=_SCIM,
    others={401: _SCIM, 404: (dict[str, Any], _SCIM)},
)
@guarded
async def get_user(ident: str) -> Response:
    """Return the user by the id from `provision`."""
    return _scim(_selected(await scim.find(context(), ident)))


@route(
    blueprint,
    ("PATCH", "PUT"),
    "/Users/<ident>",
    scope=CLIENT,
    budget=GUESSES,
    body=dict[str, Any],
    answers=User,
    others={
        400: _SCIM,
        401: _SCIM,
        403: _SCIM,
        404: (dict[str, Any], _SCIM),
        408: _SCIM,
        413: _SCIM,
    },
    audit=Audited("user", "write", "view"),
)
@guarded
async def change_user(ident: str) -> Response:
    """Suspend or activate a user; nothing changes for None or an equal state."""
    document = await _document()
    row = await scim.find(context(), ident)
    change = scim.describe(scim.patched(document))
    if request.method == "PUT" and not scim.is_name_of(row, change.username):
        return _error(400, "immutable: userName cannot be changed", scimType="mutability")
    await about(row.id)
    changed = await scim.set_active(context(), row, change.active)
    # Upstream returns its own user; a client that asks for SCIM gets the changed resource (RFC 7644 section 3.5).
    if _TYPE in request.accept_mimetypes.values():
        return _scim(_described(changed))
    return reply(user_views.user_view(changed))


@route(
    blueprint,
    "DELETE",
    "/Users/<ident>",
    scope=CLIENT,
    budget=GUESSES,
    status=204,
    others={400: _SCIM, 401: _SCIM, 404: (dict[str, Any], _SCIM)},
    audit=Audited("user", "write", "view"),
)
@guarded
async def delete_user(ident: str) -> Response:
    """Suspend a user: its workspaces stay, and an administrator decides about them (RFC 7644 section 3.6)."""
    row = await scim.find(context(), ident)
    await about(row.id)
    await scim.set_active(context(), row, False)
    return Response(b"", 204)


@route(
    blueprint,
    ("GET", "POST", "PUT", "PATCH", "DELETE"),
    ("", "/", "/<path:_rest>"),
    scope=CLIENT,
    budget=GUESSES,
    answers=_SCIM,
    others={401: _SCIM, 404: (dict[str, Any], _SCIM), 405: _SCIM},
)
@guarded
async def refuse_other(_rest: str = "") -> Response:
    """Refuse other paths, and other methods of the paths above."""
    allowed = next((methods for path, methods in _METHODS.items() if re.fullmatch(path, _rest)), "")
    if not allowed:
        return _error(404, "This endpoint is not served.")
    response = _error(405, f"{request.method} is not served here.")
    response.headers["Allow"] = allowed
    return response


def _selected(row: UserRow) -> dict[str, Any]:
    """Return a user with the requested attributes only (RFC 7644 section 3.9)."""
    wanted, excluded = request.args.get("attributes", ""), request.args.get("excludedAttributes", "")
    return select_attributes(_described(row), wanted, excluded)


def _described(row: UserRow) -> dict[str, Any]:
    return {
        "schemas": [USER_SCHEMA],
        "id": str(row.id),
        "userName": row.username,
        "displayName": row.name,
        "name": {"givenName": row.name, "familyName": ""},
        "emails": [{"primary": True, "value": row.email, "type": "work"}],
        "active": row.status != "suspended",
        "groups": [],
        "meta": {
            "resourceType": "User",
            "created": _time(row.created_at),
            "lastModified": _time(row.updated_at),
            "location": f"{context().access_url}/scim/v2/Users/{row.id}",
        },
    }


def _time(moment: datetime) -> str:
    """Return a time as RFC 7643 section 2.3.5 writes it."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


async def _document() -> JsonObject:
    """Return the body by the canonical names. Raises Invalid."""
    try:
        document = await read_document()
    except (ValueError, RecursionError):
        raise Invalid("The body is not JSON.") from None
    if not isinstance(document, dict):
        raise Invalid("The body is not a JSON object.")
    return scim.canonical(document)
