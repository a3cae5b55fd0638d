"""Users: find them by the references in paths and queries, list and lock them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import NotFound
from coder.coderd.services.access.authorization import knows_user, may, require
from coder.coderd.store.engine.names import as_id, as_uuid
from coder.coderd.store.people import organizations as organization_store
from coder.coderd.store.people import system_users
from coder.coderd.store.people import users as user_store
from coder.coderd.store.people.users import UserFilter as UserFilter
from coder.coderd.store.people.users import UserRow as UserRow
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from coder.domain.access.policy import Class, Object, Subject, Target, allowed_ids, scope_allows

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


def user_resource(user_id: UUID) -> Target:
    return Object("user", str(user_id), owner_id=user_id)


async def find_user(ctx: Context, subject: Subject, reference: str) -> UserRow:
    """Find a user by `me`, id or name, without checking read permission (sub-resources have their own rules).

    Raises NotFound.
    """
    row = await ctx.db.read(_find, subject, reference)
    if row is None:
        raise NotFound
    return row


async def _find(tx: Tx, subject: Subject, reference: str) -> UserRow | None:
    if reference == "me":
        return await system_users.get_user(tx, subject.user_id)
    user_id = as_id(reference)
    if user_id is None:
        return await system_users.get_user_by_name(tx, reference)
    return await system_users.get_user(tx, user_id)


async def find_account(ctx: Context, subject: Subject, reference: str) -> UserRow:
    """Find a user whose account is to be changed. The system user has none. Raises NotFound."""
    row = await find_user(ctx, subject, reference)
    if row.id == PREBUILDS_USER_ID:
        raise NotFound
    return row


async def find_person(ctx: Context, subject: Subject, reference: str) -> UserRow:
    """Find a user by an id or name in a query, whom the caller may name.

    Raises NotFound.
    """
    row = await find_user(ctx, subject, reference)
    if not may_name(subject, row):
        raise NotFound
    return row


def may_name(subject: Subject, row: UserRow) -> bool:
    """Whether the caller may know that the user exists: with read permission, or in a common organization.

    Members may name each other, to share.
    """
    return knows_user(subject, row.id, row.organization_ids)


async def read_user(ctx: Context, subject: Subject, reference: str) -> UserRow:
    """Find a user that the caller may read. Raises NotFound, Forbidden."""
    row = await find_user(ctx, subject, reference)
    require(subject, "read", user_resource(row.id))
    return row


async def resolve_user(ctx: Context, subject: Subject, reference: str) -> UserRow:
    """Find a user by the reference in a path to keys, passwords, roles or settings, with read permission.

    The system user has none of them. A key of the system user would give access to every workspace that waits for an
    owner.
    """
    row = await find_account(ctx, subject, reference)
    require(subject, "read", user_resource(row.id))
    return row


async def list_users(ctx: Context, subject: Subject, filters: user_store.UserFilter) -> tuple[list[UserRow], int]:
    """List users: all with read permission, otherwise only the caller, and none for a key that may not read users."""
    if subject.kind != "system" and not scope_allows(subject, "read", "user"):
        return [], 0
    if not may(subject, "read", Class("user", narrowed=True)):
        filters = replace(filters, only_id=subject.user_id)
    narrowed = narrow_users(subject, "user", filters)
    return ([], 0) if narrowed is None else await ctx.db.read(user_store.list_users, narrowed)


def narrow_users(subject: Subject, kind: str, filters: user_store.UserFilter) -> user_store.UserFilter | None:
    """Narrow a list of users to those that the caller's key lists as `kind`; None if that leaves none."""
    allowed = allowed_ids(subject, kind)
    if allowed is None:
        return filters
    ids = [user_id for user_id in map(as_uuid, sorted(allowed)) if user_id is not None]
    ids = [user_id for user_id in filters.ids if user_id in ids] if filters.ids else ids
    return replace(filters, ids=ids) if ids else None


async def lock_user(tx: Tx, user_id: UUID) -> UserRow:
    """Read a user and lock it until the transaction ends. State read before the transaction must not decide."""
    row = await system_users.get_user(tx, user_id, lock=True)
    if row is None:
        raise NotFound
    return row


async def roles_by_organization(ctx: Context, user_id: UUID) -> dict[UUID, list[str]]:
    """Return the user's roles by organization id."""
    return await ctx.db.read(organization_store.roles_by_organization, user_id)
