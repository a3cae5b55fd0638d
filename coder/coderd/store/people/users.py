"""Queries about users: rows, lists with filters, what a user chose for itself."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict, Unpack
from uuid import UUID

from sqlalchemy import delete, func, insert, literal_column, or_, select, text, update
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlalchemy.dialects.postgresql import insert as upsert

from coder.coderd.store.tables.people import organization_members, organizations, user_configs, users

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class UserRow:
    """A user with the organizations it is in."""

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
    hashed_password: str
    quiet_hours_schedule: str
    organization_ids: Sequence[UUID] = ()


@dataclass(frozen=True, slots=True)
class UserFilter:
    """What a list is narrowed to; empty fields do not narrow."""

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
    "For callers that may see nobody but themselves."
    after_id: UUID | None = None
    offset: int = 0
    limit: int = 0
    include_system: bool = False
    ids: Sequence[UUID] = field(default=())


USER_COLUMNS = tuple(users.c[name] for name in UserRow.__slots__ if name != "organization_ids")
_ORGANIZATIONS = (
    select(
        func.array_agg(
            aggregate_order_by(  # the default organization first: clients take the first
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
_SELECT = select(*USER_COLUMNS, _ORGANIZATIONS)


def _row(values: Any) -> UserRow:
    fields = dict(zip(UserRow.__slots__, values, strict=True))
    return UserRow(**{**fields, "organization_ids": values[-1] or ()})


async def get_user(
    tx: Tx, user_id: UUID, *, lock: bool = False, hold: bool = False, keep: bool = False
) -> UserRow | None:
    """By id, deleted ones too. Until the transaction ends

    - `lock` keeps others from changing the user, and waits for whoever holds them: for who ends what they were given;
    - `hold` keeps only those away who lock: for who gives the user something that ends with a lock;
    - `keep` keeps others from changing the user, and waits for nobody who only names them: for who relies on the row,
      and goes on to workspaces or templates. Whoever has locked one of those names people in what they write of it (a
      build its initiator, a version its author), which waits for a `lock`.
    """
    statement = _SELECT.where(users.c.id == user_id)
    if lock or hold or keep:
        statement = statement.with_for_update(of=users, read=hold, key_share=not lock)
    row = (await tx.execute(statement)).one_or_none()
    return None if row is None else _row(row)


async def hold_users(tx: Tx, user_ids: Collection[UUID]) -> None:
    """`hold` of several, in the one order of everybody who locks more than one."""
    statement = select(users.c.id).where(users.c.id.in_(user_ids)).order_by(users.c.id)
    await tx.execute(statement.with_for_update(read=True, key_share=True))


async def get_user_by_name(tx: Tx, username: str) -> UserRow | None:
    """A living user by name, regardless of case."""
    statement = _SELECT.where(func.lower(users.c.username) == func.lower(username), ~users.c.deleted)
    row = (await tx.execute(statement)).one_or_none()
    return None if row is None else _row(row)


async def get_user_by_email(tx: Tx, email: str) -> UserRow | None:
    # As the index says it, and no parameter, or it would not be used.
    same = func.lower(users.c.email) == func.lower(email), users.c.email != literal_column("''")
    statement = _SELECT.where(*same, ~users.c.deleted, ~users.c.is_system)
    row = (await tx.execute(statement)).one_or_none()
    return None if row is None else _row(row)


async def list_by_ids(tx: Tx, ids: Sequence[UUID]) -> list[UserRow]:
    """Deleted ones too, in no order."""
    if not ids:
        return []
    return [_row(row) for row in await tx.execute(_SELECT.where(users.c.id.in_(list(ids))))]


async def count_users(tx: Tx) -> int:
    """Living people, system users left out."""
    statement = select(func.count()).select_from(users).where(~users.c.deleted, ~users.c.is_system)
    return int((await tx.execute(statement)).scalar_one())


async def lock_first_user(tx: Tx) -> None:
    """Held until the transaction ends."""
    await tx.execute(text("SELECT pg_advisory_xact_lock(7302)"))


async def has_other_owner(tx: Tx, user_id: UUID) -> bool:
    """Whether somebody else may do everything, too. Held until the transaction ends: two may not leave at once."""
    await tx.execute(text("SELECT pg_advisory_xact_lock(7304)"))
    others = select(users.c.id).where(
        users.c.id != user_id,
        users.c.rbac_roles.contains(["owner"]),
        users.c.status != "suspended",
        ~users.c.deleted,
        ~users.c.is_system,
    )
    return (await tx.execute(others.limit(1))).first() is not None


async def list_users(tx: Tx, wanted: UserFilter) -> tuple[list[UserRow], int]:
    """A page in the order of names, and how many there are in all (0 when the page is empty)."""
    statement = select(*USER_COLUMNS, _ORGANIZATIONS, func.count().over()).where(*conditions(wanted))
    statement = statement.order_by(func.lower(users.c.username)).offset(wanted.offset)
    if wanted.limit:
        statement = statement.limit(wanted.limit)
    rows = list(await tx.execute(statement))
    return [_row(row[:-1]) for row in rows], (rows[0][-1] if rows else 0)


def conditions(wanted: UserFilter) -> list[Any]:
    """What narrows a list of people: of all of them, of an organization's, of a group's."""
    conditions: list[Any] = [~users.c.deleted]
    if not wanted.include_system:
        conditions.append(~users.c.is_system)
    if wanted.only_id is not None:
        conditions.append(users.c.id == wanted.only_id)
    if wanted.ids:
        conditions.append(users.c.id.in_(wanted.ids))
    if wanted.search:
        pattern = f"%{_escaped(wanted.search)}%"
        conditions.append(
            or_(users.c.email.ilike(pattern), users.c.username.ilike(pattern), users.c.name.ilike(pattern))
        )
    if wanted.name:
        conditions.append(users.c.name.ilike(f"%{_escaped(wanted.name)}%"))
    if wanted.statuses:
        conditions.append(users.c.status.in_(wanted.statuses))
    if wanted.roles and "member" not in wanted.roles:
        conditions.append(users.c.rbac_roles.overlap(list(wanted.roles)))
    if wanted.login_types:
        conditions.append(users.c.login_type.in_(wanted.login_types))
    if wanted.github_com_user_id is not None:
        conditions.append(users.c.github_com_user_id == wanted.github_com_user_id)
    if wanted.service_account is not None:
        conditions.append(users.c.is_service_account == wanted.service_account)
    conditions += _time_conditions(wanted)
    if wanted.after_id is not None:
        cursor = users.alias("cursor")
        # A deleted user is an unknown one here, too: nobody follows them.
        named = select(func.lower(cursor.c.username)).where(cursor.c.id == wanted.after_id, ~cursor.c.deleted)
        key = named.scalar_subquery()
        conditions.append(func.lower(users.c.username) > key)
    return conditions


def _time_conditions(wanted: UserFilter) -> list[Any]:
    pairs = (
        (wanted.last_seen_before, users.c.last_seen_at, True),
        (wanted.last_seen_after, users.c.last_seen_at, False),
        (wanted.created_before, users.c.created_at, True),
        (wanted.created_after, users.c.created_at, False),
    )
    return [column <= value if before else column >= value for value, column, before in pairs if value is not None]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


async def insert_user(tx: Tx, values: dict[str, Any]) -> None:
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
    """Makes a dormant user active; somebody who was suspended a moment ago stays so."""
    dormant = update(users).where(users.c.id == user_id, users.c.status == "dormant")
    await tx.execute(dormant.values(status="active", updated_at=now, last_seen_at=now))


async def get_configs(tx: Tx, user_id: UUID, prefix: str) -> dict[str, str]:
    """What the user chose, by key without `prefix`."""
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
    """Uses a one-time passcode up: of two at once one gets True."""
    mine = update(users).where(users.c.id == user_id, users.c.one_time_passcode_hash == hashed)
    result = await tx.execute(mine.values(one_time_passcode_hash=None))
    return bool(result.rowcount)


async def get_passcode(tx: Tx, user_id: UUID) -> tuple[bytes | None, datetime | None]:
    """Hash and expiry of the user's one-time passcode."""
    statement = select(users.c.one_time_passcode_hash, users.c.one_time_passcode_expires_at)
    row = (await tx.execute(statement.where(users.c.id == user_id))).one_or_none()
    return (row[0], row[1]) if row else (None, None)
