"""Changes to users: profile, status, site roles, deletion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack
from uuid import UUID

from coder.api.base.refusals import Conflict, ExpectationFailed, Forbidden, Invalid, NotFound
from coder.api.people.user_requests import UpdateUserProfileRequest
from coder.coderd.services.access.application_limits import refuse_applications
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.foundation.field_checks import check_request
from coder.coderd.services.foundation.uniqueness import constraint_refusals
from coder.coderd.services.people.member_changes import NO_ROLES
from coder.coderd.services.people.new_users import NAME_INDEX
from coder.coderd.services.people.role_assignment import hold_roles_of_both
from coder.coderd.services.people.users import lock_user, user_resource
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.people import system_users
from coder.coderd.store.people import users as user_store
from coder.coderd.store.people.users import UserRow
from coder.domain.access.policy import Class, Subject
from coder.domain.access.roles import SITE_ROLES

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


async def update_profile(ctx: Context, subject: Subject, user: UserRow, request: UpdateUserProfileRequest) -> UserRow:
    """Change a profile. Members may change their full name, but not their username."""
    check_request(request, {"username": user.username, "name": user.name})
    require(subject, "update_personal", user_resource(user.id))
    username, name = request.username, request.name
    if username != user.username:
        if not may(subject, "update", user_resource(user.id)):
            raise NotFound
        existing = await ctx.db.read(system_users.get_user_by_name, username)
        if existing is not None and existing.id != user.id:
            raise _name_conflict()
    now = ctx.clock.now()

    async def write(tx: Tx) -> UserRow:
        # Compare with the current username: a user may not restore an old name.
        if username != (await lock_user(tx, user.id)).username and not may(subject, "update", user_resource(user.id)):
            raise NotFound
        return await _change(tx, user.id, username=username, name=name, updated_at=now)

    with constraint_refusals({NAME_INDEX: _name_conflict()}):  # taken concurrently
        return await ctx.db.run(write)


def _name_conflict() -> Conflict:
    return Conflict(
        "A user with this username already exists.",
        validations=[("username", "This username is already in use.")],
    )


async def set_status(ctx: Context, subject: Subject, user: UserRow, status: str) -> UserRow:
    """Suspend or activate a user.

    Raises Invalid for an owner or the caller, Forbidden when the caller has lost the right meanwhile.
    """
    if status == "suspended":
        if user.id == subject.user_id:
            raise Invalid("You cannot suspend yourself.")
        _refuse_owner(user)
    require(subject, "update", user_resource(user.id))
    if status != "suspended":
        await refuse_applications(ctx, subject, "activation")
    now = ctx.clock.now()

    async def write(tx: Tx) -> UserRow:
        if status == "suspended":
            await hold_roles_of_both(tx, subject, user.id)
            _refuse_owner(await lock_user(tx, user.id))  # the user may have become an owner meanwhile
            await key_store.notify_user_revoked(tx, user.id)
        return await _change(tx, user.id, status=status, updated_at=now)

    return await ctx.db.run(write)


def _refuse_owner(user: UserRow) -> None:
    if "owner" in user.rbac_roles:
        raise Invalid('You cannot suspend a user with the "owner" role. You must remove the role first.')


async def set_roles(ctx: Context, subject: Subject, user: UserRow, roles: Sequence[str]) -> UserRow:
    """Set the site roles of a user.

    Raises Invalid for the caller's own roles, unknown roles, roles the caller may not assign or unassign, and the last
    owner.
    """
    if user.id == subject.user_id:
        raise Invalid("You cannot change your own roles.")
    require(subject, "read", user_resource(user.id))
    if not may(subject, "assign", Class("assign_role")):
        raise Forbidden
    _require_manual(ctx, user)
    await refuse_applications(ctx, subject, "role_grant")
    names = sorted(set(roles))
    for name in names:
        if name not in SITE_ROLES:
            raise Invalid(f'"{name}" is not a supported role')

    async def write(tx: Tx) -> UserRow:
        await hold_roles_of_both(tx, subject, user.id)
        before = (
            await lock_user(tx, user.id)
        ).rbac_roles  # the current roles: the caller must be allowed to undo a concurrent change
        for name in sorted(set(names).symmetric_difference(before)):
            if not may_assign(subject, name):
                raise Invalid(f'not authorized to assign role "{name}"')
        if not set(before) <= set(names) and not may(subject, "unassign", Class("assign_role")):
            raise Forbidden
        if "owner" not in names:
            await _keep_an_owner(tx, user.id)
        return await _change(tx, user.id, rbac_roles=names)  # roles are no part of the profile, so `updated_at` stays

    return await ctx.db.run(write)


def _require_manual(ctx: Context, user: UserRow) -> None:
    """Raise Invalid if the provider's claims decide about the user's site roles."""
    if user.login_type == "oidc" and ctx.config.oidc_user_role_field:
        raise Invalid(
            NO_ROLES,
            "'User Role Field' is set in the OIDC configuration. All role changes must come from the oidc identity "
            "provider.",
        )


def may_assign(subject: Subject, role: str) -> bool:
    """Whether the caller may assign a site role: owners every role, others `member`, which all users have."""
    return subject.kind == "system" or subject.is_owner or role == "member"


async def delete_user(ctx: Context, subject: Subject, user: UserRow) -> None:
    """Delete a user softly: its names become free, its sessions end.

    Raises Forbidden for the caller, ExpectationFailed for an owner of workspaces.
    """
    if user.id == subject.user_id:
        raise Forbidden("You cannot delete yourself!")
    require(subject, "delete", user_resource(user.id))
    if user.deleted:
        return

    async def write(tx: Tx) -> None:
        await hold_roles_of_both(tx, subject, user.id)
        await _keep_an_owner(tx, user.id)
        if await _owns_workspaces(tx, user.id):
            raise ExpectationFailed(
                "You cannot delete a user that has workspaces. Delete their workspaces and try again!"
            )
        await user_store.update_user(tx, user.id, deleted=True)
        await user_store.remove_memberships(tx, user.id)
        await key_store.delete_keys_of(tx, user.id)

    await ctx.db.run(write)


async def _keep_an_owner(tx: Tx, user_id: UUID) -> None:
    """Refuse to take the owner role from the last owner.

    Two owners who delete each other concurrently were both allowed to at the start. Raises Invalid.
    """
    user = await lock_user(tx, user_id)
    if "owner" in user.rbac_roles and not await user_store.has_other_owner(tx, user_id):
        raise Invalid("The last owner cannot lose the role.", "Give another user the owner role first.")


async def _owns_workspaces(tx: Tx, user_id: UUID) -> bool:
    from coder.coderd.store.workspaces import workspaces

    return await workspaces.count_owned(tx, user_id) > 0


async def _change(tx: Tx, user_id: UUID, **values: Unpack[user_store.UserChanges]) -> UserRow:
    await user_store.update_user(tx, user_id, **values)
    row = await system_users.get_user(tx, user_id)
    if row is None:
        raise NotFound
    return row
