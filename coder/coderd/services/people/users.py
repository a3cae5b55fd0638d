"""Users: found by whatever a path calls them, listed, created, changed, suspended, deleted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Unpack
from uuid import UUID

from coder.api.base.refusals import Conflict, ExpectationFailed, Forbidden, Invalid, NotFound
from coder.api.field_rules.rules import EMAIL, REAL_NAME, REQUIRED, USERNAME
from coder.api.people.user_requests import UpdateUserProfileRequest
from coder.base.ids import new_uuid
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.access.passwords import check_strength, hash_password, verify_password
from coder.coderd.services.foundation.field_checks import check_fields, check_request
from coder.coderd.services.foundation.uniqueness import told_as
from coder.coderd.services.people import git_ssh_keys
from coder.coderd.services.people.held_roles import hold_roles_of_both
from coder.coderd.services.people.organizations import hold_organization, require_default_roles
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.engine.names import as_id, as_uuid
from coder.coderd.store.people import organizations as organization_store
from coder.coderd.store.people import users as user_store
from coder.coderd.store.people.users import UserFilter as UserFilter
from coder.coderd.store.people.users import UserRow as UserRow
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from coder.domain.access.policy import Resource, Subject, allowed_ids, scope_allows
from coder.domain.access.roles import SITE_ROLES
from coder.domain.foundation.zero import ZERO_TIME

if TYPE_CHECKING:
    from datetime import datetime

    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_NAME_INDEX, _EMAIL_INDEX = "ix_users_username_living", "ix_users_email_living"
_STATUSES = ("active", "dormant", "suspended")
_WITHOUT_PASSWORD = ("github", "oidc", "none")


@dataclass(frozen=True, slots=True)
class NewUser:
    """What somebody is created with, checked already for form."""

    email: str
    username: str
    name: str = ""
    password: str = ""
    login_type: str = "password"
    status: str = "dormant"
    organization_ids: Sequence[UUID] = ()
    roles: Sequence[str] = ()
    is_service_account: bool = False


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


# ---- making


def check_names(username: str, name: str, email: str | None = None) -> None:
    """Of somebody who comes by another way than a request. Raises InvalidFields."""
    fields = [("username", username, (REQUIRED, USERNAME)), ("name", name, (REAL_NAME,))]
    check_fields(*([] if email is None else [("email", email, (REQUIRED, EMAIL))]), *fields)


async def create_user(ctx: Context, subject: Subject, wanted: NewUser) -> UserRow:
    """Raises Forbidden, Invalid (also default roles the caller may not give), Conflict, NotFound (an organization)."""
    require(subject, "create", Resource("user"), hidden=False)
    if wanted.login_type not in ("password", "") and wanted.password:
        raise Invalid(f'Password cannot be set for non-password ("{wanted.login_type}") authentication.')
    if wanted.login_type == "none" and not wanted.is_service_account:
        raise Invalid("Login type 'none' is reserved for service accounts.")
    if not wanted.organization_ids:
        raise Invalid(
            "No organization specified to place the user as a member of. It is required to specify at least one "
            "organization id to place the user in.",
            "required at least 1 value for the array 'organization_ids'",
            [("organization_ids", "Missing values, this cannot be empty")],
        )
    await ctx.db.read(_check_free, wanted)
    if wanted.login_type == "password":
        check_strength(wanted.password)
    elif wanted.login_type == "oidc" and not ctx.config.oidc_client_id:
        raise Invalid("You must configure OIDC before creating OIDC users.")
    elif wanted.login_type not in _WITHOUT_PASSWORD:
        raise Invalid(f'Unsupported login type "{wanted.login_type}" for manually creating new users.')
    if wanted.status not in _STATUSES:
        detail = f'"{wanted.status}" is none of: {", ".join(_STATUSES)}.'
        raise Invalid(f'User status "{wanted.status}" is not valid.', detail, [("user_status", detail)])
    return await insert_user(ctx, wanted, partial(_require_default_roles, subject, wanted.organization_ids))


async def _require_default_roles(subject: Subject, organization_ids: Sequence[UUID], tx: Tx) -> None:
    for organization_id in sorted(organization_ids):
        require_default_roles(subject, await hold_organization(tx, organization_id))


async def _check_free(tx: Tx, wanted: NewUser) -> None:
    for organization_id in wanted.organization_ids:
        if await organization_store.get_organization(tx, organization_id) is None:
            raise NotFound(f'Organization does not exist with the provided id "{organization_id}".')
    taken = await user_store.get_user_by_name(tx, wanted.username)
    if taken is None and wanted.email:
        taken = await user_store.get_user_by_email(tx, wanted.email)
    if taken is not None:
        raise Conflict("User already exists.")


async def insert_user(ctx: Context, wanted: NewUser, guard: Callable[[Tx], Awaitable[None]] | None = None) -> UserRow:
    """Without any check but uniqueness: for first users and identity providers, too.

    `guard` runs first in the same transaction and may refuse.
    """
    hashed = await hash_password(wanted.password) if wanted.password else ""
    pair = await git_ssh_keys.generate(ctx)
    with told_as(dict.fromkeys((_NAME_INDEX, _EMAIL_INDEX), Conflict("User already exists."))):
        return await ctx.db.run(_insert_guarded, wanted, hashed, pair, ctx.clock.now(), guard)


async def _insert_guarded(
    tx: Tx,
    wanted: NewUser,
    hashed: str,
    pair: git_ssh_keys.KeyPair,
    now: datetime,
    guard: Callable[[Tx], Awaitable[None]] | None,
) -> UserRow:
    if guard is not None:
        await guard(tx)
    return await insert_in(tx, wanted, hashed, pair, now)


async def insert_in(tx: Tx, wanted: NewUser, hashed: str, pair: git_ssh_keys.KeyPair, now: datetime) -> UserRow:
    """The same as part of the caller's transaction. Raises IntegrityError, after which that is lost."""
    user_id = new_uuid()
    await user_store.insert_user(
        tx,
        {
            "id": user_id,
            "email": wanted.email,
            "username": wanted.username,
            "name": wanted.name,
            "hashed_password": hashed,
            "created_at": now,
            "updated_at": now,
            "last_seen_at": ZERO_TIME,
            "status": wanted.status,
            "login_type": wanted.login_type,
            "rbac_roles": list(wanted.roles),
            "is_service_account": wanted.is_service_account,
        },
    )
    for organization_id in sorted(wanted.organization_ids):
        if await organization_store.get_organization(tx, organization_id, hold=True) is None:
            raise NotFound  # deleted meanwhile
        await organization_store.insert_member(tx, organization_id, user_id, now)
    await git_ssh_keys.insert(tx, user_id, pair, now)
    row = await user_store.get_user(tx, user_id)
    if row is None:  # inserted above, in this transaction
        raise NotFound
    return row


# ---- changing


async def update_profile(ctx: Context, subject: Subject, user: UserRow, wanted: UpdateUserProfileRequest) -> UserRow:
    """Members may change their full name, but not what others know them by."""
    check_request(wanted, {"username": user.username, "name": user.name})
    require(subject, "update_personal", user_resource(user.id))
    username, name = wanted.username, wanted.name
    if username != user.username:
        if not may(subject, "update", user_resource(user.id)):
            raise NotFound
        taken = await ctx.db.read(user_store.get_user_by_name, username)
        if taken is not None and taken.id != user.id:
            raise _name_taken()
    now = ctx.clock.now()

    async def write(tx: Tx) -> UserRow:
        # Compared with what they are called now: an old name is not theirs to take back.
        if username != (await _lock(tx, user.id)).username and not may(subject, "update", user_resource(user.id)):
            raise NotFound
        return await _change(tx, user.id, username=username, name=name, updated_at=now)

    with told_as({_NAME_INDEX: _name_taken()}):  # somebody was faster to take it
        return await ctx.db.run(write)


def _name_taken() -> Conflict:
    return Conflict(
        "A user with this username already exists.",
        validations=[("username", "This username is already in use.")],
    )


async def set_status(ctx: Context, subject: Subject, user: UserRow, status: str) -> UserRow:
    """Suspends or activates. Raises Invalid for an owner or oneself, Forbidden for who lost the right meanwhile."""
    if status == "suspended":
        if user.id == subject.user_id:
            raise Invalid("You cannot suspend yourself.")
        _refuse_owner(user)
    require(subject, "update", user_resource(user.id))
    now = ctx.clock.now()

    async def write(tx: Tx) -> UserRow:
        if status == "suspended":
            await hold_roles_of_both(tx, subject, user.id)
            _refuse_owner(await _lock(tx, user.id))  # one may have become an owner meanwhile
            await key_store.notify_user_out(tx, user.id)
        return await _change(tx, user.id, status=status, updated_at=now)

    return await ctx.db.run(write)


def _refuse_owner(user: UserRow) -> None:
    if "owner" in user.rbac_roles:
        raise Invalid('You cannot suspend a user with the "owner" role. You must remove the role first.')


_OTHER_LOGIN = "Users without password login type cannot change their password."


async def set_password(ctx: Context, subject: Subject, user: UserRow, old: str, new: str) -> None:
    """Ends every session of the user. Raises Invalid, NotFound."""
    if not may(subject, "update_personal", user_resource(user.id)):
        raise NotFound
    if user.login_type != "password":
        raise Invalid(_OTHER_LOGIN)
    check_strength(new, "Invalid password.")
    if user.id == subject.user_id and not old:
        raise Invalid("Old password is required.")
    _check_password_of(subject, user)
    if old and not await verify_password(user.hashed_password, old):
        raise _wrong_old_password()
    if await verify_password(user.hashed_password, new):
        raise Invalid("New password cannot match old password.")
    await replace_password(ctx, user.id, new, subject=subject, old=user.hashed_password if old else None)


def _wrong_old_password() -> Invalid:
    text = "Old password is incorrect."
    return Invalid(text, validations=[("old_password", text)])


def _check_password_of(subject: Subject, user: UserRow) -> None:
    if "owner" in user.rbac_roles and user.id != subject.user_id and not subject.is_owner:
        raise Invalid("Only owners can change the password of another owner.")


async def replace_password(
    ctx: Context,
    user_id: UUID,
    new: str,
    passcode: bytes | None = None,
    *,
    subject: Subject | None = None,
    old: str | None = None,
) -> bool:
    """With the hash of a passcode: False when it was used meanwhile, and nothing is changed.

    Raises Invalid when `subject`, who is somebody else, may not because the user became an owner meanwhile, and when
    the hash of the `old` password that was proven, or the way the user logs in, is another by now.
    """
    hashed = await hash_password(new)
    now = ctx.clock.now()

    async def write(tx: Tx) -> bool:
        user = await _lock(tx, user_id)
        if subject is not None:
            _check_password_of(subject, user)
        if old is not None and user.hashed_password != old:
            raise _wrong_old_password()
        if user.login_type != "password":
            raise Invalid(_OTHER_LOGIN)
        if passcode is not None and not await user_store.take_passcode(tx, user_id, passcode):
            return False
        await user_store.update_user(tx, user_id, hashed_password=hashed, updated_at=now, one_time_passcode_hash=None)
        await key_store.delete_keys_of(tx, user_id)
        return True

    return await ctx.db.run(write)


async def set_roles(ctx: Context, subject: Subject, user: UserRow, roles: Sequence[str]) -> UserRow:
    """Raises Invalid: own roles, an unknown role, one the caller may not give or take, the last owner's."""
    if user.id == subject.user_id:
        raise Invalid("You cannot change your own roles.")
    require(subject, "read", user_resource(user.id))
    if not may(subject, "assign", Resource("assign_role")):
        raise Forbidden
    wanted = sorted(set(roles))
    for name in wanted:
        if name not in SITE_ROLES:
            raise Invalid(f'"{name}" is not a supported role')

    async def write(tx: Tx) -> UserRow:
        await hold_roles_of_both(tx, subject, user.id)
        before = (await _lock(tx, user.id)).rbac_roles  # as they are now: what others just gave is not theirs to take
        for name in sorted(set(wanted).symmetric_difference(before)):
            if not may_assign(subject, name):
                raise Invalid(f'not authorized to assign role "{name}"')
        if "owner" not in wanted:
            await _keep_an_owner(tx, user.id)
        return await _change(tx, user.id, rbac_roles=wanted)  # what somebody may do is no part of the profile

    return await ctx.db.run(write)


def may_assign(subject: Subject, role: str) -> bool:
    """Site roles are the owners' to give; `member` is everybody's anyway."""
    return subject.kind == "system" or subject.is_owner or role == "member"


async def delete_user(ctx: Context, subject: Subject, user: UserRow) -> None:
    """Soft: names are free again, sessions end. Raises Forbidden (self), ExpectationFailed (has workspaces)."""
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
    """Before somebody is an owner no more. Two who do it to each other were both allowed to when they began.

    Raises Invalid.
    """
    user = await _lock(tx, user_id)
    if "owner" in user.rbac_roles and not await user_store.has_other_owner(tx, user_id):
        raise Invalid("The last owner must stay.", "Make somebody else an owner first.")


async def _owns_workspaces(tx: Tx, user_id: UUID) -> bool:
    from coder.coderd.store.workspaces import workspaces

    return await workspaces.count_owned(tx, user_id) > 0


async def _lock(tx: Tx, user_id: UUID) -> UserRow:
    """The user as it is now, held until the transaction ends: what was read before it began decides nothing."""
    row = await user_store.get_user(tx, user_id, lock=True)
    if row is None:
        raise NotFound
    return row


async def _change(tx: Tx, user_id: UUID, **values: Unpack[user_store.UserChanges]) -> UserRow:
    await user_store.update_user(tx, user_id, **values)
    row = await user_store.get_user(tx, user_id)
    if row is None:
        raise NotFound
    return row


async def roles_by_organization(ctx: Context, user_id: UUID) -> dict[UUID, list[str]]:
    """Organization id -> roles the user has there."""
    return await ctx.db.read(organization_store.roles_by_organization, user_id)
