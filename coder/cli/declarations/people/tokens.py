"""Declarations of the commands of `coder tokens`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import AllowList, Options, TableOptions, column_option, option, output_option

COLUMNS = ("id", "name", "scopes", "allow list", "last used", "expires at", "created at", "owner")


class TokensCreateOptions(Options):
    """Options of `coder tokens create`."""

    lifetime: str = option(
        "",
        "Lifetime of the token, like 8h, 30d or 1y; defaults to the maximum allowed.",
        env="CODER_TOKEN_LIFETIME",
    )
    name: str = option(
        "",
        "Name of the token, like ci; generated if not set.",
        env="CODER_TOKEN_NAME",
        short="n",
    )
    user: str = option(
        "",
        "Owner of the token, by name or id; defaults to the current user.",
        env="CODER_TOKEN_USER",
        short="u",
    )
    scope: tuple[str, ...] = option(
        (),
        "Scope of the token, like workspace:read; defaults to all your permissions.",
    )
    allow: AllowList = option(
        (),
        "Resource the token can access, like workspace:<id>; defaults to all.",
    )


class TokensListOptions(TableOptions):
    """Options of `coder tokens list`."""

    all: bool = option(
        False,
        "List all tokens you can see, not only your own.",
        short="a",
    )
    include_expired: bool = option(
        False,
        "Also list tokens that have expired.",
    )
    column: tuple[str, ...] = column_option(
        COLUMNS, ("id", "name", "scopes", "allow list", "last used", "expires at", "created at")
    )
    output: str = output_option()


class TokensRemoveOptions(Options):
    """Options of `coder tokens remove`."""

    delete: bool = option(
        False,
        "Delete the token instead of expiring it, so that lists omit it.",
    )


class TokensViewOptions(TableOptions):
    """Options of `coder tokens view`."""

    column: tuple[str, ...] = column_option(COLUMNS, COLUMNS)
    output: str = output_option()


CREATE = Command(
    words="tokens create",
    summary="Create a token",
    options=TokensCreateOptions,
    max_args=0,
    examples=(
        ("Create a token that expires in 30 days", "coder tokens create --name ci --lifetime 720h"),
        (
            "Create a token that can only read workspaces",
            "coder tokens create --name reader --scope workspace:read --lifetime 30d",
        ),
    ),
)

LIST = Command(
    words="tokens list",
    summary="List tokens",
    options=TokensListOptions,
    max_args=0,
    examples=(
        ("List your tokens", "coder tokens list"),
        ("List every user's tokens, expired ones included", "coder tokens list --all --include-expired"),
    ),
)

REMOVE = Command(
    words="tokens remove",
    summary="Expire or delete a token",
    options=TokensRemoveOptions,
    usage="<name|id|token>",
    min_args=1,
    max_args=1,
    examples=(
        ("Expire a token", "coder tokens remove ci"),
        ("Delete a token", "coder tokens remove ci --delete"),
    ),
)

VIEW = Command(
    words="tokens view",
    summary="Display detailed information about a token",
    options=TokensViewOptions,
    usage="<name|id>",
    min_args=1,
    max_args=1,
    examples=(("Show a token's scopes and its last use", "coder tokens view ci"),),
)
