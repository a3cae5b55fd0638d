"""`coder whoami`."""

from __future__ import annotations

import sys

from coder.api.people.users import User
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.declarations.login.whoami import WHOAMI, WhoamiOptions
from coder.cli.ui.output import chosen_columns, print_json, print_table
from coder.client.answers import read
from coder.net.masking import masked


@implements(WHOAMI)
def _whoami(invocation: Invocation[WhoamiOptions]) -> int:
    client = session.client(invocation)
    user = read(client.request("GET", "/api/v2/users/me"), User)
    url = masked(client.policy.url)
    if invocation.options.output == "text":
        line = f"Coder is running at {url}, You're authenticated as {user.username} !\n"
        # Without a terminal, print the brackets that scripts expect.
        sys.stdout.write(line if sys.stdout.isatty() else f"[  {line}]\n")
    elif invocation.options.output == "json":
        print_json([_identity(url, user)])
    else:
        known = _identity(url, user)
        row = {"url": url, "username": user.username, "id": user.id, "orgs": known["organization_ids"]}
        print_table(chosen_columns(invocation), [{**row, "roles": known["roles"]}])
    return 0


def _identity(url: str, user: User) -> dict[str, object]:
    roles: dict[str, list[str]] = {}
    for role in user.roles:
        roles.setdefault(str(role.organization_id or "*"), []).append(role.display_name or role.name)
    return {
        "url": url,
        "username": user.username,
        "user_id": str(user.id),
        "organization_ids": [str(item) for item in user.organization_ids],
        "roles": roles,
    }
