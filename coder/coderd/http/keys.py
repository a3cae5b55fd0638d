"""API keys and tokens of a user, and the scopes a token may have."""

from __future__ import annotations

from datetime import timedelta

from msgspec import UNSET
from quart import Blueprint, Response

from coder.api.keys import CreateTokenRequest, ExternalAPIKeyScopes, GenerateAPIKeyResponse, TokenConfig
from coder.coderd.http.auth import authenticated, context, remote_ip, subject
from coder.coderd.http.json import no_content, read_body, reply
from coder.coderd.http.query import Query
from coder.coderd.services import keys, users
from coder.coderd.store.users import UserRow
from coder.domain import scopes

blueprint = Blueprint("keys", __name__, url_prefix="/api/v2")


@blueprint.get("/auth/scopes")
async def get_scopes() -> Response:
    return reply(ExternalAPIKeyScopes(external=list(scopes.external())))  # type: ignore[arg-type]


@blueprint.post("/users/<user>/keys")
@authenticated
async def post_key(user: str) -> Response:
    row = await _owner(user)
    token = await keys.create_session_key(context(), subject(), row, remote_ip())
    return reply(GenerateAPIKeyResponse(key=token), 201)


@blueprint.post("/users/<user>/keys/tokens")
@authenticated
async def post_token(user: str) -> Response:
    row = await _owner(user)
    body = await read_body(CreateTokenRequest)
    names = list(body.scopes or ()) if body.scopes is not UNSET else []
    if body.scope is not UNSET and body.scope and not names:
        names = [body.scope]
    token = await keys.create_token(
        context(),
        subject(),
        row,
        name=body.token_name,
        lifetime=timedelta(microseconds=body.lifetime / 1000),
        names=names,
        allow_list=list(body.allow_list) if body.allow_list is not UNSET else [],
        ip=remote_ip(),
    )
    return reply(GenerateAPIKeyResponse(key=token), 201)


@blueprint.get("/users/<user>/keys/tokens")
@authenticated
async def get_tokens(user: str) -> Response:
    row = await _owner(user)
    query = Query()
    found = await keys.list_tokens(
        context(),
        subject(),
        row,
        everybody=query.boolean("include_all"),
        with_expired=query.boolean("include_expired"),
    )
    # Upstream answers null for nothing.
    return reply([keys.key_with_owner_view(key, name) for key, name in found] or None)


@blueprint.get("/users/<user>/keys/tokens/tokenconfig")
@authenticated
async def get_token_config(user: str) -> Response:
    row = await _owner(user)
    longest = keys.max_lifetime(context(), row)
    return reply(TokenConfig(max_token_lifetime=int(longest.total_seconds()) * 10**9))


@blueprint.get("/users/<user>/keys/tokens/<name>")
@authenticated
async def get_token(user: str, name: str) -> Response:
    row = await _owner(user)
    return reply(keys.key_view(await keys.get_token(context(), subject(), row, name)))


@blueprint.get("/users/<user>/keys/<key_id>")
@authenticated
async def get_key(user: str, key_id: str) -> Response:
    row = await _owner(user)
    return reply(keys.key_view(await keys.get_key(context(), subject(), row, key_id)))


@blueprint.delete("/users/<user>/keys/<key_id>")
@authenticated
async def delete_key(user: str, key_id: str) -> Response:
    row = await _owner(user)
    await keys.delete_key(context(), subject(), row, key_id)
    return no_content()


@blueprint.put("/users/<user>/keys/<key_id>/expire")
@authenticated
async def put_expire(user: str, key_id: str) -> Response:
    row = await _owner(user)
    await keys.expire_key(context(), subject(), row, key_id)
    return no_content()


async def _owner(user: str) -> UserRow:
    return await users.resolve_user(context(), subject(), user)
