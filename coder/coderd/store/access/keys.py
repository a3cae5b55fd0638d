"""Queries about API keys, and the first query of every request: key -> user with roles."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias, TypeVar
from uuid import UUID

from sqlalchemy import TextClause, and_, bindparam, case, delete, func, insert, or_, select, text, tuple_, update

from coder.coderd.store.engine.pubsub import notify, notify_all
from coder.coderd.store.engine.sql_types import ColumnValues, SqlColumn, SqlValues
from coder.coderd.store.tables.oauth2 import (
    oauth2_provider_app_codes,
    oauth2_provider_app_made_keys,
    oauth2_provider_app_tokens,
)
from coder.coderd.store.tables.people import api_keys, users
from coder.domain.access.roles import BuiltinRole

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement

    from coder.api.base.enums import LoginType, UserStatus
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class KeyRow:
    """API key without its secret (only the hash is stored)."""

    id: str
    user_id: UUID
    hashed_secret: bytes
    last_used: datetime
    expires_at: datetime
    created_at: datetime
    updated_at: datetime
    login_type: str
    lifetime_seconds: int
    ip_address: str
    token_name: str
    scopes: Sequence[str]
    allow_list: Sequence[str]
    user_agent: str = ""
    """User agent of the last use, as `coder/domain/access/user_agents.py` shortens it."""
    build_id: UUID | None = None
    "Workspace build that got this key, or the key that created it; None for all other keys."
    build_template_id: UUID | None = None
    build_organization_id: UUID | None = None
    build_key_id: str | None = None
    "The build's key that created this one and ends it."
    build_roles: str | None = None
    """Roles that a build's key carries, see `coder/domain/access/build_tokens.py`."""


_OrganizationRoles = Mapping[UUID, frozenset[str]]
_CustomRoles = Mapping[tuple[UUID, str], BuiltinRole]


@dataclass(frozen=True, slots=True)
class Rights:
    """All fields of a user that affect permissions; compared."""

    site_roles: frozenset[str]
    organization_roles: _OrganizationRoles
    group_ids: frozenset[UUID]
    custom_roles: _CustomRoles


@dataclass(frozen=True, slots=True)
class KeyUser:
    """User for authentication: the row, with memberships in the same query."""

    id: UUID
    email: str
    username: str
    name: str
    avatar_url: str
    created_at: datetime
    updated_at: datetime
    last_seen_at: datetime
    status: UserStatus
    login_type: LoginType
    rbac_roles: Sequence[str]
    deleted: bool
    is_service_account: bool
    organization_roles: _OrganizationRoles = field(default_factory=dict)
    group_ids: frozenset[UUID] = frozenset()
    custom_roles: _CustomRoles = field(default_factory=dict)

    @property
    def rights(self) -> Rights:
        return Rights(frozenset(self.rbac_roles), self.organization_roles, self.group_ids, self.custom_roles)


KEY_COLUMNS = tuple(api_keys.c[name] for name in KeyRow.__slots__)
Item = TypeVar("Item")
_USER_NAMES = KeyUser.__slots__[:13]
_USER_COLUMNS = tuple(users.c[name] for name in _USER_NAMES)

# One statement and one row for any number of memberships: this runs on every request.
_MEMBERSHIPS = text(
    """(SELECT json_agg(json_build_array(m.organization_id, m.roles || o.default_member_roles)
                         ORDER BY o.is_default DESC, m.organization_id)
        FROM organization_members m JOIN organizations o ON o.id = m.organization_id
        WHERE m.user_id = users.id AND NOT o.deleted)"""
)
_GROUPS = text("(SELECT array_agg(g.group_id) FROM group_members g WHERE g.user_id = users.id)")
_CUSTOM = text(
    """(SELECT json_agg(json_build_array(c.organization_id, c.name, c.display_name, c.permissions))
        FROM custom_roles c JOIN organization_members m ON m.organization_id = c.organization_id
            JOIN organizations o ON o.id = m.organization_id
        WHERE m.user_id = users.id AND NOT o.deleted AND c.name = ANY(m.roles || o.default_member_roles))"""
)


def _extra(sql: TextClause, name: str) -> SqlColumn:
    from sqlalchemy import literal_column

    return literal_column(sql.text).label(name)


_ROLE_COLUMNS = (_extra(_MEMBERSHIPS, "memberships"), _extra(_GROUPS, "groups"), _extra(_CUSTOM, "custom"))
_FIND_CALLER = (
    select(*KEY_COLUMNS, *_USER_COLUMNS, *_ROLE_COLUMNS)
    .select_from(api_keys.join(users, users.c.id == api_keys.c.user_id))
    .where(api_keys.c.id == bindparam("key_id"))
)
"Built once: composing a statement costs as much as running it."


_Permissions: TypeAlias = Mapping[str, Mapping[str, Sequence[str]]]


def _user(values: SqlValues) -> KeyUser:
    named = dict(zip(_USER_NAMES, values[:13], strict=True))
    organization_roles, group_ids, custom_roles = _memberships(values[13:])
    return KeyUser(**named, organization_roles=organization_roles, group_ids=group_ids, custom_roles=custom_roles)


def _memberships(values: SqlValues) -> tuple[_OrganizationRoles, frozenset[UUID], _CustomRoles]:
    memberships: Sequence[tuple[str, list[str]]] = _json(values[0])
    groups: list[UUID] | None = values[1]
    custom: Sequence[tuple[str, str, str, _Permissions]] = _json(values[2])
    return (
        {UUID(o): frozenset(roles) for o, roles in memberships},
        frozenset(groups or ()),
        {(UUID(o), name): _custom_role(name, title, permissions) for o, name, title, permissions in custom},
    )


def _json(value: str | Sequence[Item] | None) -> Sequence[Item]:
    import json

    if not isinstance(value, str):
        return value or ()
    items: Sequence[Item] = json.loads(value)
    return items


def _custom_role(name: str, title: str, permissions: _Permissions) -> BuiltinRole:
    def table(level: str) -> dict[str, frozenset[str]]:
        return {resource: frozenset(actions) for resource, actions in permissions.get(level, {}).items()}

    return BuiltinRole(
        name,
        title,
        organization=table("organization"),
        organization_denied=table("organization_denied"),
        member=table("member"),
    )


async def find_caller(tx: Tx, key_id: str) -> tuple[KeyRow, KeyUser] | None:
    row = (await tx.execute(_FIND_CALLER, {"key_id": key_id})).one_or_none()
    if row is None:
        return None
    count = len(KEY_COLUMNS)
    return KeyRow(*row[:count]), _user(row[count:])


async def find_user_with_roles(tx: Tx, user_id: UUID) -> KeyUser | None:
    statement = select(*_USER_COLUMNS, *_ROLE_COLUMNS).where(users.c.id == user_id)
    row = (await tx.execute(statement)).one_or_none()
    return None if row is None else _user(row)


async def find_rights(tx: Tx, user_ids: Collection[UUID]) -> dict[UUID, Rights]:
    """Return the rights of each living user."""
    statement = select(users.c.id, users.c.rbac_roles, *_ROLE_COLUMNS)
    rows = await tx.execute(statement.where(users.c.id.in_(user_ids), ~users.c.deleted))
    return {row[0]: Rights(frozenset(row[1]), *_memberships(row[2:])) for row in rows}


async def touch(
    tx: Tx,
    key_id: str,
    user_id: UUID,
    now: datetime,
    *,
    expires_at: datetime | None,
    ip: str,
    user_agent: str,
    activate: bool,
) -> None:
    """Record the use of a key, extend it when `expires_at` is passed, activate a dormant user."""
    values: ColumnValues = {"last_used": now, "ip_address": ip}  # a use does not change the key itself
    if user_agent:  # a missing user agent keeps the last one
        values["user_agent"] = user_agent
    if expires_at is not None:
        values["expires_at"] = expires_at
    # last_seen_at counts as a change, too: clients find both times equal
    seen: ColumnValues = {"last_seen_at": now, "updated_at": now}
    if activate:  # a user suspended since the caller was read stays suspended
        seen["status"] = case((users.c.status == "dormant", "active"), else_=users.c.status)
    # Locks the user first, as the deletion of all keys of a user does.
    await tx.execute(update(users).where(users.c.id == user_id).values(**seen))
    await tx.execute(update(api_keys).where(api_keys.c.id == key_id).values(**values))


async def insert_key(tx: Tx, row: KeyRow) -> None:
    await tx.execute(insert(api_keys).values({name: getattr(row, name) for name in KeyRow.__slots__}))


async def hold_key(tx: Tx, key_id: str) -> bool:
    """Return whether the key exists; it is not deleted until the transaction ends."""
    statement = select(api_keys.c.id).where(api_keys.c.id == key_id).with_for_update(read=True, key_share=True)
    return (await tx.execute(statement)).one_or_none() is not None


async def list_tokens(tx: Tx, user_id: UUID | None, expired_before: datetime | None) -> list[tuple[KeyRow, str]]:
    """Return tokens with their owners' names, by token name. `expired_before` leaves out tokens that expired before
    then."""
    statement = (
        select(*KEY_COLUMNS, users.c.username)
        .join(users, users.c.id == api_keys.c.user_id)
        .where(api_keys.c.login_type == "token")
        .order_by(api_keys.c.token_name.collate("C"))
    )
    if user_id is not None:
        statement = statement.where(api_keys.c.user_id == user_id)
    if expired_before is not None:
        statement = statement.where(api_keys.c.expires_at > expired_before)
    return [(KeyRow(*row[:-1]), row[-1]) for row in await tx.execute(statement)]


APPLICATION = "oauth2_provider_app"
"""Login type of access tokens of OAuth2 applications."""
NO_SESSIONS = ("token", APPLICATION)
MAX_LISTED_SESSIONS = 500
"""Maximum of one list: a program that signs in each minute would otherwise make it endless."""


def _sessions_of(user_id: UUID) -> ColumnElement[bool]:
    return and_(api_keys.c.user_id == user_id, api_keys.c.login_type.not_in(NO_SESSIONS), api_keys.c.token_name == "")


async def list_sessions(tx: Tx, user_id: UUID, now: datetime) -> list[KeyRow]:
    """Return the valid session keys of a user, last used first. A key with a name belongs to a program."""
    statement = (
        select(*KEY_COLUMNS)
        .where(_sessions_of(user_id), api_keys.c.expires_at > now)
        .order_by(api_keys.c.last_used.desc(), api_keys.c.id)
        .limit(MAX_LISTED_SESSIONS)
    )
    return [KeyRow(*row) for row in await tx.execute(statement)]


MOST_NOTICES = 20
MAX_SESSIONS_REVOKED = 500
"""Maximum of sessions that one sign-in deletes."""
ENDED = "sessions_ended"
"""Channel for invalidated keys: `key ID`, or `user UUID` for all keys of a user; `sharing` when access to workspaces
was revoked."""


async def notify_user_revoked(tx: Tx, user_id: UUID) -> None:
    """Close a user's open connections, on every replica."""
    await notify(tx, ENDED, f"user {user_id}")


async def notify_sharing_revoked(tx: Tx) -> None:
    """Recheck every open stream of an application, on every replica."""
    await notify(tx, ENDED, "sharing")


async def delete_keys(tx: Tx, condition: ColumnElement[bool], *, renewed: bool = False) -> int:
    """Delete the keys that match the condition and close their open connections, on every replica.

    The only way to delete keys that may still be valid. `renewed`: tokens of an application that are replaced by new
    ones, which revokes nothing the user consented to. Otherwise the keys an application created with its token are
    deleted as well. Returns the number of matching keys.
    """
    columns = api_keys.c.id, api_keys.c.user_id
    roots = await _lock_build_keys(tx, condition)
    for ids in _slices(roots):
        await delete_keys(tx, api_keys.c.build_key_id.in_(ids))
    consents = [] if renewed else await _consents_of(tx, condition)
    deleted = (await tx.execute(delete(api_keys).where(condition).returning(*columns))).all()
    await _notify_gone(tx, [(row.id, row.user_id) for row in deleted])
    if not renewed:
        await _end_unused_codes(tx, [row.id for row in deleted], {row.user_id for row in deleted})
    consent = tuple_(_MADE.c.app_id, _MADE.c.user_id, _MADE.c.grant_id)
    for some in _slices(consents):
        await revoke_made_keys(tx, consent.in_(some))
    return len(deleted)


IS_BUILD_KEY = api_keys.c.token_name.regexp_match("^[0-9a-f-]{36}_[0-9a-f-]{36}_session_token$")
"""Keys of builds by their name `OWNER_WORKSPACE_session_token`, including those from before migration 0035."""


async def _lock_build_keys(tx: Tx, condition: ColumnElement[bool]) -> list[str]:
    """Lock the keys of builds among the matching ones: none of them creates a further key until they are deleted."""
    statement = select(api_keys.c.id).where(condition, IS_BUILD_KEY).order_by(api_keys.c.id).with_for_update()
    return [row[0] for row in await tx.execute(statement)]


_MADE = oauth2_provider_app_made_keys
_MOST_NAMED = 5000
"""Maximum ids per statement, which may have 32,767 values: an application has as many consents as there are users."""


def _slices(items: Sequence[Item]) -> list[Sequence[Item]]:
    return [items[start : start + _MOST_NAMED] for start in range(0, len(items), _MOST_NAMED)]


async def _consents_of(tx: Tx, condition: ColumnElement[bool]) -> list[tuple[UUID, UUID, str]]:
    """Return (application, user, grant) of the access tokens among the matching keys."""
    tokens = oauth2_provider_app_tokens
    chosen = select(api_keys.c.id).where(condition)
    statement = select(tokens.c.app_id, tokens.c.user_id, tokens.c.grant_id).where(tokens.c.api_key_id.in_(chosen))
    return [(row[0], row[1], row[2]) for row in await tx.execute(statement.distinct())]


async def revoke_made_keys(tx: Tx, condition: ColumnElement[bool]) -> None:
    """Delete keys that applications created, by a condition on their consents. Creating a key holds the key that
    creates it: a key created in between is found by the next pass, and after the last pass none can be created."""
    chosen = api_keys.c.id.in_(select(_MADE.c.api_key_id).where(condition))
    while await delete_keys(tx, chosen):
        pass


async def _notify_gone(tx: Tx, deleted: Sequence[tuple[str, UUID]]) -> None:
    """Notify by key id while they are few; otherwise notify once per user, which rechecks all of that user's
    connections."""
    if len(deleted) <= MOST_NOTICES:
        payloads = [f"key {key_id}" for key_id, _ in deleted]
    else:
        payloads = sorted({f"user {user_id}" for _, user_id in deleted})
    await notify_all(tx, ENDED, payloads)


async def _end_unused_codes(tx: Tx, key_ids: Collection[str], user_ids: Collection[UUID]) -> None:
    """Delete unused codes: a code stands for the consent a user gave with a key, and is deleted with it.

    A code from before migration 0032 names no key and is deleted with any key of its user. Used codes stay: a second
    use revokes the result of the first.
    """
    codes = oauth2_provider_app_codes
    unused = delete(codes).where(codes.c.used_at.is_(None))
    for some in _slices([*key_ids]):
        await tx.execute(unused.where(codes.c.api_key_id.in_(some)))
    for people in _slices([*user_ids] if key_ids else []):
        await tx.execute(unused.where(codes.c.api_key_id.is_(None), codes.c.user_id.in_(people)))


async def delete_key(tx: Tx, key_id: str, *, renewed: bool = False) -> bool:
    """Delete a key; see `delete_keys`."""
    return bool(await delete_keys(tx, api_keys.c.id == key_id, renewed=renewed))


async def shorten_key(tx: Tx, key_id: str, latest: datetime) -> None:
    """Let a key expire at `latest`, unless it expires earlier, and not be extended by its use."""
    expires_at = func.least(api_keys.c.expires_at, latest)
    await tx.execute(update(api_keys).where(api_keys.c.id == key_id).values(expires_at=expires_at, lifetime_seconds=0))


async def expire_key(tx: Tx, key_id: str, now: datetime) -> None:
    """Expire a key, and the keys that a build's key created."""
    which = or_(api_keys.c.id == key_id, api_keys.c.build_key_id == key_id)
    statement = update(api_keys).where(which).values(expires_at=now)
    rows = (await tx.execute(statement.returning(api_keys.c.id, api_keys.c.user_id))).all()
    await _notify_gone(tx, [(row.id, row.user_id) for row in rows])
    await _end_unused_codes(tx, [row.id for row in rows], {row.user_id for row in rows})


async def delete_keys_of(tx: Tx, user_id: UUID, *, scope: str = "") -> None:
    """Delete all keys of a user with their unused codes, or only keys with exactly one scope."""
    own_keys = api_keys.c.user_id == user_id
    await delete_keys(tx, and_(own_keys, api_keys.c.scopes == [scope]) if scope else own_keys)
    if not scope:  # the key of a code may be deleted already; old codes name no key
        codes = oauth2_provider_app_codes
        await tx.execute(delete(codes).where(codes.c.user_id == user_id, codes.c.used_at.is_(None)))
    # Applications are also open by tickets, which name the user and no key.
    await notify_user_revoked(tx, user_id)


async def delete_sessions_by(tx: Tx, user_id: UUID, login_type: str) -> None:
    """Delete a user's sessions from one login method; tokens have a type of their own."""
    await delete_keys(tx, and_(api_keys.c.user_id == user_id, api_keys.c.login_type == login_type))
    await notify_user_revoked(tx, user_id)


async def keep_newest_sessions(tx: Tx, user_id: UUID, limit: int, now: datetime) -> int:
    """Delete a user's sessions that were used, or created, longest ago; return their number.

    Expired sessions, which are kept for days, are deleted before valid ones: they do not count. Thousands of sessions
    from before there was a limit are deleted in batches, so that a sign-in does not wait for all of them.
    """
    newest_first = func.greatest(api_keys.c.last_used, api_keys.c.created_at).desc(), api_keys.c.id
    own_keys = select(api_keys.c.id).where(_sessions_of(user_id)).order_by(api_keys.c.expires_at <= now, *newest_first)
    return await delete_keys(tx, api_keys.c.id.in_(own_keys.offset(limit).limit(MAX_SESSIONS_REVOKED)))


async def replace_token(tx: Tx, user_id: UUID, name: str) -> None:
    """Delete the session-like token of that name (one per workspace, for instance)."""
    await delete_keys(tx, and_(api_keys.c.user_id == user_id, api_keys.c.token_name == name))
