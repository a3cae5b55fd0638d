"""Revocation of an application's tokens (RFC 7009), by the application and by its user."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Unauthenticated
from coder.coderd.services.access.authentication import hash_secret, split_token
from coder.coderd.services.access.authorization import require
from coder.coderd.services.login.oauth2_client_authentication import Client
from coder.coderd.store.access import system_keys
from coder.coderd.store.login import oauth2 as store
from coder.coderd.store.login.oauth2 import OAuth2AppRow
from coder.domain.access.policy import Class, Subject
from coder.domain.foundation.zero import NIL_UUID
from coder.domain.login.oauth2 import split_secret

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


async def revoke(ctx: Context, client: Client, token: str) -> None:
    """Revoke an access or refresh token of the application. An unknown token counts as revoked (RFC 7009)."""
    app, parts = client.app, split_secret(token)
    if parts is not None:
        await ctx.db.run(_revoke, app.id, parts[0], hash_secret(parts[1]))
        return
    try:
        key_id, secret = split_token(token)
    except Unauthenticated:
        return
    row = await ctx.db.read(store.find_token_of_key, key_id)
    key = await ctx.db.read(system_keys.get_key, key_id)
    if row is None or key is None or row.app_id != app.id:
        return
    if hmac.compare_digest(key.hashed_secret, hash_secret(secret)):
        await ctx.db.run(store.revoke_grant, app.id, row.user_id, row.grant_id)


async def _revoke(tx: Tx, app_id: UUID, prefix: str, hashed: bytes) -> None:
    """Revoke a refresh token or code. If it is used, or being used, revoke the tokens issued for it, too."""
    grant = await store.grant_of_token(tx, prefix, hashed, app_id)
    if grant is not None:
        await store.revoke_grant(tx, app_id, *grant)


async def revoke_all(ctx: Context, subject: Subject, app: OAuth2AppRow) -> None:
    """Revoke everything a user has granted to an application."""
    if subject.user_id == NIL_UUID:
        raise Unauthenticated("Only a user can revoke an application's access.")
    require(subject, "delete", Class("oauth2_app_code_token", owner_id=subject.user_id))
    await ctx.db.run(store.delete_tokens_of, app.id, subject.user_id)
