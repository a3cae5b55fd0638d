"""Authentication: from a session token to a `Subject`.

Used by HTTP and RPC endpoints alike. The texts of the refusals and the sliding of sessions are upstream's.
`domain/access/credentials.py` has the places of a token in a request, `auth_cache.py` caches rows for a moment.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Unauthenticated
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from coder.domain.access import build_tokens, scopes
from coder.domain.access.credentials import SESSION_COOKIE, SIGNED_OUT, Credentials
from coder.domain.access.policy import OTHERS_WORKSPACES, Subject
from coder.domain.access.user_agents import kept
from coder.domain.foundation.names import is_word

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_TOUCH_EVERY = timedelta(hours=1)  # at most this often last_used and the expiry are written, as upstream does


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated request: the subject, its user and the key."""

    subject: Subject
    user: key_store.KeyUser
    key: key_store.KeyRow
    credentials: Credentials


def split_token(token: str) -> tuple[str, str]:
    """Split `<10 characters>-<22 characters>`. Raises Unauthenticated with upstream's details."""
    parts = token.split("-")
    if len(parts) != 2:
        raise refuse(f"Invalid API key format: incorrect amount of API key parts, expected 2 got {len(parts)}")
    key_id, secret = parts
    if len(key_id) != 10:
        raise refuse(f"Invalid API key format: invalid API key ID length, expected 10 got {len(key_id)}")
    if len(secret) != 22:
        raise refuse(f"Invalid API key format: invalid API key secret length, expected 22 got {len(secret)}")
    if not is_word(key_id):  # no key has such an id, and the database would reject the query
        raise refuse("API key is invalid.")
    return key_id, secret


def refuse(detail: str, message: str = SIGNED_OUT) -> Unauthenticated:
    return Unauthenticated(message, detail)


def hash_secret(secret: str) -> bytes:
    """Return the hash to store for a random secret: 22 characters need no slow hash."""
    return hashlib.sha256(secret.encode()).digest()


async def authenticate(ctx: Context, credentials: Credentials) -> Caller:
    """Return the caller of a user's token. Raises Unauthenticated. Slides the session when it is due."""
    key, user = await recognize(ctx, credentials)
    now = ctx.clock.now()
    if await _touch(ctx, key, user, credentials, now):
        cache = ctx.services.auth_cache
        cache.forget(key.id)
        user = replace(user, last_seen_at=now, updated_at=now, status="active")
    return Caller(subject_of(ctx, user, key), user, key, credentials)


async def recognize(ctx: Context, credentials: Credentials) -> tuple[key_store.KeyRow, key_store.KeyUser]:
    """Return the key and its user without counting it as use. Raises Unauthenticated."""
    if not credentials.token:
        raise refuse(f'Cookie "{SESSION_COOKIE}" or query parameter must be provided.')
    key_id, secret = split_token(credentials.token)
    return await _check_key(ctx, key_id, secret)


async def recognize_key(ctx: Context, key_id: str) -> tuple[key_store.KeyRow, key_store.KeyUser]:
    """Return the key that a signed ticket names, and its user. Raises Unauthenticated when the key has ended."""
    return await _check_key(ctx, key_id, None)


async def _check_key(ctx: Context, key_id: str, secret: str | None) -> tuple[key_store.KeyRow, key_store.KeyUser]:
    key_and_user = await ctx.services.auth_cache.find(key_id)
    if key_and_user is None:
        raise refuse("API key is invalid.")
    key, user = key_and_user
    if secret is not None and not hmac.compare_digest(key.hashed_secret, hash_secret(secret)):
        raise refuse("API key secret is invalid.")
    if key.expires_at <= ctx.clock.now():
        raise refuse(f'API key expired at "{_go_time(key.expires_at)}".')
    if user.id == PREBUILDS_USER_ID:
        raise refuse("API key is invalid.")  # no caller is the system user; its workspaces once had keys
    if user.status == "suspended" or user.deleted:
        raise Unauthenticated(
            f'User is not active (status = "{user.status}"). Contact an admin to reactivate your account.'
        )
    if key.build_organization_id is not None and key.build_organization_id not in user.organization_roles:
        raise refuse("The API key came from a workspace build, and its user has left the organization.")
    return key, user


def subject_of(ctx: Context, user: key_store.KeyUser, key: key_store.KeyRow | None = None) -> Subject:
    """Return the subject of a user, limited to the key's scopes, and to the roles that a build's token carries."""
    subject = Subject(
        kind="user",
        user_id=user.id,
        username=user.username,
        site_roles=frozenset(user.rbac_roles),
        organization_roles=user.organization_roles,
        group_ids=user.group_ids,
        scope=scopes.combined(key.scopes, key.allow_list) if key else scopes.ALL,
        custom_roles=user.custom_roles,
        key_id=key.id if key else "",
        site_denied=OTHERS_WORKSPACES if ctx.config.disable_owner_workspace_access else {},
        shares_workspaces=not ctx.config.disable_workspace_sharing,
    )
    if key is None or key.build_organization_id is None:
        return subject
    return build_tokens.narrow(subject, key.build_organization_id, key.build_roles)


async def user_subject(ctx: Context, user_id: UUID) -> Subject | None:
    """Return the subject of a user without a key (a build acting for its owner); None for an unknown user."""
    user = await ctx.db.read(key_store.find_user_with_roles, user_id)
    return None if user is None else subject_of(ctx, user)


async def _touch(
    ctx: Context, key: key_store.KeyRow, user: key_store.KeyUser, credentials: Credentials, now: datetime
) -> bool:
    """Update the key and its user when due. Return True if something was written."""
    expires_at: datetime | None = None
    lifetime = timedelta(seconds=key.lifetime_seconds)
    if not ctx.config.disable_session_expiry_refresh and key.expires_at - now <= lifetime - _TOUCH_EVERY:
        expires_at = now + lifetime
    stale = now - key.last_used >= _TOUCH_EVERY
    if not stale and expires_at is None and user.status != "dormant":
        return False

    async def write(tx: Tx) -> None:
        await key_store.touch(
            tx,
            key.id,
            user.id,
            now,
            expires_at=expires_at,
            ip=credentials.remote_ip,
            user_agent=kept(credentials.user_agent),
            activate=user.status == "dormant",
        )

    await ctx.db.run(write)
    return True


def _go_time(value: datetime) -> str:
    """Format a time as Go prints it by default: `2026-01-02 03:04:05.678901 +0000 UTC`."""
    fraction = f".{value.microsecond:06d}".rstrip("0") if value.microsecond else ""
    return value.strftime("%Y-%m-%d %H:%M:%S") + fraction + " +0000 UTC"
