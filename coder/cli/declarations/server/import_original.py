"""Declaration of `coder server import`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import option, output_option
from coder.cli.declarations.server.direct_database import PostgresAuthOption, postgres_url_option


class ServerImportOptions(PostgresAuthOption):
    """Options of `coder server import`."""

    source_url: str = option(
        "",
        "URL of the original's database (Coder 2.34), which is only read.",
        flag="from",
        env="CODER_IMPORT_FROM",
        secret=True,
    )
    dry_run: bool = option(
        False,
        "Print what would be imported and what cannot be, without writing anything.",
        short="n",
    )
    external_token_encryption_keys: tuple[str, ...] = option(
        (),
        "Encryption keys in Base64, separated by commas: the original's, if it has encrypted values. The first one "
        "encrypts them here.",
        env="CODER_EXTERNAL_TOKEN_ENCRYPTION_KEYS",
        secret=True,
    )
    ignore_unknown: bool = option(
        False,
        "Leave out tables and columns that this release does not know, instead of refusing a newer schema.",
    )
    output: str = output_option(("table", "json"), "table")
    postgres_url: str = postgres_url_option()


IMPORT = Command(
    words="server import",
    summary="Import the database of an original Coder deployment into an empty one",
    options=ServerImportOptions,
    max_args=0,
    long=(
        "Copies users, organizations, templates, workspaces with their state and agents, keys and logs. The source is "
        "only read, in one transaction. An interrupted import continues when the command runs again. The deployment "
        "imported into must be empty and its server stopped."
    ),
    examples=(
        (
            "Check what an import would take",
            "coder server import --from postgres://coder@db.example.com/coder --dry-run",
        ),
        (
            "Import into a new directory's built-in database",
            "coder server import --from postgres://coder@db.example.com/coder --global-config /var/lib/coder",
        ),
    ),
)
