"""Create API keys and insert them. Only the response that creates a key contains its secret."""

from __future__ import annotations

import secrets
import string
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from coder.api.base.refusals import Unauthenticated
from coder.coderd.services.access.authentication import hash_secret
from coder.coderd.services.foundation import object_limits
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.access import system_keys
from coder.coderd.store.access.keys import KeyRow
from coder.coderd.store.login import oauth2 as oauth2_store
from coder.coderd.store.people import system_users
from coder.coderd.store.people.object_counts import lock_objects
from coder.domain.access.build_tokens import is_token_name
from coder.domain.access.user_agents import kept
from coder.domain.foundation.zero import ZERO_TIME

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.people.users import UserRow


_ALPHABET = string.ascii_letters + string.digits
ANY = ("*:*",)


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
    """Return a row to insert and its token."""
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
    """Insert a key for a user who proved their identity, and return the current user, locked against deletion.

    Raises Unauthenticated when the password was changed or the account deleted meanwhile: both end every key.
    """
    now = await system_users.get_user(tx, user.id, hold=True)
    if now is None or now.deleted or now.hashed_password != user.hashed_password:
        raise Unauthenticated("The account has changed meanwhile. Sign in again.")
    if row.login_type == "token":
        await key_store.insert_key(tx, row)
    else:
        await insert_session(tx, row)
    return now


async def derive_session(tx: Tx, parent: KeyRow, row: KeyRow) -> None:
    """Insert another session for the user of a key.

    Raises Unauthenticated when the key has ended meanwhile. Ending the key also ends the new session.
    """
    async with _derived_key(tx, parent.id, parent.user_id, row) as derived:
        await insert_session(tx, derived)


async def give_derived_key(tx: Tx, user: UserRow, row: KeyRow, parent_id: str) -> None:
    """Insert a key as `give_key` does, for the user of another key. Raises Unauthenticated."""
    async with _derived_key(tx, parent_id, user.id, row) as derived:
        await give_key(tx, user, derived)


@asynccontextmanager
async def _derived_key(tx: Tx, parent_id: str, user_id: UUID, row: KeyRow) -> AsyncIterator[KeyRow]:
    """Yield the key to insert for `user_id`, derived from the key `parent_id`. Raises Unauthenticated if it has ended.

    A key derived from a consent ends with the consent, however indirectly, and does not slide past its expiry. So does
    a key derived from a build's session token; it carries the same roles.
    """
    parent = await system_keys.get_key(tx, parent_id)
    if parent is None:
        raise Unauthenticated(_ENDED)
    consent = await oauth2_store.consent_of_key(tx, parent_id)
    # Lock in the order of every transaction that ends keys: the application, users, the key. A transaction that has
    # locked a user deletes every key that exists by then.
    if consent is not None and await oauth2_store.hold_app(tx, consent.app_id) is None:
        raise Unauthenticated(_ENDED)
    for locked_id in sorted({user_id, consent.user_id if consent else user_id}):
        await system_users.get_user(tx, locked_id, hold=True)
    # Refuse instead of creating an expired key: the application must ask its user again.
    is_expired = consent is not None and consent.expires_at <= row.created_at
    root_id = parent.build_key_id or parent_id  # locked first, as it is deleted first
    if is_expired or not await key_store.hold_key(tx, root_id) or not await key_store.hold_key(tx, parent_id):
        raise Unauthenticated(_ENDED)
    row = await _within_build(tx, row, parent_id)
    if consent is None:
        yield row
        return
    yield replace(row, expires_at=min(row.expires_at, consent.expires_at), lifetime_seconds=0)
    await oauth2_store.insert_made_key(tx, row.id, consent)


async def _within_build(tx: Tx, row: KeyRow, parent_id: str) -> KeyRow:
    """Return the key limited to the build that `parent_id` came from, if any. Raises Unauthenticated."""
    parent = await system_keys.get_key(tx, parent_id)  # again: its template's setting may have changed until the lock
    if parent is None:
        raise Unauthenticated(_ENDED)
    if parent.build_organization_id is None and not parent.build_key_id and not is_token_name(parent.token_name):
        return row
    return replace(
        row,
        expires_at=min(row.expires_at, parent.expires_at),
        lifetime_seconds=0,
        build_id=parent.build_id,
        build_template_id=parent.build_template_id,
        build_organization_id=parent.build_organization_id,
        build_key_id=parent.build_key_id or parent.id,
        build_roles=parent.build_roles,
    )


_ENDED = "The session has ended meanwhile. Sign in again."


async def insert_session(tx: Tx, row: KeyRow) -> None:
    """Insert the key of a login, which never fails for lack of room. The caller holds a lock on the user."""
    await lock_objects(tx, "sessions", row.user_id)  # of two concurrent logins, the second sees the key of the first
    await key_store.insert_key(tx, row)
    await key_store.keep_newest_sessions(tx, row.user_id, object_limits.MAX_SESSIONS, row.created_at)
