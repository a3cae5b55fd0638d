"""Declaration of `coder whoami`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import TableOptions, column_option, output_option


class WhoamiOptions(TableOptions):
    """Options of `coder whoami`."""

    output: str = output_option(("text", "json", "table"), "text")
    column: tuple[str, ...] = column_option(("URL", "Username", "ID", "Orgs", "Roles"), ("url", "username", "id"))


WHOAMI = Command(
    words="whoami",
    summary="Fetch authenticated user info for Coder deployment",
    options=WhoamiOptions,
    max_args=0,
    examples=(
        ("Show your user and deployment", "coder whoami"),
        ("Print JSON for a script", "coder whoami -o json"),
    ),
)
