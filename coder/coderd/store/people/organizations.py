"""Queries about organizations and their members."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypedDict, Unpack
from uuid import UUID

from sqlalchemy import ColumnElement, ScalarSelect, bindparam, delete, func, insert, select, update

from coder.coderd.store.engine.metadata import Uuid
from coder.coderd.store.engine.prepared_statements import PreparedStatement
from coder.coderd.store.engine.sql_types import ColumnValues, SqlTable
from coder.coderd.store.people.users import UserFilter, conditions, hold_users
from coder.coderd.store.tables.people import groups, organization_members, organizations, users

if TYPE_CHECKING:
    from coder.api.base.enums import LoginType, UserStatus
    from coder.api.workspaces.workspace_settings import ShareableWorkspaceOwners
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class OrganizationRow:
    id: UUID
    name: str
    display_name: str
    description: str
    icon: str
    created_at: datetime
    updated_at: datetime
    is_default: bool
    deleted: bool
    default_member_roles: Sequence[str]
    workspace_sharing: ShareableWorkspaceOwners


@dataclass(frozen=True, slots=True)
class MemberRow:
    """Membership with the fields of its user that lists show."""

    organization_id: UUID
    user_id: UUID
    created_at: datetime
    updated_at: datetime
    roles: Sequence[str]
    username: str
    name: str
    email: str
    avatar_url: str
    status: UserStatus
    login_type: LoginType
    last_seen_at: datetime
    user_created_at: datetime
    user_updated_at: datetime
    global_roles: Sequence[str]
    is_service_account: bool


ORGANIZATION = tuple(organizations.c[name] for name in OrganizationRow.__slots__)
MEMBER = (
    *(organization_members.c[name] for name in ("organization_id", "user_id", "created_at", "updated_at", "roles")),
    *(users.c[name] for name in ("username", "name", "email", "avatar_url", "status", "login_type", "last_seen_at")),
    users.c.created_at.label("user_created_at"),
    users.c.updated_at.label("user_updated_at"),
    users.c.rbac_roles,
    users.c.is_service_account,
)


async def get_default_organization(tx: Tx) -> OrganizationRow:
    statement = select(*ORGANIZATION).where(organizations.c.is_default)
    return OrganizationRow(*(await tx.execute(statement)).one())


async def list_organizations(tx: Tx, ids: Sequence[UUID] | None = None) -> list[OrganizationRow]:
    """Return organizations by name; only those of `ids` when given."""
    statement = select(*ORGANIZATION).where(~organizations.c.deleted)
    if ids is not None:
        statement = statement.where(organizations.c.id.in_(ids))
    statement = statement.order_by(func.lower(organizations.c.name))
    return [OrganizationRow(*row) for row in await tx.execute(statement)]


async def list_organizations_of(tx: Tx, user_id: UUID) -> list[OrganizationRow]:
    statement = (
        select(*ORGANIZATION)
        .join(organization_members, organization_members.c.organization_id == organizations.c.id)
        .where(organization_members.c.user_id == user_id, ~organizations.c.deleted)
        .order_by(func.lower(organizations.c.name))
    )
    return [OrganizationRow(*row) for row in await tx.execute(statement)]


async def insert_organization(tx: Tx, values: ColumnValues) -> None:
    """Insert an organization with its Everyone group."""
    await tx.execute(insert(organizations).values(**values))
    await tx.execute(insert(groups).values(id=values["id"], organization_id=values["id"], name="Everyone"))


class OrganizationChanges(TypedDict, total=False):
    """Columns of `organizations` that may be set, by name."""

    name: str
    display_name: str
    description: str
    icon: str
    created_at: datetime
    updated_at: datetime
    is_default: bool
    deleted: bool
    default_member_roles: Sequence[str]
    workspace_sharing: str


async def update_organization(tx: Tx, organization_id: UUID, **values: Unpack[OrganizationChanges]) -> None:
    await tx.execute(update(organizations).where(organizations.c.id == organization_id).values(**values))


async def count_contents(tx: Tx, organization_id: UUID) -> dict[str, int]:
    """Return the numbers of objects that prevent the deletion of an organization, by name. Its Everyone group does not
    count."""
    from coder.coderd.store.tables.provisioners import provisioner_keys
    from coder.coderd.store.tables.templates import templates
    from coder.coderd.store.tables.workspaces import workspaces

    def count(table: SqlTable, *conditions: ColumnElement[bool]) -> ScalarSelect[int]:
        query = select(func.count()).select_from(table).where(table.c.organization_id == organization_id, *conditions)
        return query.scalar_subquery()

    counted = {
        "workspaces": count(workspaces, ~workspaces.c.deleted),
        "templates": count(templates, ~templates.c.deleted),
        "groups": count(groups, groups.c.id != organization_id),
        "provisioner keys": count(provisioner_keys),
    }
    row = (await tx.execute(select(*counted.values()))).one()
    return dict(zip(counted, row, strict=True))


async def insert_member(tx: Tx, organization_id: UUID, user_id: UUID, now: datetime, roles: Sequence[str] = ()) -> None:
    await tx.execute(
        insert(organization_members).values(
            organization_id=organization_id, user_id=user_id, created_at=now, updated_at=now, roles=list(roles)
        )
    )


async def delete_member(tx: Tx, organization_id: UUID, user_id: UUID) -> bool:
    statement = delete(organization_members).where(
        organization_members.c.organization_id == organization_id, organization_members.c.user_id == user_id
    )
    return bool((await tx.execute(statement)).rowcount)


async def lock_member(tx: Tx, organization_id: UUID, user_id: UUID) -> None:
    """Lock a membership before it ends: waits for its holders (`hold_members`), whose writes must be visible then."""
    membership = (organization_members.c.organization_id == organization_id, organization_members.c.user_id == user_id)
    await tx.execute(select(organization_members.c.user_id).where(*membership).with_for_update())


async def hold_members(tx: Tx, organization_id: UUID, user_ids: Collection[UUID]) -> set[UUID]:
    """Return the `user_ids` that are members, locked until the transaction ends: before they receive objects that end
    with the membership. Lock the users before: role changes lock a user and then the membership, and the objects name
    the user, too."""
    if not user_ids:
        return set()
    await hold_users(tx, user_ids)
    memberships = (
        organization_members.c.organization_id == organization_id,
        organization_members.c.user_id.in_(user_ids),
    )
    statement = select(organization_members.c.user_id).where(*memberships).order_by(organization_members.c.user_id)
    return {row[0] for row in await tx.execute(statement.with_for_update(read=True, key_share=True))}


_ACTIVE_MEMBER = PreparedStatement(
    select(organization_members.c.user_id)
    .join(users, users.c.id == organization_members.c.user_id)
    .where(
        organization_members.c.organization_id == bindparam("organization_id", type_=Uuid),
        organization_members.c.user_id == bindparam("user_id", type_=Uuid),
        ~users.c.deleted,
        users.c.status != "suspended",
    )
)


async def is_active_member(tx: Tx, organization_id: UUID, user_id: UUID) -> bool:
    """Return whether a living, unsuspended user belongs to the organization. A dormant user does: the next login
    makes the account active."""
    return bool(await _ACTIVE_MEMBER.fetch(tx, organization_id=organization_id, user_id=user_id))


async def list_members(tx: Tx, organization_id: UUID, which: UserFilter) -> tuple[list[MemberRow], int]:
    """Return a page of members by username and their number (0 when the page is empty)."""
    statement = (
        select(*MEMBER, func.count().over())
        .join(users, users.c.id == organization_members.c.user_id)
        .where(organization_members.c.organization_id == organization_id, *conditions(which))
        .order_by(func.lower(users.c.username))
        .offset(which.offset)
    )
    if which.limit:
        statement = statement.limit(which.limit)
    rows = list(await tx.execute(statement))
    return [MemberRow(*row[:-1]) for row in rows], (rows[0][-1] if rows else 0)


async def roles_by_organization(tx: Tx, user_id: UUID) -> dict[UUID, list[str]]:
    statement = select(organization_members.c.organization_id, organization_members.c.roles).where(
        organization_members.c.user_id == user_id
    )
    return {organization: list(roles) for organization, roles in await tx.execute(statement)}


async def update_member_roles(tx: Tx, organization_id: UUID, user_id: UUID, roles: Sequence[str]) -> None:
    await tx.execute(
        update(organization_members)
        .where(organization_members.c.organization_id == organization_id, organization_members.c.user_id == user_id)
        .values(roles=list(roles))
    )
