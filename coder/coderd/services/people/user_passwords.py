"""Change the passwords of users."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Invalid, NotFound
from coder.coderd.services.access.application_limits import refuse_applications
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.access.passwords import check_strength, hash_password, verify_password
from coder.coderd.services.people.users import lock_user, user_resource
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.people import users as user_store
from coder.coderd.store.people.users import UserRow
from coder.domain.access.policy import Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


_OTHER_LOGIN = "Users without password login type cannot change their password."


async def set_password(ctx: Context, subject: Subject, user: UserRow, old: str, new: str) -> None:
    """Change a password, which ends every session of the user. Raises Invalid, Forbidden, NotFound."""
    if not may(subject, "update_personal", user_resource(user.id)):
        raise NotFound
    if user.id != subject.user_id and not old:
        # Without the old password a change takes the account over: a key for settings of users is not enough.
        require(subject, "update", user_resource(user.id))
    await refuse_applications(ctx, subject, "password")
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
    """Replace a password. With the hash of a passcode, return False and change nothing if it has been used meanwhile.

    Raises Invalid when the user has become an owner meanwhile and `subject` may not change an owner's password, and
    when the user's login type, or the hash of the proven `old` password, has changed.
    """
    hashed = await hash_password(new)
    now = ctx.clock.now()

    async def write(tx: Tx) -> bool:
        user = await lock_user(tx, user_id)
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
