"""Users provisioned by an identity provider: the part of SCIM 2.0 (RFC 7643 and 7644) that providers use.

A provisioned user logs in by OpenID Connect. Deactivating suspends a user, activating makes it dormant until the next
login.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Conflict, Invalid, NotFound
from coder.api.field_rules.rules import is_email
from coder.base.json_types import Json, JsonObject
from coder.coderd.services.people import new_users, organization_settings, user_changes
from coder.coderd.store.people import organizations as organization_store
from coder.coderd.store.people import system_users
from coder.coderd.store.people import users as user_store
from coder.coderd.store.people.users import UserFilter, UserRow
from coder.domain.access.policy import SYSTEM
from coder.domain.login.identity import username_from
from coder.domain.people import scim_documents
from coder.domain.people.scim_filters import Comparison, is_match, value_of

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


_STATUSES = ("active", "dormant", "suspended")
_LOGIN_TYPES = ("github", "oidc", "password", "token")
"""Login types of the users that a provider may manage: those that log in."""


@dataclass(frozen=True, slots=True)
class ScimUser:
    """User as the provider sends it; absent fields are None."""

    username: str
    email: str
    name: str
    active: Json


def canonical(document: Mapping[str, Json]) -> JsonObject:
    """Return the provider's document with the names that `describe` reads. Raises Invalid."""
    try:
        return scim_documents.canonical(document)
    except ValueError as error:
        raise Invalid(str(error)) from None


def patched(document: Mapping[str, Json]) -> JsonObject:
    """Return the attributes that a canonical patch sets. Raises Invalid."""
    try:
        return scim_documents.patched(document)
    except ValueError as error:
        raise Invalid(str(error)) from None


def describe(document: Mapping[str, Json]) -> ScimUser:
    """Read a canonical SCIM user."""
    name = document.get("name")
    names = [str(name.get(part) or "") for part in ("givenName", "familyName")] if isinstance(name, Mapping) else []
    return ScimUser(
        username=str(document.get("userName") or ""),
        email=_primary(document.get("emails")),
        name=" ".join(part for part in names if part)[:128].strip(),
        active=document.get("active"),
    )


def _primary(emails: Json) -> str:
    items = [item for item in emails if isinstance(item, Mapping)] if isinstance(emails, list) else []
    chosen = next((item for item in items if item.get("primary")), items[0] if items else None)
    return str(chosen.get("value") or "").strip() if chosen is not None else ""


async def provision(ctx: Context, document: Mapping[str, Json]) -> UserRow:
    """Return the user of a SCIM document, by email address, or create it. Raises Invalid, Conflict."""
    new_user = describe(document)
    if not new_user.email:
        raise Invalid("no primary email provided")
    if not is_email(new_user.email):
        raise Invalid("the primary email is not an email address")
    existing = await ctx.db.read(system_users.get_user_by_email, new_user.email)
    if existing is not None:
        return await set_active(ctx, existing, new_user.active)
    name = username_from(new_user.username or new_user.email)
    if await ctx.db.read(system_users.get_user_by_name, name) is not None:
        raise Conflict(f'The username "{name}" is taken by a user with another email.')
    organizations = []
    sync = await ctx.db.read(organization_settings.load_organization_sync)
    if sync.organization_assign_default or not sync.field:
        organizations.append((await ctx.db.read(organization_store.get_default_organization)).id)
    row = await new_users.insert_user(
        ctx,
        new_users.NewUser(
            email=new_user.email,
            username=name,
            name=new_user.name,
            login_type="oidc",
            organization_ids=organizations,
        ),
    )
    return await set_active(ctx, row, new_user.active)


async def find(ctx: Context, ident: str) -> UserRow:
    """Find a user by the id that `provision` returned. Deleted users are not found (RFC 7644 section 3.6). Raises
    NotFound.
    """
    try:
        row = await ctx.db.read(system_users.get_user, UUID(ident))
    except ValueError:
        row = None
    if row is None or row.deleted or row.login_type == "none":
        raise NotFound
    return row


def is_name_of(row: UserRow, username: str) -> bool:
    """Return whether a provider's `userName` is this user's: its name, its address, or the source of its name.

    Case does not count (RFC 7643 section 4.1.1), and an absent name changes nothing.
    """
    names = {row.username.lower(), row.email.lower()}
    return not username or username.lower() in names or username_from(username).lower() == row.username.lower()


async def search(
    ctx: Context, comparisons: Sequence[Comparison], *, offset: int, limit: int
) -> tuple[list[UserRow], int]:
    """Return a page of the users that a provider may manage and that match, and their total number."""
    if not comparisons or {name for name, _ in comparisons} == {"active"}:
        return await _page(ctx, {value in {True, "true"} for _, value in comparisons}, offset, limit)
    rows = [row for row in await _candidates(ctx, comparisons) if _is_match(row, comparisons)]
    return rows[offset : offset + limit], len(rows)


async def _page(ctx: Context, active: set[bool], offset: int, limit: int) -> tuple[list[UserRow], int]:
    if len(active) == 2:
        return [], 0
    statuses = [name for name in _STATUSES if not active or (name != "suspended") in active]
    which = UserFilter(statuses=statuses, login_types=_LOGIN_TYPES, offset=offset, limit=limit or 1)
    rows, total = await ctx.db.read(user_store.list_users, which)
    if not rows and offset:
        _, total = await ctx.db.read(user_store.list_users, replace(which, offset=0, limit=1))
    return rows[:limit], total


async def _candidates(ctx: Context, comparisons: Sequence[Comparison]) -> list[UserRow]:
    """Return the users that one unique attribute selects; no user for a filter without one."""
    ident = value_of(comparisons, "id")
    if ident is not None:
        try:
            rows = [await find(ctx, ident)]
        except NotFound:
            rows = []
        return rows
    name = value_of(comparisons, "userName", "emails", "emails.value")
    if name is None:
        return []
    found = [
        await ctx.db.read(query, name) for query in (system_users.get_user_by_name, system_users.get_user_by_email)
    ]
    unique = {row.id: row for row in found if row is not None and row.login_type in _LOGIN_TYPES}
    return list(unique.values())


def _is_match(row: UserRow, comparisons: Sequence[Comparison]) -> bool:
    return is_match(
        comparisons,
        ident=str(row.id),
        username=row.username,
        email=row.email,
        active=row.status != "suspended",
    )


async def set_active(ctx: Context, row: UserRow, active: Json) -> UserRow:
    """Suspend or activate a user, unless `active` is None or already so. Raises Invalid for an owner."""
    if active is False and row.status != "suspended":
        return await user_changes.set_status(ctx, SYSTEM, row, "suspended")
    if active and row.status == "suspended":
        return await user_changes.set_status(ctx, SYSTEM, row, "dormant")
    return row
