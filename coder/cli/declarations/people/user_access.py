"""Declaration of `coder users access`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import TableOptions, column_option, output_option

COLUMNS = ("kind", "name", "from", "last used", "expires at", "id")
DEFAULT = ("kind", "name", "from", "last used", "expires at")


class UsersAccessOptions(TableOptions):
    """Options of `coder users access`."""

    column: tuple[str, ...] = column_option(COLUMNS, DEFAULT)
    output: str = output_option()


ACCESS = Command(
    words="users access",
    summary="Show what a user may do and with which credentials",
    options=UsersAccessOptions,
    usage="<username|user_id|'me'>",
    min_args=1,
    max_args=1,
    long=(
        "Lists the roles and groups of a user and where each comes from, the workspaces shared with and by the user, "
        "and the tokens, sessions, devices and OAuth2 consents that act for the user. Parts that you may not see are "
        "named on standard error."
    ),
    examples=(
        ("Review the access of a user", "coder users access bob"),
        ("Print your own access as JSON", "coder users access me -o json"),
    ),
)
