"""Create the first user, log in and out, and change a password by a one-time passcode (`passcodes.py`)."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Conflict, Forbidden, Invalid, Unauthenticated
from coder.coderd.services.access import new_keys
from coder.coderd.services.access.authentication import Caller, hash_secret
from coder.coderd.services.access.passwords import check_strength, hash_password, is_outdated, verify_password
from coder.coderd.services.people import new_users, user_passwords
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.people import organizations as organization_store
from coder.coderd.store.people import system_users
from coder.coderd.store.people import users as user_store
from coder.coderd.store.people.users import UserRow
from coder.domain.access.policy import NIL

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_FIRST_USER_EXISTS = "The initial user has already been created."
INCORRECT_CREDENTIALS = "Incorrect email or password."


async def has_first_user(ctx: Context) -> bool:
    return await ctx.db.read(user_store.count_users) > 0


async def create_first_user(ctx: Context, email: str, username: str, name: str, password: str) -> tuple[UUID, UUID]:
    """Create the owner of an empty site. Return (user id, default organization id). Raises Conflict, Invalid."""
    if await has_first_user(ctx):
        raise Conflict(_FIRST_USER_EXISTS)
    new_users.check_names(username, name, email)
    check_strength(password)
    organization = await ctx.db.read(organization_store.get_default_organization)
    new_user = new_users.NewUser(
        email=email,
        username=username,
        name=name,
        password=password,
        status="active",
        organization_ids=[organization.id],
        roles=["owner"],
    )
    row = await new_users.insert_user(ctx, new_user, guard=_still_empty)
    return row.id, organization.id


async def _still_empty(tx: Tx) -> None:
    """Check that the site has no user. Two requests may race: the lock serializes them."""
    await user_store.lock_first_user(tx)
    if await user_store.count_users(tx):
        raise Conflict(_FIRST_USER_EXISTS)


async def login(ctx: Context, email: str, password: str, ip: str, user_agent: str = "") -> str:
    """Log in by password and return a session token. Raises Unauthenticated with the same text for every wrong
    guess.
    """
    account = await ctx.db.read(system_users.get_user_by_email, email)
    right = await verify_password(account.hashed_password if account else "", password)
    user = _admitted(ctx, account if right else None)
    renewed = await hash_password(password) if is_outdated(user.hashed_password) else ""
    now = ctx.clock.now()
    row, token = new_keys.new_key(user.id, "password", ctx.config.session_duration, now, ip=ip, user_agent=user_agent)

    async def write(tx: Tx) -> None:
        # Hashing takes time: the account may be suspended, and its sessions ended, meanwhile.
        _admitted(ctx, await new_keys.give_key(tx, user, row))
        if renewed:
            await user_store.update_user(tx, user.id, hashed_password=renewed)
        if user.status == "dormant":
            await user_store.wake_user(tx, user.id, now)

    await ctx.db.run(write)
    return token


def _admitted(ctx: Context, user: UserRow | None) -> UserRow:
    """Return the user of a correct password, unless another rule refuses the login. Raises Unauthenticated,
    Forbidden.
    """
    if user is None or user.login_type != "password":
        raise Unauthenticated(INCORRECT_CREDENTIALS)
    if ctx.config.disable_password_auth and "owner" not in user.rbac_roles:
        raise Forbidden("Password authentication is disabled.")
    if user.status == "suspended":
        raise Unauthenticated("Your account is suspended. Contact an admin to reactivate your account.")
    return user


async def logout(ctx: Context, caller: Caller) -> None:
    """End the current session, and the keys that applications were opened with."""

    async def write(tx: Tx) -> None:
        await key_store.delete_key(tx, caller.key.id)
        await key_store.delete_keys_of(tx, caller.user.id, scope="coder:application_connect")

    await ctx.db.run(write)


async def change_with_passcode(ctx: Context, email: str, password: str, passcode: str) -> None:
    """Change a password by a passcode.

    Raises Invalid with the same text for every fault except those of the new password, which is checked first.
    """
    check_strength(password, "Invalid password.")
    user = await ctx.db.read(system_users.get_user_by_email, email)
    # Also queried for an unknown user, so that the response takes as long.
    hashed, expires_at = await ctx.db.read(user_store.get_passcode, user.id if user else NIL)
    valid = hmac.compare_digest(hashed or b"", hash_secret(passcode)) and hashed is not None
    if user is None or not valid or expires_at is None or expires_at <= ctx.clock.now():
        raise Invalid("Incorrect email or one-time passcode.")
    if await verify_password(user.hashed_password, password):
        raise Invalid("New password cannot match old password.")
    if not await user_passwords.replace_password(ctx, user.id, password, hashed):
        raise Invalid("Incorrect email or one-time passcode.")
