"""`coder reset-password`: for administrators with access to the database, when no login works."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from coder.base.errors import CoderError
from coder.base.threads import run_trio
from coder.cli.core.command import Invocation, implements
from coder.cli.declarations.login.reset_password import RESET_PASSWORD, ResetPasswordOptions
from coder.cli.server.direct_database import on_database, open_as_is
from coder.cli.ui.output import ask
from coder.coderd.services.access.passwords import check_strength, hash_password
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.engine.database import Tx
from coder.coderd.store.people import system_users
from coder.coderd.store.people import users as user_store


@implements(RESET_PASSWORD)
@on_database
def _reset(invocation: Invocation[ResetPasswordOptions]) -> int:
    password = ask("Enter new password:", secret=True)
    if ask("Confirm password:", secret=True) != password:
        raise CoderError("password", "Passwords do not match", "Nothing was changed.")
    run_trio(_write, invocation, invocation.args[0], password)
    sys.stdout.write(f"\nPassword has been reset for user {invocation.args[0]}!\n")
    return 0


async def _write(invocation: Invocation[ResetPasswordOptions], username: str, password: str) -> None:
    check_strength(password)
    hashed = await hash_password(password)
    now = datetime.now(UTC)

    async def write(tx: Tx) -> bool:
        user = await system_users.get_user_by_name(tx, username)
        if user is None:
            return False
        await user_store.update_user(tx, user.id, hashed_password=hashed, updated_at=now, one_time_passcode_hash=None)
        # End all sessions that used the old password.
        await key_store.delete_keys_of(tx, user.id)
        return True

    async with open_as_is(invocation, while_running=True) as database:
        if not await database.run(write):
            raise CoderError("no_user", f'user "{username}" not found', "Use the name that the user logs in with.")
