"""Declarations of `coder server postgres-builtin-url` and `coder server postgres-builtin-serve`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import option
from coder.cli.declarations.server.direct_database import DatabaseOptions


class RawOption(DatabaseOptions):
    """The option `--raw-url`."""

    raw_url: bool = option(
        False,
        "Print only the URL, for programs, instead of a psql command.",
    )


BUILTIN_URL = Command(
    words="server postgres-builtin-url",
    summary="Print the URL of the built-in database",
    options=RawOption,
    max_args=0,
    examples=(
        ("Print the psql command for the built-in database", "coder server postgres-builtin-url"),
        ("Print only its URL, for a program", "coder server postgres-builtin-url --raw-url"),
    ),
)

BUILTIN_SERVE = Command(
    words="server postgres-builtin-serve",
    summary="Run the built-in database without the server",
    options=RawOption,
    max_args=0,
    examples=(("Run the built-in database while the server is stopped", "coder server postgres-builtin-serve"),),
)
