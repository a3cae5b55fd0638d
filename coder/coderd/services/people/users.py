"""Users: find them by the references in paths and queries, list and lock them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import NotFound
from coder.coderd.services.access.authorization import may, require
from coder.coderd.store.engine.names import as_id, as_uuid
from coder.coderd.store.people import organizations as organization_store
from coder.coderd.store.people import users as user_store
from coder.coderd.store.people.users import UserFilter as UserFilter
from coder.coderd.store.people.users import UserRow as UserRow
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from coder.domain.access.policy import Resource, Subject, allowed_ids, scope_allows

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


def user_resource(user_id: UUID) -> Resource:
    return Resource("user", id=str(user_id), owner_id=user_id)


async def find_user(ctx: Context, subject: Subject, reference: str) -> UserRow:
    """By `me`, id or name, without asking whether it may be read (sub-resources have rules of their own).

    Raises NotFound.
    """
    row = await ctx.db.read(_find, subject, reference)
    if row is None:
        raise NotFound
    return row


async def _find(tx: Tx, subject: Subject, reference: str) -> UserRow | None:
    if reference == "me":
        return await user_store.get_user(tx, subject.user_id)
    user_id = as_id(reference)
    if user_id is None:
        return await user_store.get_user_by_name(tx, reference)
    return await user_store.get_user(tx, user_id)


async def find_account(ctx: Context, subject: Subject, reference: str) -> UserRow:
    """Like `find_user`, for whose account a change is about: the system user has none. Raises NotFound."""
    row = await find_user(ctx, subject, reference)
    if row.id == PREBUILDS_USER_ID:
        raise NotFound
    return row


async def find_person(ctx: Context, subject: Subject, reference: str) -> UserRow:
    """Like `find_user`, for ids and names in queries: somebody the caller may name.

    Raises NotFound.
    """
    row = await find_user(ctx, subject, reference)
    if not may_name(subject, row):
        raise NotFound
    return row


def may_name(subject: Subject, row: UserRow) -> bool:
    """Whether the caller may know that there is such a person: who may be read, and who is in an organization of
    the caller's (members may name each other, to share)."""
    mine = subject.organization_roles
    return may(subject, "read", user_resource(row.id)) or any(one in mine for one in row.organization_ids)


async def read_user(ctx: Context, subject: Subject, reference: str) -> UserRow:
    """Like `find_user`, and the caller must be allowed to read the user."""
    row = await find_user(ctx, subject, reference)
    require(subject, "read", user_resource(row.id))
    return row


async def resolve_user(ctx: Context, subject: Subject, reference: str) -> UserRow:
    """Like `read_user`, for what is a person's own: keys, passwords, roles, settings.

    The system user has none of it, and nobody gives it any: whoever had its key would have every workspace that waits
    for an owner.
    """
    row = await find_account(ctx, subject, reference)
    require(subject, "read", user_resource(row.id))
    return row


async def list_users(ctx: Context, subject: Subject, wanted: user_store.UserFilter) -> tuple[list[UserRow], int]:
    """Everybody for those who may read users; just themselves for the others, nobody for a key that reads none."""
    if subject.kind != "system" and not scope_allows(subject, "read", "user"):
        return [], 0
    if not may(subject, "read", Resource("user")):
        wanted = replace(wanted, only_id=subject.user_id)
    listed = allowed_ids(subject, "user")
    if listed is not None:
        ids = [found for found in map(as_uuid, sorted(listed)) if found is not None]
        ids = [one for one in wanted.ids if one in ids] if wanted.ids else ids
        if not ids:
            return [], 0
        wanted = replace(wanted, ids=ids)
    return await ctx.db.read(user_store.list_users, wanted)


async def lock_user(tx: Tx, user_id: UUID) -> UserRow:
    """The user as it is now, held until the transaction ends: what was read before it began decides nothing."""
    row = await user_store.get_user(tx, user_id, lock=True)
    if row is None:
        raise NotFound
    return row


async def roles_by_organization(ctx: Context, user_id: UUID) -> dict[UUID, list[str]]:
    """Organization id -> roles the user has there."""
    return await ctx.db.read(organization_store.roles_by_organization, user_id)
