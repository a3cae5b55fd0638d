"""Queries about groups and their members.

Everyone has its organization's id and no member rows: its members are the organization's.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import and_, delete, func, insert, literal, select, union_all, update
from sqlalchemy.dialects.postgresql import insert as upsert

from coder.coderd.store.engine.prepared_statements import PreparedStatement
from coder.coderd.store.engine.sql_types import ColumnValues, Query
from coder.coderd.store.people.users import USER_COLUMNS, UserFilter, UserRow, conditions
from coder.coderd.store.tables.people import group_members, groups, organization_members, organizations, users

if TYPE_CHECKING:
    from coder.api.base.enums import GroupSource
    from coder.coderd.store.engine.database import Tx

EVERYONE = "Everyone"


@dataclass(frozen=True, slots=True)
class GroupRow:
    """Group with the fields of its organization that every response shows."""

    id: UUID
    organization_id: UUID
    name: str
    display_name: str
    avatar_url: str
    quota_allowance: int
    source: GroupSource
    organization_name: str
    organization_display_name: str
    member_count: int

    @property
    def is_everyone(self) -> bool:
        return self.id == self.organization_id


_MEMBERSHIP = union_all(
    select(group_members.c.group_id, group_members.c.user_id),
    select(organization_members.c.organization_id, organization_members.c.user_id),
).subquery("membership")
"""(group, user): listed members, and the organization's members under Everyone's id."""

_COUNT = (
    select(func.count())
    .select_from(_MEMBERSHIP.join(users, users.c.id == _MEMBERSHIP.c.user_id))
    .where(_MEMBERSHIP.c.group_id == groups.c.id, ~users.c.deleted, ~users.c.is_system)
    .correlate(groups)
    .scalar_subquery()
)
GROUPS: Query = (
    select(
        *(groups.c[name] for name in GroupRow.__slots__[:7]),
        organizations.c.name,
        organizations.c.display_name,
        _COUNT,
    )
    .join(organizations, organizations.c.id == groups.c.organization_id)
    .where(~organizations.c.deleted)
    .order_by(func.lower(groups.c.name))
)


async def list_groups(
    tx: Tx,
    *,
    organization_id: UUID | None = None,
    has_member: UUID | None = None,
    ids: Sequence[UUID] = (),
) -> list[GroupRow]:
    """Return groups by name that match all conditions."""
    statement = GROUPS
    if organization_id is not None:
        statement = statement.where(groups.c.organization_id == organization_id)
    if has_member is not None:
        statement = statement.where(
            groups.c.id.in_(select(_MEMBERSHIP.c.group_id).where(_MEMBERSHIP.c.user_id == has_member))
        )
    if ids:
        statement = statement.where(groups.c.id.in_(ids))
    return [GroupRow(*row) for row in await tx.execute(statement)]


async def list_members(tx: Tx, group_ids: Sequence[UUID]) -> dict[UUID, list[UserRow]]:
    """Return the living members of each group, by username. One statement for any number of groups."""
    results: dict[UUID, list[UserRow]] = {group_id: [] for group_id in group_ids}
    if not group_ids:
        return results
    statement = (
        select(_MEMBERSHIP.c.group_id, *USER_COLUMNS)
        .join(users, users.c.id == _MEMBERSHIP.c.user_id)
        .where(_MEMBERSHIP.c.group_id.in_(group_ids), ~users.c.deleted, ~users.c.is_system)
        .order_by(func.lower(users.c.username))
    )
    for group_id, *values in await tx.execute(statement):
        results[group_id].append(UserRow(*values))
    return results


async def page_members(tx: Tx, group_id: UUID, which: UserFilter) -> tuple[list[UserRow], int]:
    """Return one page of members and their total number."""
    statement = (
        select(*USER_COLUMNS, func.count().over())
        .join(_MEMBERSHIP, users.c.id == _MEMBERSHIP.c.user_id)
        .where(_MEMBERSHIP.c.group_id == group_id, *conditions(which))
        .order_by(func.lower(users.c.username))
        .offset(which.offset)
    )
    if which.limit:
        statement = statement.limit(which.limit)
    rows = list(await tx.execute(statement))
    return [UserRow(*row[:-1]) for row in rows], (rows[0][-1] if rows else 0)


async def insert_group(tx: Tx, values: ColumnValues) -> None:
    await tx.execute(insert(groups).values(**values))


async def update_group(tx: Tx, group_id: UUID, values: ColumnValues) -> None:
    if values:
        await tx.execute(update(groups).where(groups.c.id == group_id).values(**values))


async def delete_group(tx: Tx, group_id: UUID) -> None:
    await tx.execute(delete(groups).where(groups.c.id == group_id))


async def add_members(tx: Tx, group_id: UUID, user_ids: Sequence[UUID]) -> int:
    """Add members; return how many were new."""
    if not user_ids:
        return 0
    rows = [{"group_id": group_id, "user_id": user_id} for user_id in user_ids]
    result = await tx.execute(upsert(group_members).values(rows).on_conflict_do_nothing())
    return int(result.rowcount)


async def remove_members(tx: Tx, group_id: UUID, user_ids: Sequence[UUID]) -> int:
    """Remove members; return their number."""
    condition = and_(group_members.c.group_id == group_id, group_members.c.user_id.in_(user_ids))
    return int((await tx.execute(delete(group_members).where(condition))).rowcount)


async def leave_groups(tx: Tx, organization_id: UUID, user_id: UUID, *, but: Collection[UUID] = ()) -> None:
    """Remove a user who leaves an organization from its groups, or from all `but` some."""
    inside = select(groups.c.id).where(groups.c.organization_id == organization_id, groups.c.id.not_in(but))
    await tx.execute(
        delete(group_members).where(group_members.c.user_id == user_id, group_members.c.group_id.in_(inside))
    )


async def hold_groups(tx: Tx, group_ids: Collection[UUID]) -> set[UUID]:
    """Return the existing `group_ids`, locked until the transaction ends: before members are added."""
    statement = select(groups.c.id).where(groups.c.id.in_(group_ids)).order_by(groups.c.id)
    return {row[0] for row in await tx.execute(statement.with_for_update(read=True, key_share=True))}


# ---- quotas


async def quota_budget(tx: Tx, organization_id: UUID, user_id: UUID) -> int | None:
    """Return the sum of a member's group allowances; None while no group of the organization has one."""
    is_member = (
        select(literal(1)).where(_MEMBERSHIP.c.group_id == groups.c.id, _MEMBERSHIP.c.user_id == user_id).exists()
    )
    statement = select(
        func.coalesce(func.sum(groups.c.quota_allowance).filter(is_member), 0),
        func.coalesce(func.max(groups.c.quota_allowance), 0),
    ).where(groups.c.organization_id == organization_id)
    budget, largest = (await tx.execute(statement)).one()
    return int(budget) if largest > 0 else None


async def any_allowance(tx: Tx) -> bool:
    """Return whether quotas are used at all."""
    return bool((await _ANY_ALLOWANCE.fetch(tx))[0][0])


_ANY_ALLOWANCE = PreparedStatement(select(select(groups.c.id).where(groups.c.quota_allowance > 0).exists()))


async def lock_quota(tx: Tx, user_id: UUID) -> None:
    """Serialize concurrent builds of one owner until the transaction ends."""
    await tx.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"quota {user_id}", 0))))
