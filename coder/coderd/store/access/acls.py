"""Access lists: users and groups by id, with the names that pages show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from sqlalchemy import Text, Update, func, literal, literal_column, or_, select, update

from coder.coderd.store.access.keys import notify_sharing_revoked
from coder.coderd.store.engine.names import as_uuid
from coder.coderd.store.engine.sql_types import Query, SqlColumn, SqlTable
from coder.coderd.store.tables.people import group_members, groups, organization_members, organizations, users
from coder.coderd.store.tables.templates import templates
from coder.coderd.store.tables.workspaces import workspaces
from coder.coderd.store.workspaces.change_feed import notify_changes

if TYPE_CHECKING:
    from coder.api.base.enums import GroupSource
    from coder.coderd.store.engine.database import Tx

_NOBODY: SqlColumn = literal_column("'{}'::jsonb")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AclUser:
    id: UUID
    username: str
    name: str
    avatar_url: str


@dataclass(frozen=True, slots=True)
class AclGroup:
    id: UUID
    name: str
    display_name: str
    organization_id: UUID
    avatar_url: str
    quota_allowance: int
    source: GroupSource
    organization_name: str
    organization_display_name: str
    member_count: int


async def load_actors(
    tx: Tx, user_ids: Sequence[str], group_ids: Sequence[str]
) -> tuple[list[AclUser], list[AclGroup]]:
    """Return the living users and groups of an access list, by name."""
    people: list[AclUser] = []
    if user_ids:
        query = select(users.c.id, users.c.username, users.c.name, users.c.avatar_url)
        query = query.where(users.c.id.in_(_uuids(user_ids)), ~users.c.deleted)
        people = [AclUser(*row) for row in await tx.execute(query.order_by(users.c.username))]
    return people, await _groups(tx, _uuids(group_ids)) if group_ids else []


async def _groups(tx: Tx, ids: Sequence[UUID]) -> list[AclGroup]:
    # Everyone has its organization's id and no member rows: its members are the organization's.
    everyone = (
        select(func.count())
        .select_from(organization_members.join(users, users.c.id == organization_members.c.user_id))
        .where(organization_members.c.organization_id == groups.c.id, ~users.c.is_system, ~users.c.deleted)
        .correlate(groups)
        .scalar_subquery()
    )
    listed = select(func.count()).where(group_members.c.group_id == groups.c.id).correlate(groups).scalar_subquery()
    query: Query = (
        select(
            groups.c.id,
            groups.c.name,
            groups.c.display_name,
            groups.c.organization_id,
            groups.c.avatar_url,
            groups.c.quota_allowance,
            groups.c.source,
            organizations.c.name,
            organizations.c.display_name,
            everyone + listed,
        )
        .join(organizations, organizations.c.id == groups.c.organization_id)
        .where(groups.c.id.in_(ids))
        .order_by(groups.c.name)
    )
    return [AclGroup(*row) for row in await tx.execute(query)]


def by_id(acl: Mapping[str, T]) -> dict[str, T]:
    """Return an access list (or a change of one) with ids in our canonical form, without invalid keys."""
    results = [(as_uuid(key), role) for key, role in acl.items()]
    return {str(key): role for key, role in results if key is not None}


async def living_users(tx: Tx, ids: Sequence[str], organization_id: UUID) -> dict[UUID, bool]:
    """Return the `ids` of living users, and whether each is a member of the organization."""
    member = (
        select(organization_members.c.user_id)
        .where(organization_members.c.user_id == users.c.id, organization_members.c.organization_id == organization_id)
        .exists()
    )
    query = select(users.c.id, member).where(users.c.id.in_(_uuids(ids)), ~users.c.deleted)
    return {row[0]: row[1] for row in await tx.execute(query)} if ids else {}


async def organizations_of_groups(tx: Tx, ids: Sequence[str]) -> dict[UUID, UUID]:
    """Return the organization of each group in `ids`."""
    query = select(groups.c.id, groups.c.organization_id).where(groups.c.id.in_(_uuids(ids)))
    return {row[0]: row[1] for row in await tx.execute(query)} if ids else {}


def _uuids(ids: Sequence[str]) -> list[UUID]:
    return [item for item in map(as_uuid, ids) if item is not None]


async def clear_workspace_acls(tx: Tx, organization_id: UUID, *, people_only: bool) -> None:
    """Revoke all shares of an organization; `people_only` keeps the service accounts' workspaces."""
    shared = or_(workspaces.c.user_acl != _NOBODY, workspaces.c.group_acl != _NOBODY)
    statement = update(workspaces).where(workspaces.c.organization_id == organization_id, shared)
    if people_only:
        accounts = select(users.c.id).where(users.c.is_service_account)
        statement = statement.where(workspaces.c.owner_id.not_in(accounts))
    await _write_and_notify(tx, statement.values(user_acl={}, group_acl={}))
    await notify_sharing_revoked(tx)


async def revoke_user(tx: Tx, organization_id: UUID, user_id: UUID) -> None:
    """Remove a user from every access list of an organization."""
    await notify_sharing_revoked(tx)
    # Locks in the order of a template change, which continues with the template's workspaces.
    await tx.execute(_without(templates, organization_id, user_id))
    await _write_and_notify(tx, _without(workspaces, organization_id, user_id))


def _without(table: SqlTable, organization_id: UUID, user_id: UUID) -> Update:
    lists, key = table.c.user_acl, literal(str(user_id), Text)
    matching = update(table).where(table.c.organization_id == organization_id, lists.has_key(key))
    return matching.values(user_acl=lists.op("-", return_type=lists.type)(key))


async def _write_and_notify(tx: Tx, statement: Update) -> None:
    """Execute a statement and notify watchers, which use a shared copy of a workspace until then."""
    changed = await tx.execute(statement.returning(workspaces.c.owner_id, workspaces.c.id))
    await notify_changes(tx, "settings", [(row.owner_id, row.id) for row in changed])


async def available_groups(tx: Tx, organization_id: UUID) -> list[AclGroup]:
    """Return every group of an organization, by name."""
    ids = select(groups.c.id).where(groups.c.organization_id == organization_id)
    return await _groups(tx, [row[0] for row in await tx.execute(ids)])
