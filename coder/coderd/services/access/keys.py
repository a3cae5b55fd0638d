"""API keys: read, expire, delete and present them. `new_keys` and `api_tokens` create them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from coder.api.access.keys import APIKey, APIKeyWithOwner, UserSession
from coder.api.base.enums import LoginType
from coder.api.base.refusals import NotFound
from coder.coderd.services.access.authorization import may, require
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.access import system_keys
from coder.coderd.store.access.keys import KeyRow
from coder.domain.access.policy import Class, Object, Subject

if TYPE_CHECKING:
    from uuid import UUID

    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.people.users import UserRow

_LEGACY = {"coder:all": "all", "coder:application_connect": "application_connect"}


def key_resource(user_id: UUID, key_id: str) -> Object:
    """Return the policy's object of a key."""
    return Object("api_key", key_id, owner_id=user_id)


def keys_of(user_id: UUID) -> Class:
    """Return the policy's class of a user's keys."""
    return Class("api_key", owner_id=user_id)


async def list_sessions(ctx: Context, subject: Subject, user: UserRow) -> list[UserSession]:
    """List the sessions of a user that the caller may see."""
    rows = await ctx.db.read(key_store.list_sessions, user.id, ctx.clock.now())
    return [
        UserSession(
            id=row.id,
            created_at=row.created_at,
            last_used=row.last_used,
            expires_at=row.expires_at,
            ip_address=str(row.ip_address),
            user_agent=row.user_agent,
            login_type=cast("LoginType", row.login_type),
            scopes=list(row.scopes),
            current=row.id == subject.key_id,
        )
        for row in rows
        if may(subject, "read", key_resource(row.user_id, row.id))
    ]


async def get_key(ctx: Context, subject: Subject, user: UserRow, key_id: str, action: str = "read") -> KeyRow:
    """Load a key of `user`. Raises NotFound, also for a key of another user."""
    row = await ctx.db.read(system_keys.get_key, key_id)
    if row is None or row.user_id != user.id:
        raise NotFound
    require(subject, action, key_resource(user.id, key_id))
    return row


async def expire_key(ctx: Context, subject: Subject, user: UserRow, key_id: str) -> None:
    row = await get_key(ctx, subject, user, key_id, "update")
    await ctx.db.run(key_store.expire_key, row.id, ctx.clock.now())


async def delete_key(ctx: Context, subject: Subject, user: UserRow, key_id: str) -> None:
    row = await get_key(ctx, subject, user, key_id, "delete")
    await ctx.db.run(key_store.delete_key, row.id)


def key_view(row: KeyRow) -> APIKey:
    return APIKey(
        id=row.id,
        user_id=row.user_id,
        last_used=row.last_used,
        expires_at=row.expires_at,
        created_at=row.created_at,
        updated_at=row.updated_at,
        login_type=cast("LoginType", row.login_type),
        scope=_LEGACY.get(row.scopes[0], "") if len(row.scopes) == 1 else "",
        scopes=list(row.scopes),
        token_name=row.token_name,
        lifetime_seconds=row.lifetime_seconds,
        allow_list=list(row.allow_list),
    )


def key_with_owner_view(row: KeyRow, username: str) -> APIKeyWithOwner:
    view = key_view(row)
    return APIKeyWithOwner(**{name: getattr(view, name) for name in view.__struct_fields__}, username=username)
