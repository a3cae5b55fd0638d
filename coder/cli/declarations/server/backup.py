"""Declarations of the commands of `coder server`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import YesOption, option
from coder.cli.declarations.server.direct_database import DatabaseOptions, postgres_url_option


class ServerBackupOptions(DatabaseOptions):
    """Options of `coder server backup`."""

    output: str = option(
        "",
        "File to write the backup to; defaults to coder-<date>.backup in the current directory.",
        short="o",
    )
    postgres_url: str = postgres_url_option(running=True)


class ServerRestoreOptions(DatabaseOptions, YesOption):
    """Options of `coder server restore`."""

    postgres_url: str = postgres_url_option()


BACKUP = Command(
    words="server backup",
    summary="Back up the database to a file, whether or not the server is running",
    options=ServerBackupOptions,
    max_args=0,
    examples=(
        ("Back up the built-in database", "coder server backup"),
        (
            "Back up an external database to a file",
            "coder server backup --postgres-url postgres://coder@db.example.com/coder --output monday.backup",
        ),
    ),
)

RESTORE = Command(
    words="server restore",
    summary="Restore the database from a backup, while the server is stopped",
    options=ServerRestoreOptions,
    usage="<file>",
    min_args=1,
    max_args=1,
    examples=(("Restore a backup over the database", "coder server restore monday.backup"),),
)
