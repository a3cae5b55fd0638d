"""`coder server create-admin-user`: creates a user with the owner role."""

from __future__ import annotations

import sys
from dataclasses import replace

import trio

from coder.base.errors import CoderError
from coder.base.secret import Secret
from coder.base.threads import run_trio
from coder.cli.core.command import Invocation, implements
from coder.cli.declarations.server.create_admin import CREATE_ADMIN, ServerCreateAdminUserOptions
from coder.cli.server.direct_database import on_database, open_direct, settings
from coder.cli.ui.output import ask
from coder.coderd.app import new_context
from coder.coderd.services.access.passwords import check_strength
from coder.coderd.services.foundation.database_clock import DatabaseClock
from coder.coderd.services.people import new_users
from coder.coderd.store.people import organizations as organization_store


@implements(CREATE_ADMIN)
@on_database
def _create_admin(invocation: Invocation[ServerCreateAdminUserOptions]) -> int:
    username = invocation.options.username or ask("Username:")
    email = invocation.options.email or ask("Email:")
    password = invocation.options.password
    if not password:
        password = ask("Password:", secret=True)
        if ask("Confirm password:", secret=True) != password:
            raise CoderError("password", "Passwords do not match", "Nothing was changed.")
    user_id = run_trio(_insert_admin, invocation, username, email, Secret(password))
    sys.stdout.write("\nUser created successfully.\n")
    for label, value in (("ID", user_id), ("Username", username), ("Email", email)):
        sys.stdout.write(f"{label + ':':10}{value}\n")
    return 0


async def _insert_admin(
    invocation: Invocation[ServerCreateAdminUserOptions], username: str, email: str, password: Secret
) -> str:
    new_users.check_names(username, "", email)
    check_strength(password.reveal())
    config = replace(settings(invocation), ssh_keygen_algorithm=invocation.options.ssh_keygen_algorithm)
    async with open_direct(invocation, while_running=True) as database, trio.open_nursery() as nursery:
        clock = DatabaseClock()
        await clock.follow(database)
        ctx = await new_context(config, database, nursery, clock, "http://localhost")
        organizations = await database.read(organization_store.list_organizations)
        new_user = new_users.NewUser(
            email=email,
            username=username,
            name="",
            password=password.reveal(),
            status="active",
            organization_ids=[organization.id for organization in organizations],
            roles=["owner"],
        )
        row = await new_users.insert_user(ctx, new_user)
        nursery.cancel_scope.cancel()
        return str(row.id)
