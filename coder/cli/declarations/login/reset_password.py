"""Declaration of `coder reset-password`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.declarations.server.direct_database import DatabaseOptions, postgres_url_option


class ResetPasswordOptions(DatabaseOptions):
    """Options of `coder reset-password`."""

    postgres_url: str = postgres_url_option(running=True)


RESET_PASSWORD = Command(
    words="reset-password",
    summary="Directly connect to the database to reset a user's password",
    options=ResetPasswordOptions,
    usage="<username>",
    min_args=1,
    max_args=1,
    examples=(
        ("Reset a password on the server's machine", "coder reset-password alice"),
        (
            "Reset a password in an external database",
            "coder reset-password alice --postgres-url postgres://coder@db.example.com/coder",
        ),
    ),
)
