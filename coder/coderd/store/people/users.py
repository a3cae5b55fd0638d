"""Queries about users: rows, filtered lists, users' own settings."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, TypedDict, Unpack
from uuid import UUID

from sqlalchemy import ColumnElement, delete, func, insert, or_, select, text, update
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlalchemy.dialects.postgresql import insert as upsert

from coder.coderd.store.engine.names import holds_text
from coder.coderd.store.engine.sql_types import ColumnValues, SqlRow, SqlValues
from coder.coderd.store.tables.people import organization_members, organizations, user_configs, users

if TYPE_CHECKING:
    from coder.api.base.enums import LoginType, UserStatus
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class UserRow:
    """User with its organizations."""

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
    hashed_password: str
    quiet_hours_schedule: str
    organization_ids: Sequence[UUID] = ()


@dataclass(frozen=True, slots=True)
class UserFilter:
    """Filter of a list; empty fields do not filter."""

    search: str = ""
    name: str = ""
    statuses: Sequence[str] = ()
    roles: Sequence[str] = ()
    login_types: Sequence[str] = ()
    last_seen_before: datetime | None = None
    last_seen_after: datetime | None = None
    created_before: datetime | None = None
    created_after: datetime | None = None
    github_com_user_id: int | None = None
    service_account: bool | None = None
    only_id: UUID | None = None
    """Id of the caller, if it may see no other user."""
    after_id: UUID | None = None
    offset: int = 0
    limit: int = 0
    include_system: bool = False
    ids: Sequence[UUID] = field(default=())


USER_COLUMNS = tuple(users.c[name] for name in UserRow.__slots__ if name != "organization_ids")
ORGANIZATIONS = (
    select(
        func.array_agg(
            aggregate_order_by(  # the default organization first: clients use the first
                organization_members.c.organization_id,
                organizations.c.is_default.desc(),
                organization_members.c.organization_id,
            )
        )
    )
    .join(organizations, organizations.c.id == organization_members.c.organization_id)
    .where(organization_members.c.user_id == users.c.id, ~organizations.c.deleted)
    .scalar_subquery()
    .label("organization_ids")
)


def user_row(values: SqlRow | SqlValues) -> UserRow:
    fields = dict(zip(UserRow.__slots__, values, strict=True))
    return UserRow(**{**fields, "organization_ids": values[-1] or ()})


async def hold_users(tx: Tx, user_ids: Collection[UUID]) -> None:
    """Hold several users, in the one order that all locks of several users follow."""
    statement = select(users.c.id).where(users.c.id.in_(user_ids)).order_by(users.c.id)
    await tx.execute(statement.with_for_update(read=True, key_share=True))


async def count_users(tx: Tx) -> int:
    """Return the number of living users without system users."""
    statement = select(func.count()).select_from(users).where(~users.c.deleted, ~users.c.is_system)
    return int((await tx.execute(statement)).scalar_one())


async def lock_first_user(tx: Tx) -> None:
    """Lock the creation of the first user until the transaction ends."""
    await tx.execute(text("SELECT pg_advisory_xact_lock(7302)"))


async def has_other_owner(tx: Tx, user_id: UUID) -> bool:
    """Return whether there is another owner. Locked until the transaction ends: two owners may not leave
    concurrently."""
    await tx.execute(text("SELECT pg_advisory_xact_lock(7304)"))
    others = select(users.c.id).where(
        users.c.id != user_id,
        users.c.rbac_roles.contains(["owner"]),
        users.c.status != "suspended",
        ~users.c.deleted,
        ~users.c.is_system,
    )
    return (await tx.execute(others.limit(1))).first() is not None


async def list_users(tx: Tx, which: UserFilter) -> tuple[list[UserRow], int]:
    """Return a page in the order of names, and their total number (0 when the page is empty)."""
    statement = select(*USER_COLUMNS, ORGANIZATIONS, func.count().over()).where(*conditions(which))
    statement = statement.order_by(func.lower(users.c.username)).offset(which.offset)
    if which.limit:
        statement = statement.limit(which.limit)
    rows = list(await tx.execute(statement))
    return [user_row(row[:-1]) for row in rows], (rows[0][-1] if rows else 0)


def conditions(which: UserFilter) -> list[ColumnElement[bool]]:
    """Return the conditions for a list of users: of all, of an organization, of a group."""
    conditions: list[ColumnElement[bool]] = [~users.c.deleted]
    if not which.include_system:
        conditions.append(~users.c.is_system)
    if which.only_id is not None:
        conditions.append(users.c.id == which.only_id)
    if which.ids:
        conditions.append(users.c.id.in_(which.ids))
    if which.search:
        names = (users.c.email, users.c.username, users.c.name)
        conditions.append(or_(*(holds_text(column, which.search) for column in names)))
    if which.name:
        conditions.append(holds_text(users.c.name, which.name))
    if which.statuses:
        conditions.append(users.c.status.in_(which.statuses))
    if which.roles and "member" not in which.roles:
        conditions.append(users.c.rbac_roles.overlap(list(which.roles)))
    if which.login_types:
        conditions.append(users.c.login_type.in_(which.login_types))
    if which.github_com_user_id is not None:
        conditions.append(users.c.github_com_user_id == which.github_com_user_id)
    if which.service_account is not None:
        conditions.append(users.c.is_service_account == which.service_account)
    conditions += _time_conditions(which)
    if which.after_id is not None:
        cursor = users.alias("cursor")
        # A deleted user counts as unknown here, too: no page follows it.
        named = select(func.lower(cursor.c.username)).where(cursor.c.id == which.after_id, ~cursor.c.deleted)
        key = named.scalar_subquery()
        conditions.append(func.lower(users.c.username) > key)
    return conditions


def _time_conditions(which: UserFilter) -> list[ColumnElement[bool]]:
    pairs = (
        (which.last_seen_before, users.c.last_seen_at, True),
        (which.last_seen_after, users.c.last_seen_at, False),
        (which.created_before, users.c.created_at, True),
        (which.created_after, users.c.created_at, False),
    )
    return [column <= value if before else column >= value for value, column, before in pairs if value is not None]


async def insert_user(tx: Tx, values: ColumnValues) -> None:
    await tx.execute(insert(users).values(**values))


class UserChanges(TypedDict, total=False):
    """Columns of `users` that may be set, by name."""

    email: str
    username: str
    name: str
    avatar_url: str
    hashed_password: str
    created_at: datetime
    updated_at: datetime
    last_seen_at: datetime
    status: str
    login_type: str
    rbac_roles: Sequence[str]
    quiet_hours_schedule: str
    one_time_passcode_hash: bytes | None
    one_time_passcode_expires_at: datetime | None
    github_com_user_id: int | None
    is_system: bool
    is_service_account: bool
    deleted: bool


async def update_user(tx: Tx, user_id: UUID, **values: Unpack[UserChanges]) -> None:
    await tx.execute(update(users).where(users.c.id == user_id).values(**values))


async def wake_user(tx: Tx, user_id: UUID, now: datetime) -> None:
    """Activate a dormant user; a user suspended meanwhile stays suspended."""
    dormant = update(users).where(users.c.id == user_id, users.c.status == "dormant")
    await tx.execute(dormant.values(status="active", updated_at=now, last_seen_at=now))


async def get_configs(tx: Tx, user_id: UUID, prefix: str) -> dict[str, str]:
    """Return the user's settings, by key without `prefix`."""
    statement = select(user_configs.c.key, user_configs.c.value).where(
        user_configs.c.user_id == user_id, user_configs.c.key.startswith(prefix, autoescape=True)
    )
    return {key[len(prefix) :]: value for key, value in await tx.execute(statement)}


async def put_configs(tx: Tx, user_id: UUID, prefix: str, values: dict[str, str]) -> None:
    for key, value in values.items():
        statement = upsert(user_configs).values(user_id=user_id, key=prefix + key, value=value)
        await tx.execute(statement.on_conflict_do_update(index_elements=["user_id", "key"], set_={"value": value}))


async def remove_memberships(tx: Tx, user_id: UUID) -> None:
    await tx.execute(delete(organization_members).where(organization_members.c.user_id == user_id))


async def take_passcode(tx: Tx, user_id: UUID, hashed: bytes) -> bool:
    """Consume a one-time passcode: of two concurrent calls one returns True."""
    unused = update(users).where(users.c.id == user_id, users.c.one_time_passcode_hash == hashed)
    result = await tx.execute(unused.values(one_time_passcode_hash=None))
    return bool(result.rowcount)


async def get_passcode(tx: Tx, user_id: UUID) -> tuple[bytes | None, datetime | None]:
    """Return hash and expiry of the user's one-time passcode."""
    statement = select(users.c.one_time_passcode_hash, users.c.one_time_passcode_expires_at)
    row = (await tx.execute(statement.where(users.c.id == user_id))).one_or_none()
    return (row[0], row[1]) if row else (None, None)
