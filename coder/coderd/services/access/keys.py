"""API keys: made, shown, expired, deleted. The secret exists only in the answer that made it."""

from __future__ import annotations

import secrets
import string
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, cast

from msgspec import UNSET

from coder.api.access.keys import APIKey, APIKeyWithOwner, CreateTokenRequest, UserSession
from coder.api.base.refusals import Conflict, Forbidden, Invalid, NotFound, Unauthenticated
from coder.base.duration import from_nanoseconds
from coder.base.ids import random_name
from coder.coderd.services.access.authentication import hash_secret
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.foundation import object_limits
from coder.coderd.services.foundation.field_checks import check_request
from coder.coderd.services.foundation.uniqueness import told_as
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.access.keys import KeyRow
from coder.coderd.store.login import oauth2 as oauth2_store
from coder.coderd.store.people import users as user_store
from coder.coderd.store.people.object_counts import lock_objects
from coder.domain.access import scopes
from coder.domain.access.policy import KeyScope, Resource, Subject
from coder.domain.access.user_agents import kept
from coder.domain.foundation.zero import ZERO_TIME

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from coder.api.base.enums import LoginType
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.people.users import UserRow

_LEGACY = {"coder:all": "all", "coder:application_connect": "application_connect"}
_ALPHABET = string.ascii_letters + string.digits
ANY = ("*:*",)


def key_resource(user_id: UUID, key_id: str | None = None) -> Resource:
    return Resource("api_key", id=key_id, owner_id=user_id)


def new_key(
    user_id: UUID,
    login_type: str,
    lifetime: timedelta,
    now: datetime,
    *,
    scopes: Sequence[str] = ("coder:all",),
    allow_list: Sequence[str] = ANY,
    token_name: str = "",
    ip: str = "",
    user_agent: str = "",
) -> tuple[KeyRow, str]:
    """A row to insert and the token that opens it."""
    key_id, secret = _random(10), _random(22)
    row = KeyRow(
        id=key_id,
        user_id=user_id,
        hashed_secret=hash_secret(secret),
        last_used=ZERO_TIME,
        expires_at=now + lifetime,
        created_at=now,
        updated_at=now,
        login_type=login_type,
        lifetime_seconds=int(lifetime.total_seconds()),
        ip_address=ip,
        token_name=token_name,
        scopes=tuple(scopes),
        allow_list=tuple(allow_list),
        user_agent=kept(user_agent),
    )
    return row, f"{key_id}-{secret}"


def _random(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


async def give_key(tx: Tx, user: UserRow, row: KeyRow) -> UserRow:
    """A key for a person who proved to be `user`; returns the user as it is now, held. Raises Unauthenticated: the
    password was changed meanwhile, or the account deleted, which ends every key."""
    now = await user_store.get_user(tx, user.id, hold=True)
    if now is None or now.deleted or now.hashed_password != user.hashed_password:
        raise Unauthenticated("The account has changed meanwhile. Sign in again.")
    if row.login_type == "token":
        await key_store.insert_key(tx, row)
    else:
        await insert_session(tx, row)
    return now


async def pass_on(tx: Tx, shown: KeyRow, row: KeyRow) -> None:
    """Another session for whoever showed a key. Raises Unauthenticated: the key has ended meanwhile, and whatever ends
    it ends what was passed on of it, too."""
    async with _made_with(tx, shown.id, shown.user_id, row) as made:
        await insert_session(tx, made)


async def _give_made_key(tx: Tx, user: UserRow, row: KeyRow, shown: str) -> None:
    """`give_key` for whoever showed a key. Raises Unauthenticated."""
    async with _made_with(tx, shown, user.id, row) as made:
        await give_key(tx, user, made)


@asynccontextmanager
async def _made_with(tx: Tx, shown: str, user_id: UUID, row: KeyRow) -> AsyncIterator[KeyRow]:
    """The key to insert in the block for `user_id`, by whoever showed one. Raises Unauthenticated: that has ended
    meanwhile.

    What an application makes by its user's consent ends with the consent, however often it is passed on, and does not
    slide past its end.
    """
    consent = await oauth2_store.consent_of_key(tx, shown)
    # In the order of those who end them: the application, users, the key. Whoever locks a user ends all keys there
    # are by then.
    if consent is not None and await oauth2_store.hold_app(tx, consent.app_id) is None:
        raise Unauthenticated(_ENDED)
    for one in sorted({user_id, consent.user_id if consent else user_id}):
        await user_store.get_user(tx, one, hold=True)
    # Another key than one that is over at once: who asks is to ask its user again.
    is_over = consent is not None and consent.expires_at <= row.created_at
    if is_over or not await key_store.hold_key(tx, shown):
        raise Unauthenticated(_ENDED)
    if consent is None:
        yield row
        return
    yield replace(row, expires_at=min(row.expires_at, consent.expires_at), lifetime_seconds=0)
    await oauth2_store.insert_made_key(tx, row.id, consent)


_ENDED = "The session has ended meanwhile. Sign in again."


async def insert_session(tx: Tx, row: KeyRow) -> None:
    """The key of a signing in, for which there is always room. The caller holds the user, or locks them."""
    await lock_objects(tx, "sessions", row.user_id)  # of two at once the second sees what the first made
    await key_store.insert_key(tx, row)
    await key_store.keep_newest_sessions(tx, row.user_id, object_limits.MOST_SESSIONS, row.created_at)


async def create_session_key(ctx: Context, subject: Subject, user: UserRow, ip: str) -> str:
    """The key a browser hands to a CLI: like a session, with the default lifetime of a token, or the longest.

    Raises Forbidden for a caller whose own key is limited: this one would not be.
    """
    require(subject, "create", key_resource(user.id))
    check_reach(subject, scopes.ALL)
    lifetime = min(ctx.config.default_token_lifetime, max_lifetime(ctx, user))
    row, token = new_key(user.id, "password", lifetime, ctx.clock.now(), ip=ip)
    await ctx.db.run(_give_made_key, user, row, subject.key_id)
    return token


async def _give_token(tx: Tx, user: UserRow, row: KeyRow, shown: str) -> None:
    """Raises Unauthenticated, Conflict."""
    async with object_limits.within_limit(tx, "tokens", user.id, row.created_at):
        await _give_made_key(tx, user, row, shown)


async def create_token(
    ctx: Context,
    subject: Subject,
    user: UserRow,
    wanted: CreateTokenRequest,
    ip: str,
) -> str:
    """A long-lived token. Raises Invalid, Conflict (name taken, too many), NotFound."""
    require(subject, "create", key_resource(user.id))
    longest = max_lifetime(ctx, user)
    lifetime = from_nanoseconds(wanted.lifetime) or min(ctx.config.default_token_lifetime, longest)
    check_request(wanted)
    if lifetime > longest:
        raise Invalid("Failed to validate create API key request.", f"lifetime must be less than {_hours(longest)}")
    names = list(wanted.scopes or ()) if wanted.scopes is not UNSET else []
    if wanted.scope and not names:
        names = [wanted.scope]
    allow_list = list(wanted.allow_list) if wanted.allow_list is not UNSET else []
    check_reach(subject, scopes.combined(list(names) or ["coder:all"], list(allow_list) or ANY))
    row, token = new_key(
        user.id,
        "token",
        lifetime,
        ctx.clock.now(),
        scopes=sorted({scopes.canonical(scope) for scope in names}) or ("coder:all",),
        allow_list=allow_list or ANY,
        token_name=wanted.token_name or random_name(),
        ip=ip,
    )
    taken = Conflict(
        f'A token with name "{wanted.token_name}" already exists.',
        validations=[("name", "This value is already in use and should be unique.")],
    )
    with told_as({"ix_api_keys_token_name": taken}):
        await ctx.db.run(_give_token, user, row, subject.key_id)
    return token


def check_reach(subject: Subject, wanted: KeyScope) -> None:
    """A key with limits must not make one, or anything as strong, without them. Raises Forbidden."""
    if subject.kind == "user" and scopes.exceeds(wanted, subject.scope):
        raise Forbidden(
            "The new key would reach further than the key you used.",
            "Ask for scopes and an allow_list within those of your own key, or sign in without a limited token.",
        )


def _hours(value: timedelta) -> str:
    hours, rest = divmod(int(value.total_seconds()), 3600)
    return f"{hours}h{rest // 60}m{rest % 60}s"


def max_lifetime(ctx: Context, user: UserRow) -> timedelta:
    """Owners' tokens live shorter: losing one loses the site."""
    if "owner" in user.rbac_roles:
        return min(ctx.config.max_admin_token_lifetime, ctx.config.max_token_lifetime)
    return ctx.config.max_token_lifetime


async def list_tokens(
    ctx: Context, subject: Subject, user: UserRow, *, everybody: bool, with_expired: bool
) -> list[tuple[KeyRow, str]]:
    """Tokens and their owners' names, as far as the caller may see them."""
    now = None if with_expired else ctx.clock.now()
    found = await ctx.db.read(key_store.list_tokens, None if everybody else user.id, now)
    return [pair for pair in found if may(subject, "read", key_resource(pair[0].user_id, pair[0].id))]


async def list_sessions(ctx: Context, subject: Subject, user: UserRow) -> list[UserSession]:
    """Where somebody is signed in, as far as the caller may see it."""
    found = await ctx.db.read(key_store.list_sessions, user.id, ctx.clock.now())
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
        for row in found
        if may(subject, "read", key_resource(row.user_id, row.id))
    ]


async def get_key(ctx: Context, subject: Subject, user: UserRow, key_id: str, action: str = "read") -> KeyRow:
    """Raises NotFound, also for a key of somebody else than `user`."""
    row = await ctx.db.read(key_store.get_key, key_id)
    if row is None or row.user_id != user.id:
        raise NotFound
    require(subject, action, key_resource(user.id, key_id))
    return row


async def get_token(ctx: Context, subject: Subject, user: UserRow, name: str) -> KeyRow:
    row = await ctx.db.read(key_store.get_token_by_name, user.id, name)
    if row is None:
        raise NotFound
    require(subject, "read", key_resource(user.id, row.id))
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
