"""Dynamic client registration (RFC 7591) and its management (RFC 7592)."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.base.ids import new_uuid
from coder.base.json_types import Json, JsonObject, as_text, as_texts
from coder.coderd.services.access.authentication import hash_secret
from coder.coderd.services.login.oauth2_apps import new_secret, secret_row
from coder.coderd.services.login.oauth2_client_authentication import GrantError
from coder.coderd.services.login.oauth2_settings import dynamic_registration
from coder.coderd.store.login import oauth2 as store
from coder.coderd.store.login import system_oauth2
from coder.coderd.store.login.oauth2 import OAuth2AppRow
from coder.domain.login.oauth2 import may_be_legacy, redirect_problem

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_METHODS = ("client_secret_basic", "client_secret_post", "none")
_GRANTS = ("authorization_code", "refresh_token")
_DEFAULTS: Mapping[str, Json] = {
    "grant_types": list(_GRANTS),
    "response_types": ["code"],
    "token_endpoint_auth_method": "client_secret_basic",
}
_METADATA = (
    "client_name",
    "client_uri",
    "contacts",
    "jwks",
    "jwks_uri",
    "logo_uri",
    "policy_uri",
    "redirect_uris",
    "scope",
    "software_id",
    "software_version",
    "tos_uri",
)
_LISTS = frozenset({"redirect_uris", "contacts", "grant_types", "response_types"})
_MOST, _LONGEST = 50, 2048
"""Values in a list of metadata, and characters of a value. Ours."""


async def register(ctx: Context, requested: Mapping[str, Json]) -> tuple[OAuth2AppRow, str, str]:
    """Register a client. Return (application, client secret, registration token); the secrets are not shown again.

    Raises GrantError.
    """
    if not await dynamic_registration(ctx):
        raise GrantError("invalid_request", "Dynamic client registration is disabled on this deployment", 403)
    metadata = _accepted(requested)
    now = ctx.clock.now()
    _, _, token = new_secret()
    row = OAuth2AppRow(
        id=new_uuid(),
        created_at=now,
        updated_at=now,
        name=as_text(metadata.get("client_name")) or "OAuth2 client",
        icon=str(metadata.get("logo_uri") or ""),
        callback_url=as_texts(metadata["redirect_uris"])[0],
        redirect_uris=tuple(as_texts(metadata["redirect_uris"])),
        public_client=_is_public(metadata),
        registration=metadata,
        registration_token_hash=hash_secret(token),
    )
    secret, text = secret_row(ctx, row.id)
    await ctx.db.run(store.insert_app, row, secret)
    return row, text, token


async def find_client(ctx: Context, client_id: UUID, authorization: str) -> OAuth2AppRow:
    """Return the client of a registration token. Raises GrantError invalid_token (401)."""
    if not authorization:
        raise GrantError("invalid_token", "Missing Authorization header", 401)
    kind, _, token = authorization.partition(" ")
    if kind.lower() != "bearer" or not token:
        raise GrantError("invalid_token", "Authorization header must use Bearer scheme", 401)
    row = await ctx.db.read(system_oauth2.get_app, client_id)
    if row is None or row.registration_token_hash is None:
        raise GrantError("invalid_token", "Client not found", 401)
    if not hmac.compare_digest(row.registration_token_hash, hash_secret(token.strip())):
        raise GrantError("invalid_token", "Invalid registration access token", 401)
    return row


async def change(ctx: Context, row: OAuth2AppRow, metadata: Mapping[str, Json]) -> OAuth2AppRow:
    """Replace the client's metadata. Raises GrantError.

    A client that becomes public loses the permission to log in users without PKCE.
    """
    return await ctx.db.run(_change, row.id, _accepted(metadata), ctx.clock.now())


async def _change(tx: Tx, app_id: UUID, metadata: JsonObject, now: datetime) -> OAuth2AppRow:
    row = await store.lock_app(tx, app_id)
    if row is None:
        raise GrantError("invalid_token", "Client not found", 401)
    is_public = _is_public(metadata)
    await store.update_app(
        tx,
        app_id,
        updated_at=now,
        name=as_text(metadata.get("client_name")) or row.name,
        icon=str(metadata.get("logo_uri") or ""),
        callback_url=as_texts(metadata["redirect_uris"])[0],
        redirect_uris=tuple(as_texts(metadata["redirect_uris"])),
        public_client=is_public,
        registration=metadata,
        legacy=row.legacy and may_be_legacy(public_client=is_public),
    )
    return await store.lock_app(tx, app_id) or row


async def remove(ctx: Context, row: OAuth2AppRow) -> None:
    """Delete a client and its tokens."""
    await ctx.db.run(store.delete_app, row.id)


def _is_public(metadata: Mapping[str, Json]) -> bool:
    """Whether the client is public (RFC 6749 section 2.1): an application on a user's machine keeps no secret."""
    method = as_text(metadata["token_endpoint_auth_method"])
    return method == "none"


def _accepted(requested: Mapping[str, Json]) -> JsonObject:
    """Return the metadata to store, with defaults. Raises GrantError invalid_client_metadata."""
    metadata = {**_DEFAULTS, **{name: requested[name] for name in (*_METADATA, *_DEFAULTS) if requested.get(name)}}
    uris = metadata.get("redirect_uris")
    problem = redirect_problem([str(uri) for uri in uris] if isinstance(uris, list) else []) or _type_problem(metadata)
    if not problem and metadata["token_endpoint_auth_method"] not in _METHODS:
        problem = f"unsupported token_endpoint_auth_method: {metadata['token_endpoint_auth_method']}"
    for kind in as_texts(metadata["grant_types"]) if not problem else ():
        if kind not in _GRANTS:
            problem = f"unsupported grant_type: {kind}"
    if not problem and metadata["response_types"] != ["code"]:
        problem = "unsupported response_types: only code is supported"
    if problem:
        raise GrantError("invalid_client_metadata", problem)
    return metadata


def _type_problem(metadata: Mapping[str, Json]) -> str:
    """Return the fault of a value with another type than RFC 7591 section 2 says, or too long: any client may
    register.
    """
    for name, value in metadata.items():
        items = value if name in _LISTS and isinstance(value, list) else None
        if name in _LISTS and items is None:
            return f"{name} must be a list"
        if name == "jwks":
            if not isinstance(value, dict):
                return "jwks must be an object"
            continue
        if items is not None and len(items) > _MOST:
            return f"{name} holds more than {_MOST} values"
        for text in items if items is not None else [value]:
            if not isinstance(text, str) or "\x00" in text or len(text) > _LONGEST:
                return f"{name} must be text of at most {_LONGEST} characters"
    return ""
