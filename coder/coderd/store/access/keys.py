"""Queries about API keys, and the one every request begins with: key -> user with roles."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from sqlalchemy import and_, bindparam, case, delete, func, insert, select, text, tuple_, update

from coder.coderd.store.engine.pubsub import notify, notify_all
from coder.coderd.store.tables.oauth2 import (
    oauth2_provider_app_codes,
    oauth2_provider_app_made_keys,
    oauth2_provider_app_tokens,
)
from coder.coderd.store.tables.people import api_keys, users
from coder.domain.access.roles import BuiltinRole

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement

    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class KeyRow:
    """One API key without its secret (only the hash is known)."""

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
    "Of whoever used it last, as `coder/domain/access/user_agents.py` keeps it."


_OrganizationRoles = Mapping[UUID, frozenset[str]]
_CustomRoles = Mapping[tuple[UUID, str], BuiltinRole]


@dataclass(frozen=True, slots=True)
class Rights:
    """All of a user that says what they may do; compared."""

    site_roles: frozenset[str]
    organization_roles: _OrganizationRoles
    group_ids: frozenset[UUID]
    custom_roles: _CustomRoles


@dataclass(frozen=True, slots=True)
class KeyUser:
    """A user as authentication needs it: the row, plus memberships in one go."""

    id: UUID
    email: str
    username: str
    name: str
    avatar_url: str
    created_at: datetime
    updated_at: datetime
    last_seen_at: datetime
    status: str
    login_type: str
    rbac_roles: Sequence[str]
    deleted: bool
    is_service_account: bool
    organization_roles: _OrganizationRoles = field(default_factory=dict)
    group_ids: frozenset[UUID] = frozenset()
    custom_roles: _CustomRoles = field(default_factory=dict)

    @property
    def rights(self) -> Rights:
        return Rights(frozenset(self.rbac_roles), self.organization_roles, self.group_ids, self.custom_roles)


_KEY_COLUMNS = tuple(api_keys.c[name] for name in KeyRow.__slots__)
_USER_NAMES = KeyUser.__slots__[:13]
_USER_COLUMNS = tuple(users.c[name] for name in _USER_NAMES)

# One statement and one row whatever the number of memberships: this runs on every request.
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


def _extra(sql: Any, name: str) -> Any:
    from sqlalchemy import literal_column

    return literal_column(sql.text).label(name)


_ROLE_COLUMNS = (_extra(_MEMBERSHIPS, "memberships"), _extra(_GROUPS, "groups"), _extra(_CUSTOM, "custom"))
_FIND_CALLER = (
    select(*_KEY_COLUMNS, *_USER_COLUMNS, *_ROLE_COLUMNS)
    .select_from(api_keys.join(users, users.c.id == api_keys.c.user_id))
    .where(api_keys.c.id == bindparam("key_id"))
)
"Built once: composing a statement costs as much as running it."


def _user(values: Sequence[Any]) -> KeyUser:
    named: dict[str, Any] = dict(zip(_USER_NAMES, values[:13], strict=True))
    organization_roles, group_ids, custom_roles = _memberships(values[13:])
    return KeyUser(**named, organization_roles=organization_roles, group_ids=group_ids, custom_roles=custom_roles)


def _memberships(values: Sequence[Any]) -> tuple[_OrganizationRoles, frozenset[UUID], _CustomRoles]:
    memberships, groups, custom = values
    return (
        {UUID(o): frozenset(roles) for o, roles in _json(memberships)},
        frozenset(groups or ()),
        {(UUID(o), name): _custom_role(name, title, permissions) for o, name, title, permissions in _json(custom)},
    )


def _json(value: Any) -> Any:
    import json

    return json.loads(value) if isinstance(value, str) else (value or ())


def _custom_role(name: str, title: str, permissions: Mapping[str, Any]) -> BuiltinRole:
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
    count = len(_KEY_COLUMNS)
    return KeyRow(*row[:count]), _user(row[count:])


async def find_user_with_roles(tx: Tx, user_id: UUID) -> KeyUser | None:
    statement = select(*_USER_COLUMNS, *_ROLE_COLUMNS).where(users.c.id == user_id)
    row = (await tx.execute(statement)).one_or_none()
    return None if row is None else _user(row)


async def find_rights(tx: Tx, user_ids: Collection[UUID]) -> dict[UUID, Rights]:
    """What each living user has that says what they may do."""
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
    """Records that a key was used, slides it when `expires_at` is given, wakes a dormant user."""
    values: dict[str, Any] = {"last_used": now, "ip_address": ip}  # being used changes nothing of the key itself
    if user_agent:  # a program that says nothing takes nothing away
        values["user_agent"] = user_agent
    if expires_at is not None:
        values["expires_at"] = expires_at
    # being seen is a change, too: clients find both times equal
    seen: dict[str, Any] = {"last_seen_at": now, "updated_at": now}
    if activate:  # who was suspended since the caller was read stays so
        seen["status"] = case((users.c.status == "dormant", "active"), else_=users.c.status)
    # The user first, as whoever ends all keys of one.
    await tx.execute(update(users).where(users.c.id == user_id).values(**seen))
    await tx.execute(update(api_keys).where(api_keys.c.id == key_id).values(**values))


async def insert_key(tx: Tx, row: KeyRow) -> None:
    await tx.execute(insert(api_keys).values({name: getattr(row, name) for name in KeyRow.__slots__}))


async def get_key(tx: Tx, key_id: str) -> KeyRow | None:
    row = (await tx.execute(select(*_KEY_COLUMNS).where(api_keys.c.id == key_id))).one_or_none()
    return None if row is None else KeyRow(*row)


async def hold_key(tx: Tx, key_id: str) -> bool:
    """Whether there is one; it is not deleted until the transaction ends."""
    statement = select(api_keys.c.id).where(api_keys.c.id == key_id).with_for_update(read=True, key_share=True)
    return (await tx.execute(statement)).one_or_none() is not None


async def get_token_by_name(tx: Tx, user_id: UUID, name: str) -> KeyRow | None:
    condition = and_(api_keys.c.user_id == user_id, api_keys.c.token_name == name, api_keys.c.login_type == "token")
    row = (await tx.execute(select(*_KEY_COLUMNS).where(condition))).one_or_none()
    return None if row is None else KeyRow(*row)


async def list_tokens(tx: Tx, user_id: UUID | None, expired_before: datetime | None) -> list[tuple[KeyRow, str]]:
    """Tokens with their owners' names, by token name. `expired_before` leaves out what expired before then."""
    statement = (
        select(*_KEY_COLUMNS, users.c.username)
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
"""The login type of access tokens of OAuth2 applications."""
NO_SESSIONS = ("token", APPLICATION)
SHOWN_SESSIONS = 500
"""The most that one list shows: a program that signs in each minute would otherwise make it endless."""


def _sessions_of(user_id: UUID) -> ColumnElement[bool]:
    return and_(api_keys.c.user_id == user_id, api_keys.c.login_type.not_in(NO_SESSIONS), api_keys.c.token_name == "")


async def list_sessions(tx: Tx, user_id: UUID, now: datetime) -> list[KeyRow]:
    """Keys of somebody's signing in that are good now, last used first. What has a name was made for a program."""
    statement = (
        select(*_KEY_COLUMNS)
        .where(_sessions_of(user_id), api_keys.c.expires_at > now)
        .order_by(api_keys.c.last_used.desc(), api_keys.c.id)
        .limit(SHOWN_SESSIONS)
    )
    return [KeyRow(*row) for row in await tx.execute(statement)]


MOST_NOTICES = 20
ENDED_AT_ONCE = 500
"""The most sessions that one signing in ends."""
ENDED = "sessions_ended"
"""The channel that says which keys are good no longer: `key ID`, or `user UUID` for all of somebody's; `sharing` says
that somebody's access to workspaces was taken back."""


async def notify_user_out(tx: Tx, user_id: UUID) -> None:
    """Cuts what somebody holds open, on every replica."""
    await notify(tx, ENDED, f"user {user_id}")


async def notify_shared_less(tx: Tx) -> None:
    """Has every open stream of an application judged anew, on every replica."""
    await notify(tx, ENDED, "sharing")


async def delete_keys(tx: Tx, condition: ColumnElement[bool], *, renewed: bool = False) -> int:
    """Deletes the keys the condition selects and cuts what each of them holds open, on every replica.

    The one way to delete keys that may still be good. `renewed`: tokens of an application, in whose place others come,
    which takes back nothing the person agreed to. Otherwise what an application made with its token ends with that.
    Returns how many the condition selected.
    """
    columns = api_keys.c.id, api_keys.c.user_id
    consents = [] if renewed else await _consents_of(tx, condition)
    gone = (await tx.execute(delete(api_keys).where(condition).returning(*columns))).all()
    await _notify_gone(tx, [(row.id, row.user_id) for row in gone])
    if not renewed:
        await _end_unused_codes(tx, [row.id for row in gone], {row.user_id for row in gone})
    consent = tuple_(_MADE.c.app_id, _MADE.c.user_id, _MADE.c.grant_id)
    for some in _slices(consents):
        await end_made_keys(tx, consent.in_(some))
    return len(gone)


_MADE = oauth2_provider_app_made_keys
Item = TypeVar("Item")
_MOST_NAMED = 5000
"In one statement, which may have 32,767 values: an application has as many consents as there are people."


def _slices(items: Sequence[Item]) -> list[Sequence[Item]]:
    return [items[start : start + _MOST_NAMED] for start in range(0, len(items), _MOST_NAMED)]


async def _consents_of(tx: Tx, condition: ColumnElement[bool]) -> list[tuple[UUID, UUID, str]]:
    """(application, user, grant) of the access tokens among the keys the condition selects."""
    tokens = oauth2_provider_app_tokens
    chosen = select(api_keys.c.id).where(condition)
    statement = select(tokens.c.app_id, tokens.c.user_id, tokens.c.grant_id).where(tokens.c.api_key_id.in_(chosen))
    return [(row[0], row[1], row[2]) for row in await tx.execute(statement.distinct())]


async def end_made_keys(tx: Tx, condition: ColumnElement[bool]) -> None:
    """Ends keys that applications made, by a condition on their consents. Whoever makes one holds the key they make it
    with: one that comes in between is seen by the next look, and after the last none can be made."""
    chosen = api_keys.c.id.in_(select(_MADE.c.api_key_id).where(condition))
    while await delete_keys(tx, chosen):
        pass


async def _notify_gone(tx: Tx, gone: Sequence[tuple[str, UUID]]) -> None:
    """By name while they are few; otherwise all that is open of their users is looked at: one notice for each."""
    if len(gone) <= MOST_NOTICES:
        payloads = [f"key {key_id}" for key_id, _ in gone]
    else:
        payloads = sorted({f"user {user_id}" for _, user_id in gone})
    await notify_all(tx, ENDED, payloads)


async def _end_unused_codes(tx: Tx, key_ids: Collection[str], user_ids: Collection[UUID]) -> None:
    """A code stands for what its user agreed to with a key, and ends with it.

    One of before 0032 names no key: any of its user that ends takes it along. Used ones stay remembered: a second use
    ends what the first gave.
    """
    codes = oauth2_provider_app_codes
    unused = delete(codes).where(codes.c.used_at.is_(None))
    for some in _slices([*key_ids]):
        await tx.execute(unused.where(codes.c.api_key_id.in_(some)))
    for people in _slices([*user_ids] if key_ids else []):
        await tx.execute(unused.where(codes.c.api_key_id.is_(None), codes.c.user_id.in_(people)))


async def delete_key(tx: Tx, key_id: str, *, renewed: bool = False) -> bool:
    """See `delete_keys`."""
    return bool(await delete_keys(tx, api_keys.c.id == key_id, renewed=renewed))


async def expire_key(tx: Tx, key_id: str, now: datetime) -> None:
    statement = update(api_keys).where(api_keys.c.id == key_id).values(expires_at=now)
    row = (await tx.execute(statement.returning(api_keys.c.user_id))).one_or_none()
    await notify(tx, ENDED, f"key {key_id}")
    await _end_unused_codes(tx, [key_id], row or ())


async def delete_keys_of(tx: Tx, user_id: UUID, *, scope: str = "") -> None:
    """All keys of a user and what they agreed to that nobody used yet, or only keys with exactly one scope."""
    mine = api_keys.c.user_id == user_id
    await delete_keys(tx, and_(mine, api_keys.c.scopes == [scope]) if scope else mine)
    if not scope:  # a key that agreed may be gone already, and its code with it; a nameless code's is not known
        codes = oauth2_provider_app_codes
        await tx.execute(delete(codes).where(codes.c.user_id == user_id, codes.c.used_at.is_(None)))
    # Applications are open by tickets, too, which name the user and no key.
    await notify_user_out(tx, user_id)


async def delete_sessions_by(tx: Tx, user_id: UUID, login_type: str) -> None:
    """Those a user got by one way of logging in; tokens have a type of their own."""
    await delete_keys(tx, and_(api_keys.c.user_id == user_id, api_keys.c.login_type == login_type))
    await notify_user_out(tx, user_id)


async def keep_newest_sessions(tx: Tx, user_id: UUID, most: int, now: datetime) -> int:
    """Ends those of somebody's sessions that were used, or made, longest ago; returns how many.

    Those that are over, which are kept for days, go before any that is good: they take nobody's room. Where there are
    thousands from before there was a most, they go by and by: nobody's signing in waits for all of them.
    """
    newest_first = func.greatest(api_keys.c.last_used, api_keys.c.created_at).desc(), api_keys.c.id
    mine = select(api_keys.c.id).where(_sessions_of(user_id)).order_by(api_keys.c.expires_at <= now, *newest_first)
    return await delete_keys(tx, api_keys.c.id.in_(mine.offset(most).limit(ENDED_AT_ONCE)))


async def replace_token(tx: Tx, user_id: UUID, name: str) -> None:
    """Removes the session-like token of that name (one per workspace, for instance)."""
    await delete_keys(tx, and_(api_keys.c.user_id == user_id, api_keys.c.token_name == name))
