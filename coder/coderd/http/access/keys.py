"""API keys and tokens of a user, and the scopes a token may have."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.access.keys import (
    APIKey,
    APIKeyWithOwner,
    CreateTokenRequest,
    GenerateAPIKeyResponse,
    TokenConfig,
    UserSession,
)
from coder.api.access.scopes import ExternalAPIKeyScopes
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.auth import context, remote_ip, subject
from coder.coderd.http.server.json import no_content, read_body, reply
from coder.coderd.http.server.query import Query
from coder.coderd.http.server.route import route
from coder.coderd.services.access import api_tokens, keys
from coder.coderd.services.people import users
from coder.coderd.services.people.users import UserRow
from coder.domain.access import scopes
from coder.domain.access.route_scopes import PUBLIC

blueprint = Blueprint("keys", __name__, url_prefix="/api/v2")


@route(blueprint, "GET", "/auth/scopes", scope=PUBLIC, answers=ExternalAPIKeyScopes)
async def get_scopes() -> Response:
    return reply(ExternalAPIKeyScopes(external=list(scopes.external())))  # type: ignore[arg-type]


@route(
    blueprint,
    "POST",
    "/users/<user>/keys",
    scope="api_key:create",
    answers=GenerateAPIKeyResponse,
    status=201,
    audit=Audited("api_key", "create", "body:key"),
)
async def post_key(user: str) -> Response:
    """Create a key that a browser hands to a CLI: like a session, with the default lifetime of a token, or the
    longest."""
    row = await _owner(user)
    token = await api_tokens.create_session_key(context(), subject(), row, remote_ip())
    return reply(GenerateAPIKeyResponse(key=token), 201)


@route(
    blueprint,
    "POST",
    "/users/<user>/keys/tokens",
    scope="api_key:create",
    body=CreateTokenRequest,
    answers=GenerateAPIKeyResponse,
    status=201,
    refuses=(409,),
    audit=Audited("api_key", "create", "body:key"),
)
async def post_token(user: str) -> Response:
    """Create a long-lived token."""
    row = await _owner(user)
    body = await read_body(CreateTokenRequest)
    token = await api_tokens.create_token(context(), subject(), row, body, remote_ip())
    return reply(GenerateAPIKeyResponse(key=token), 201)


@route(
    blueprint,
    "GET",
    "/users/<user>/keys/tokens",
    scope="api_key:read",
    query={"include_all": bool, "include_expired": bool},
    answers=list[APIKeyWithOwner] | None,
)
async def get_tokens(user: str) -> Response:
    """Return tokens and their owners' names, as far as the caller may see them."""
    row = await _owner(user)
    query = Query()
    result = await api_tokens.list_tokens(
        context(),
        subject(),
        row,
        all_users=query.boolean("include_all"),
        with_expired=query.boolean("include_expired"),
    )
    # Upstream answers null for an empty list.
    return reply([keys.key_with_owner_view(key, name) for key, name in result] or None)


@route(blueprint, "GET", "/users/<user>/sessions", scope="api_key:read", answers=list[UserSession])
async def get_sessions(user: str) -> Response:
    """Return signed-in browsers and command lines; each can be revoked like any key."""
    row = await _owner(user)
    return reply(await keys.list_sessions(context(), subject(), row))


@route(blueprint, "GET", "/users/<user>/keys/tokens/tokenconfig", scope="api_key:read", answers=TokenConfig)
async def get_token_config(user: str) -> Response:
    """Return the token limits. Owners' tokens expire sooner: a leaked one compromises the site."""
    row = await _owner(user)
    longest = api_tokens.max_lifetime(context().config, row.rbac_roles)
    return reply(TokenConfig(max_token_lifetime=int(longest.total_seconds()) * 10**9))


@route(blueprint, "GET", "/users/<user>/keys/tokens/<name>", scope="api_key:read", answers=APIKey)
async def get_token(user: str, name: str) -> Response:
    row = await _owner(user)
    return reply(keys.key_view(await api_tokens.get_token(context(), subject(), row, name)))


@route(blueprint, "GET", "/users/<user>/keys/<key_id>", scope="api_key:read", answers=APIKey)
async def get_key(user: str, key_id: str) -> Response:
    row = await _owner(user)
    return reply(keys.key_view(await keys.get_key(context(), subject(), row, key_id)))


@route(
    blueprint,
    "DELETE",
    "/users/<user>/keys/<key_id>",
    scope="api_key:delete",
    status=204,
    audit=Audited("api_key", "delete", "path:1"),
)
async def delete_key(user: str, key_id: str) -> Response:
    row = await _owner(user)
    await keys.delete_key(context(), subject(), row, key_id)
    return no_content()


@route(
    blueprint,
    "PUT",
    "/users/<user>/keys/<key_id>/expire",
    scope="api_key:update",
    status=204,
    audit=Audited("api_key", "write", "path:1"),
)
async def put_expire(user: str, key_id: str) -> Response:
    row = await _owner(user)
    await keys.expire_key(context(), subject(), row, key_id)
    return no_content()


async def _owner(user: str) -> UserRow:
    return await users.resolve_user(context(), subject(), user)
