"""Declarations of the commands of `coder secret`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import Options, TableOptions, YesOption, column_option, option, output_option

COLUMNS = ("created", "name", "updated", "env", "file", "enabled", "description")


DESCRIPTION: str = option(
    "",
    "Description of what the secret is for.",
)


ENV: str = option(
    "",
    "Environment variable to set in workspaces, like DB_PASSWORD.",
)


FILE: str = option(
    "",
    "File to write in workspaces; its path starts with ~/ or /.",
)


class SecretCreateOptions(Options):
    """Options of `coder secret create`."""

    value: str = option(
        "",
        "Value of the secret; standard input is safer, as process lists show arguments.",
        secret=True,
    )
    description: str = DESCRIPTION
    env: str = ENV
    file: str = FILE
    enabled: bool = option(
        True,
        "Pass the secret to workspaces; a disabled secret is kept.",
    )


class SecretImportOptions(Options):
    """Options of `coder secret import`."""

    input_format: str = option(
        "",
        "Format of the file; defaults to that of its extension.",
        choices=("env", "json", "yaml"),
    )


class SecretListOptions(TableOptions):
    """Options of `coder secret list`."""

    column: tuple[str, ...] = column_option(
        COLUMNS, ("name", "created", "updated", "env", "file", "enabled", "description")
    )
    output: str = output_option()


class SecretUpdateOptions(Options):
    """Options of `coder secret update`."""

    value: str = option(
        "",
        "New value; standard input is safer, as process lists show arguments.",
        secret=True,
    )
    description: str = DESCRIPTION
    env: str = ENV
    file: str = FILE
    enabled: bool = option(
        False,
        "Pass the secret to workspaces; a disabled secret is kept.",
    )


CREATE = Command(
    words="secret create",
    summary="Create a secret",
    options=SecretCreateOptions,
    usage="<name>",
    min_args=1,
    max_args=1,
    examples=(
        ("Create a secret, with its value read from a prompt", "coder secret create db-password"),
        (
            "Create a secret that workspaces get as an environment variable",
            "coder secret create db-password --env DB_PASSWORD",
        ),
    ),
)

DELETE = Command(
    words="secret delete",
    summary="Delete a secret",
    options=YesOption,
    usage="<name>",
    min_args=1,
    max_args=1,
    examples=(("Delete a secret", "coder secret delete db-password"),),
)

DISABLE = Command(
    words="secret disable",
    summary="Disable a secret without deleting it",
    options=Options,
    usage="<name>",
    min_args=1,
    max_args=1,
    examples=(("Keep a secret, but stop passing it to workspaces", "coder secret disable db-password"),),
)

ENABLE = Command(
    words="secret enable",
    summary="Enable a disabled secret",
    options=Options,
    usage="<name>",
    min_args=1,
    max_args=1,
    examples=(("Pass a secret to workspaces again", "coder secret enable db-password"),),
)

IMPORT = Command(
    words="secret import",
    summary="Create secrets from a file",
    options=SecretImportOptions,
    usage="<file|->",
    min_args=1,
    max_args=1,
    examples=(
        ("Import the variables of an .env file", "coder secret import .env"),
        ("Import JSON from standard input", "coder secret import --input-format json -"),
    ),
)

LIST = Command(
    words="secret list",
    summary="List secrets, or show one, without values",
    options=SecretListOptions,
    usage="[name]",
    max_args=1,
    examples=(
        ("List your secrets, without their values", "coder secret list"),
        ("Print one secret's settings as JSON", "coder secret list db-password -o json"),
    ),
)

UPDATE = Command(
    words="secret update",
    summary="Update a secret",
    options=SecretUpdateOptions,
    usage="<name>",
    min_args=1,
    max_args=1,
    examples=(
        ("Replace the value, read from a prompt", "coder secret update db-password"),
        ("Change the environment variable", "coder secret update db-password --env DATABASE_PASSWORD"),
    ),
)
