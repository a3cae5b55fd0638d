"""Declaration of `coder list`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import Options, TableOptions, column_option, option, output_option

COLUMNS = (
    "favorite",
    "workspace",
    "organization id",
    "organization name",
    "template",
    "status",
    "healthy",
    "last built",
    "current version",
    "outdated",
    "starts at",
    "starts next",
    "stops after",
    "stops next",
    "daily cost",
)
DEFAULT_COLUMNS = (
    "workspace",
    "template",
    "status",
    "healthy",
    "last built",
    "current version",
    "outdated",
    "starts at",
    "stops after",
)
SEARCH: str = option(
    "owner:me",
    'Search query, like "owner:me status:running template:docker".',
)


class SearchOptions(Options):
    """Selection of workspaces, also of commands without some of the flags."""

    all: bool = False
    search: str = SEARCH
    shared_with_me: bool = False
    org: str = ""


class WorkspaceTableOptions(SearchOptions, TableOptions):
    """Table of selected workspaces."""


class ListOptions(WorkspaceTableOptions):
    """Options of `coder list`."""

    all: bool = option(
        False,
        "List all workspaces you can see, not only your own.",
        short="a",
    )
    search: str = SEARCH
    shared_with_me: bool = option(
        False,
        "List only workspaces that other users share with you.",
    )
    column: tuple[str, ...] = column_option(COLUMNS, DEFAULT_COLUMNS)
    output: str = output_option()


LIST = Command(
    words="list",
    summary="List workspaces",
    options=ListOptions,
    max_args=0,
    examples=(
        ("List your workspaces", "coder list"),
        ("List the running workspaces of all users", 'coder list --search "status:running"'),
        ("Print only names, for a script", "coder list --column workspace"),
    ),
)
