"""Create users: on request, at first start and for identity providers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Conflict, Invalid, NotFound
from coder.api.field_rules.rules import EMAIL, REAL_NAME, REQUIRED, USERNAME
from coder.base.ids import new_uuid
from coder.coderd.services.access.application_limits import refuse_applications
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.access.passwords import check_strength, hash_password
from coder.coderd.services.foundation.field_checks import check_fields
from coder.coderd.services.foundation.uniqueness import constraint_refusals
from coder.coderd.services.people import git_ssh_keys
from coder.coderd.services.people.organizations import hold_organization, organization_resource
from coder.coderd.services.people.role_assignment import require_default_roles
from coder.coderd.store.people import organizations as organization_store
from coder.coderd.store.people import system_organizations, system_users
from coder.coderd.store.people import users as user_store
from coder.coderd.store.people.users import UserRow
from coder.domain.access.policy import Class, Subject
from coder.domain.foundation.zero import ZERO_TIME

if TYPE_CHECKING:
    from datetime import datetime

    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


NAME_INDEX, _EMAIL_INDEX = "ix_users_username_living", "ix_users_email_living"
_STATUSES = ("active", "dormant", "suspended")
_WITHOUT_PASSWORD = ("github", "oidc", "none")


@dataclass(frozen=True, slots=True)
class NewUser:
    """Fields of a user to create, already validated."""

    email: str
    username: str
    name: str = ""
    password: str = ""
    login_type: str = "password"
    status: str = "dormant"
    organization_ids: Sequence[UUID] = ()
    roles: Sequence[str] = ()
    is_service_account: bool = False


def check_names(username: str, name: str, email: str | None = None) -> None:
    """Check the fields of a user who is not created by a request. Raises InvalidFields."""
    fields = [("username", username, (REQUIRED, USERNAME)), ("name", name, (REAL_NAME,))]
    check_fields(*([] if email is None else [("email", email, (REQUIRED, EMAIL))]), *fields)


async def create_user(ctx: Context, subject: Subject, new_user: NewUser) -> UserRow:
    """Create a user.

    Raises Forbidden, Conflict, NotFound for an unknown organization, and Invalid, also for default roles the caller may
    not assign.
    """
    require(subject, "create", Class("user"), hidden=False)
    if new_user.login_type not in ("password", "") and new_user.password:
        raise Invalid(f'Password cannot be set for non-password ("{new_user.login_type}") authentication.')
    if new_user.login_type == "none" and not new_user.is_service_account:
        raise Invalid("Login type 'none' is reserved for service accounts.")
    if not new_user.organization_ids:
        raise Invalid(
            "No organization specified to place the user as a member of. It is required to specify at least one "
            "organization id to place the user in.",
            "required at least 1 value for the array 'organization_ids'",
            [("organization_ids", "Missing values, this cannot be empty")],
        )
    await ctx.db.read(_check_free, subject, new_user)
    if new_user.login_type == "password":
        await refuse_applications(ctx, subject, "password")
        check_strength(new_user.password)
    elif new_user.login_type == "oidc" and not ctx.config.oidc_client_id:
        raise Invalid("You must configure OIDC before creating OIDC users.")
    elif new_user.login_type not in _WITHOUT_PASSWORD:
        raise Invalid(f'Unsupported login type "{new_user.login_type}" for manually creating new users.')
    if new_user.status not in _STATUSES:
        detail = f'"{new_user.status}" is none of: {", ".join(_STATUSES)}.'
        raise Invalid(f'User status "{new_user.status}" is not valid.', detail, [("user_status", detail)])
    return await insert_user(ctx, new_user, partial(_require_memberships, subject, new_user.organization_ids))


async def _require_memberships(subject: Subject, organization_ids: Sequence[UUID], tx: Tx) -> None:
    """Require the right to create the user's memberships, with the roles that they imply."""
    for organization_id in sorted(organization_ids):
        require(subject, "create", Class("organization_member", organization_id=organization_id), hidden=False)
        require_default_roles(subject, await hold_organization(tx, organization_id))


async def _check_free(tx: Tx, subject: Subject, new_user: NewUser) -> None:
    for organization_id in new_user.organization_ids:
        is_known = may(subject, "read", organization_resource(organization_id))
        if not is_known or await system_organizations.get_organization(tx, organization_id) is None:
            raise NotFound(f'Organization does not exist with the provided id "{organization_id}".')
    existing = await system_users.get_user_by_name(tx, new_user.username)
    if existing is None and new_user.email:
        existing = await system_users.get_user_by_email(tx, new_user.email)
    if existing is not None:
        raise Conflict("User already exists.")


async def insert_user(ctx: Context, new_user: NewUser, guard: Callable[[Tx], Awaitable[None]] | None = None) -> UserRow:
    """Insert a user, checking only uniqueness: also used for first users and identity providers.

    `guard` runs first in the same transaction and may raise a refusal.
    """
    hashed = await hash_password(new_user.password) if new_user.password else ""
    pair = await git_ssh_keys.generate(ctx)
    with constraint_refusals(dict.fromkeys((NAME_INDEX, _EMAIL_INDEX), Conflict("User already exists."))):
        return await ctx.db.run(_insert_guarded, new_user, hashed, pair, ctx.clock.now(), guard)


async def _insert_guarded(
    tx: Tx,
    new_user: NewUser,
    hashed: str,
    pair: git_ssh_keys.KeyPair,
    now: datetime,
    guard: Callable[[Tx], Awaitable[None]] | None,
) -> UserRow:
    if guard is not None:
        await guard(tx)
    return await insert_in(tx, new_user, hashed, pair, now)


async def insert_in(tx: Tx, new_user: NewUser, hashed: str, pair: git_ssh_keys.KeyPair, now: datetime) -> UserRow:
    """Insert a user in the caller's transaction. Raises IntegrityError, which aborts the transaction."""
    user_id = new_uuid()
    await user_store.insert_user(
        tx,
        {
            "id": user_id,
            "email": new_user.email,
            "username": new_user.username,
            "name": new_user.name,
            "hashed_password": hashed,
            "created_at": now,
            "updated_at": now,
            "last_seen_at": ZERO_TIME,
            "status": new_user.status,
            "login_type": new_user.login_type,
            "rbac_roles": list(new_user.roles),
            "is_service_account": new_user.is_service_account,
        },
    )
    for organization_id in sorted(new_user.organization_ids):
        if await system_organizations.get_organization(tx, organization_id, hold=True) is None:
            raise NotFound  # deleted concurrently
        await organization_store.insert_member(tx, organization_id, user_id, now)
    await git_ssh_keys.insert(tx, user_id, pair, now)
    row = await system_users.get_user(tx, user_id)
    if row is None:  # inserted above, in this transaction
        raise NotFound
    return row
