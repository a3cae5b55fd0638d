"""Organizations and memberships."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from msgspec import UNSET

from coder.api.base.refusals import Conflict, Forbidden, Invalid, InvalidFields, NotFound
from coder.api.people.organizations import (
    CreateOrganizationRequest,
    Organization,
    OrganizationMember,
    OrganizationMemberWithUserData,
    UpdateOrganizationRequest,
)
from coder.base.ids import new_uuid
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.foundation.field_checks import check_request
from coder.coderd.services.foundation.uniqueness import told_as
from coder.coderd.services.people.held_roles import hold_roles_of_both
from coder.coderd.services.people.user_views import slim_roles
from coder.coderd.store.access import acls as acl_store
from coder.coderd.store.engine.names import as_id
from coder.coderd.store.people import custom_roles as role_store
from coder.coderd.store.people import groups as group_store
from coder.coderd.store.people import organizations as store
from coder.coderd.store.people import users as user_store
from coder.coderd.store.people.organizations import MemberRow
from coder.coderd.store.people.organizations import OrganizationRow as OrganizationRow
from coder.domain.access.policy import Resource, Subject, allowed_organizations, scope_allows
from coder.domain.access.roles import IMPLICIT_ORGANIZATION_ROLE, ORGANIZATION_ROLES

if TYPE_CHECKING:
    from datetime import datetime

    from coder.api.base.enums import LoginType, UserStatus
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.people.users import UserFilter, UserRow

_NAME_INDEX = "ix_organizations_name_living"

# What a user-admin may hand out: roles which give nothing over other people's things.
_HARMLESS = frozenset({"organization-workspace-access", "agents-access", IMPLICIT_ORGANIZATION_ROLE})


def organization_resource(organization_id: UUID) -> Resource:
    return Resource("organization", id=str(organization_id), organization_id=organization_id)


def member_resource(organization_id: UUID, user_id: UUID | None = None) -> Resource:
    return Resource(
        "organization_member",
        id=None if user_id is None else str(user_id),
        owner_id=user_id,
        organization_id=organization_id,
    )


async def resolve_organization(ctx: Context, subject: Subject, reference: str) -> OrganizationRow:
    """By id, name or `default`; the caller must be allowed to read it. Raises NotFound."""
    row = await ctx.db.read(_find, reference)
    if row is None:
        raise NotFound
    require(subject, "read", organization_resource(row.id))
    return row


async def _find(tx: Tx, reference: str) -> OrganizationRow | None:
    if reference == "default":
        return await store.get_default_organization(tx)
    organization_id = as_id(reference)
    if organization_id is None:
        return await store.get_organization_by_name(tx, reference)
    return await store.get_organization(tx, organization_id)


async def list_organizations(ctx: Context, subject: Subject) -> list[OrganizationRow]:
    if subject.kind != "system" and not scope_allows(subject, "read", "organization"):
        return []
    allowed = allowed_organizations(subject, "read", "organization")
    return await ctx.db.read(store.list_organizations, None if allowed is None else sorted(allowed))


async def organizations_of(ctx: Context, subject: Subject, user_id: UUID) -> list[OrganizationRow]:
    """Those of a user which the caller may read."""
    found = await ctx.db.read(store.list_organizations_of, user_id)
    return [row for row in found if may(subject, "read", organization_resource(row.id))]


# ---- made, changed, deleted

_RESERVED = "default"
"""What paths call the default organization by."""


async def create_organization(ctx: Context, subject: Subject, wanted: CreateOrganizationRequest) -> OrganizationRow:
    """With its Everyone group; its maker becomes its administrator. Raises Forbidden, InvalidFields, Conflict."""
    require(subject, "create", Resource("organization"), hidden=False)
    display_name = wanted.name if wanted.display_name in (UNSET, "") else str(wanted.display_name)
    _check_reserved(wanted.name)
    now = ctx.clock.now()
    values = {
        "id": new_uuid(),
        "name": wanted.name,
        "display_name": display_name,
        "description": wanted.description or "",
        "icon": wanted.icon or "",
        "created_at": now,
        "updated_at": now,
    }
    maker = subject.user_id if subject.kind == "user" else None
    with told_as({_NAME_INDEX: _taken()}):
        return await ctx.db.run(_insert, values, maker)


async def _insert(tx: Tx, values: dict[str, Any], maker: UUID | None) -> OrganizationRow:
    await store.insert_organization(tx, values)
    if maker is not None:
        await store.insert_member(tx, values["id"], maker, values["created_at"], ["organization-admin"])
    row = await store.get_organization(tx, values["id"])
    if row is None:  # inserted above, in this transaction
        raise NotFound
    return row


async def update_organization(
    ctx: Context, subject: Subject, organization: OrganizationRow, wanted: UpdateOrganizationRequest
) -> OrganizationRow:
    """Absent fields stay. Raises Forbidden, Invalid (roles the caller may not give), InvalidFields, Conflict."""
    check_request(wanted, {"name": organization.name, "display_name": organization.display_name})
    require(subject, "update", organization_resource(organization.id))
    now = ctx.clock.now()
    with told_as({_NAME_INDEX: _taken()}):
        await ctx.db.run(_update, subject, organization.id, wanted, now)
    return await resolve_organization(ctx, subject, str(organization.id))


async def _update(
    tx: Tx, subject: Subject, organization_id: UUID, wanted: UpdateOrganizationRequest, now: datetime
) -> None:
    values: dict[str, Any] = {
        name: getattr(wanted, name)
        for name in ("name", "display_name", "description", "icon")
        if getattr(wanted, name) is not UNSET and (getattr(wanted, name) or name in {"description", "icon"})
    }
    roles: list[str] | None = None
    if isinstance(wanted.default_org_member_roles, list):
        roles = await _default_roles(tx, organization_id, wanted.default_org_member_roles)
    present = await lock_organization(tx, organization_id)
    # Compared with what they are now: what others just took back is not everybody's to give.
    before = set(present.default_member_roles)
    if roles is not None and before != set(roles):
        require_assign(subject, organization_id, set(roles) - before, before - set(roles))
        values["default_member_roles"] = roles
    if values.get("name", present.name) != present.name:
        _check_reserved(values["name"])
    await store.update_organization(tx, organization_id, **values, updated_at=now)


async def lock_organization(tx: Tx, organization_id: UUID) -> OrganizationRow:
    """The organization as it is now, held until the transaction ends. Raises NotFound: it was deleted meanwhile."""
    return _there(await store.get_organization(tx, organization_id, lock=True))


async def hold_organization(tx: Tx, organization_id: UUID) -> OrganizationRow:
    """The same for who puts something in: it is not deleted until the transaction ends. Raises NotFound."""
    return _there(await store.get_organization(tx, organization_id, hold=True))


def _there(row: OrganizationRow | None) -> OrganizationRow:
    if row is None:
        raise NotFound
    return row


async def _default_roles(tx: Tx, organization_id: UUID, names: Sequence[str]) -> list[str]:
    wanted = sorted(set(names))
    own = await role_store.hold_roles(tx, organization_id, wanted)
    for name in wanted:
        if name not in ORGANIZATION_ROLES and name not in own:
            raise InvalidFields(("default_org_member_roles", f'"{name}" is not a role of this organization'))
    return wanted


async def delete_organization(ctx: Context, subject: Subject, organization: OrganizationRow) -> None:
    """Only when nothing is left in it. Raises Forbidden, Invalid."""
    require(subject, "delete", organization_resource(organization.id))
    if organization.is_default:
        raise Invalid("Default organization cannot be deleted.")
    await ctx.db.run(_delete, organization.id, ctx.clock.now())


async def _delete(tx: Tx, organization_id: UUID, now: datetime) -> None:
    await lock_organization(tx, organization_id)
    left = {name: count for name, count in (await store.count_contents(tx, organization_id)).items() if count}
    if left:
        listed = ", ".join(f"{count} {name}" for name, count in left.items())
        raise Invalid(
            "Unable to delete organization.",
            f"cannot delete organization: organization has {listed} that must be deleted first",
        )
    await store.update_organization(tx, organization_id, deleted=True, updated_at=now)


def _check_reserved(name: str) -> None:
    if name == _RESERVED:
        raise Invalid(f'Organization name "{name}" is reserved.')


def _taken() -> Conflict:
    return Conflict(
        "Organization already exists with that name.",
        validations=[("name", "This value is already in use and should be unique.")],
    )


# ---- members


async def list_members(
    ctx: Context, subject: Subject, organization: OrganizationRow, wanted: UserFilter
) -> tuple[list[MemberRow], int]:
    require(subject, "read", organization_resource(organization.id))
    return await ctx.db.read(store.list_members, organization.id, wanted)


async def get_member(
    ctx: Context, subject: Subject, organization: OrganizationRow, user: UserRow, action: str = "read"
) -> MemberRow:
    """Members of an organization may see each other. Raises NotFound."""
    row = await ctx.db.read(store.get_member, organization.id, user.id)
    if row is None:
        raise NotFound
    if action == "read" and may(subject, "read", organization_resource(organization.id)):
        return row
    require(subject, action, member_resource(organization.id, user.id))
    return row


async def add_member(
    ctx: Context, subject: Subject, organization: OrganizationRow, user: UserRow
) -> OrganizationMember:
    """Raises NotFound, Forbidden, Invalid: a member already, or default roles the caller may not give."""
    require(subject, "create", member_resource(organization.id))
    now = ctx.clock.now()

    async def write(tx: Tx) -> None:
        # The person first, as signing in does, which makes memberships, too: the row names both.
        held = await user_store.get_user(tx, user.id, hold=True)
        if held is None or held.deleted:
            raise NotFound
        require_default_roles(subject, await hold_organization(tx, organization.id))
        await store.insert_member(tx, organization.id, user.id, now)

    said = f"{user.username} is already a member of {organization.display_name}"
    with told_as({"pk_organization_members": Invalid("User is already an organization member.", said)}):
        await ctx.db.run(write)
    row = await ctx.db.read(store.get_member, organization.id, user.id)
    if row is None:
        raise NotFound
    return member_view(row)


async def remove_member(ctx: Context, subject: Subject, organization: OrganizationRow, user: UserRow) -> None:
    """Raises Invalid (oneself), NotFound, Forbidden: a role that denies something is taken away by removing whoever has
    it and adding them anew, so that removing asks for what taking the role asks for."""
    if user.id == subject.user_id:
        raise Invalid("cannot remove self from an organization")
    await get_member(ctx, subject, organization, user)
    if not may(subject, "delete", member_resource(organization.id, user.id)):
        raise NotFound  # recorded: not 403, though members see each other

    async def write(tx: Tx) -> None:
        await hold_roles_of_both(tx, subject, user.id, organization)
        member = await store.get_member(tx, organization.id, user.id, lock=True)
        if member is None:
            raise NotFound
        denying = await _denying(tx, organization.id, member.roles)
        try:
            if denying:
                require_assign(subject, organization.id, taken=denying)
        except (Forbidden, Invalid) as refusal:
            raise Forbidden(
                f'"{user.username}" has a role that denies something: {", ".join(denying)}.',
                "Whoever may take this role away may remove the member.",
            ) from refusal
        await leave_organization(tx, organization.id, user.id)

    await ctx.db.run(write)


async def _denying(tx: Tx, organization_id: UUID, names: Sequence[str]) -> list[str]:
    """Those of `names` that are roles which deny something: of them alone somebody is better off without."""
    found = {name for name in names if name in ORGANIZATION_ROLES and ORGANIZATION_ROLES[name].organization_denied}
    rows = await role_store.list_roles(tx, organization_id, names) if names else []
    return sorted(found | {row.name for row in rows if row.permissions.get("organization_denied")})


async def leave_organization(tx: Tx, organization_id: UUID, user_id: UUID) -> None:
    """Ends a membership with all that hangs on it: groups, and what was shared with the person."""
    # First, and looked at afterwards: what hangs on it is given by those who hold it.
    await store.lock_member(tx, organization_id, user_id)
    await group_store.leave_groups(tx, organization_id, user_id)
    await acl_store.revoke_person(tx, organization_id, user_id)
    await store.delete_member(tx, organization_id, user_id)


async def set_member_roles(
    ctx: Context, subject: Subject, organization: OrganizationRow, user: UserRow, roles: Sequence[str]
) -> OrganizationMember:
    """Raises Invalid: own roles, unknown roles, roles the caller may not give or take."""
    await get_member(ctx, subject, organization, user)
    if user.id == subject.user_id:
        raise Invalid(
            "You cannot change your own organization roles.",
            "Another user with the appropriate permissions must change your roles.",
        )
    require_assign(subject, organization.id)
    wanted = sorted(set(roles))

    async def write(tx: Tx) -> MemberRow:
        own = await role_store.hold_roles(tx, organization.id, wanted)
        await hold_roles_of_both(tx, subject, user.id, organization)
        for name in wanted:
            if name not in ORGANIZATION_ROLES and name not in own:
                raise Invalid(f'"{name}:{organization.id}" is not a supported role')
        member = await store.get_member(tx, organization.id, user.id, lock=True)
        if member is None:
            raise NotFound
        # Compared with what they are now: what others just gave is not everybody's to take.
        before = set(member.roles)
        require_assign(subject, organization.id, set(wanted) - before, before - set(wanted))
        await store.update_member_roles(tx, organization.id, user.id, wanted)
        return replace(member, roles=wanted)

    row = await ctx.db.run(write)
    return member_view(row, await role_titles(ctx, organization.id, [row]))


def require_assign(
    subject: Subject, organization_id: UUID, given: Iterable[str] = (), taken: Iterable[str] = ()
) -> None:
    """May the caller give roles here, give each of `given` and take each of `taken`? Raises Forbidden, Invalid."""
    roles = Resource("assign_org_role", organization_id=organization_id)
    if not may(subject, "assign", roles) or (taken and not may(subject, "unassign", roles)):
        raise Forbidden
    for name in sorted({*given, *taken}):
        if not may_assign(subject, organization_id, name):
            raise Invalid(f'not authorized to assign role "{name}:{organization_id}"')


def require_default_roles(subject: Subject, organization: OrganizationRow) -> None:
    """May the caller make members here, who get the organization's default roles at once?

    Harmless roles come with every membership; each other one is asked for like a role given by hand. Raises
    Forbidden, Invalid.
    """
    given = set(organization.default_member_roles) - _HARMLESS
    if given:
        require_assign(subject, organization.id, given)


def may_assign(subject: Subject, organization_id: UUID, role: str) -> bool:
    """Owners and organization admins give every role; others only what is harmless. Who gives one takes it, too."""
    if subject.kind == "system" or subject.is_owner:
        return True
    mine = subject.organization_roles.get(organization_id, frozenset())
    return "organization-admin" in mine or role in _HARMLESS


# ---- showing


def organization_view(row: OrganizationRow) -> Organization:
    return Organization(
        id=row.id,
        name=row.name,
        display_name=row.display_name,
        icon=row.icon,
        description=row.description,
        created_at=row.created_at,
        updated_at=row.updated_at,
        is_default=row.is_default,
        default_org_member_roles=list(row.default_member_roles),
    )


async def role_titles(ctx: Context, organization_id: UUID, rows: Sequence[MemberRow]) -> dict[str, str]:
    """Display names of the organization's own roles among these members' roles; no query when there are none."""
    own = sorted({name for row in rows for name in row.roles if name not in ORGANIZATION_ROLES})
    if not own:
        return {}
    return {role.name: role.display_name for role in await ctx.db.read(role_store.list_roles, organization_id, own)}


def member_view(row: MemberRow, titles: Mapping[str, str] = {}) -> OrganizationMember:
    return OrganizationMember(
        user_id=row.user_id,
        organization_id=row.organization_id,
        created_at=row.created_at,
        updated_at=row.updated_at,
        roles=slim_roles(row.roles, row.organization_id, titles),
    )


def member_with_user_view(row: MemberRow, titles: Mapping[str, str] = {}) -> OrganizationMemberWithUserData:
    return OrganizationMemberWithUserData(
        user_id=row.user_id,
        organization_id=row.organization_id,
        created_at=row.created_at,
        updated_at=row.updated_at,
        roles=slim_roles(row.roles, row.organization_id, titles),
        username=row.username,
        name=row.name or UNSET,
        avatar_url=row.avatar_url or UNSET,
        email=row.email,
        status=cast("UserStatus", row.status),
        login_type=cast("LoginType", row.login_type),
        last_seen_at=row.last_seen_at,
        user_created_at=row.user_created_at,
        user_updated_at=row.user_updated_at,
        global_roles=slim_roles(row.global_roles),
        has_ai_seat=False,
        is_service_account=row.is_service_account or UNSET,
    )
