"""Declarations of the commands of `coder workspace-proxy`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import NEW_NAME, TableOptions, YesOption, column_option, option, output_option

COLUMNS = (
    "id",
    "name",
    "display name",
    "icon url",
    "healthy",
    "url",
    "wildcard hostname",
    "derp enabled",
    "derp only",
    "proxy status",
    "proxy report",
    "proxy checked at",
    "created at",
    "updated at",
    "deleted",
    "version",
)
WITH_TOKEN = (*COLUMNS, "proxy token")
_TEXT = ("text", "json", "table")
ONLY: bool = option(
    False,
    "Print only the proxy's token, for scripts.",
)


DISPLAY_NAME: str = option(
    "",
    "Display name, which can contain spaces and capitals.",
)


ICON: str = option(
    "",
    "Path or URL of the proxy's icon, like /emojis/1f30d.png.",
)


class TokenTableOptions(TableOptions):
    """Format of a new token."""

    only_token: bool = ONLY


class WorkspaceProxyCreateOptions(TokenTableOptions):
    """Options of `coder workspace-proxy create`."""

    name: str = option(
        "",
        "Name of the proxy in lists and addresses; prompted for if not set.",
    )
    display_name: str = DISPLAY_NAME
    icon: str = ICON
    no_prompt: bool = option(
        False,
        "Fail instead of prompting for missing values, for use in scripts.",
    )
    only_token: bool = ONLY
    column: tuple[str, ...] = column_option(WITH_TOKEN, ("name", "url", "proxy token"))
    output: str = output_option(_TEXT, "text")


class WorkspaceProxyEditOptions(TableOptions):
    """Options of `coder workspace-proxy edit`."""

    name: str = NEW_NAME
    display_name: str = DISPLAY_NAME
    icon: str = ICON
    column: tuple[str, ...] = column_option(COLUMNS, ("name", "url"))
    output: str = output_option(_TEXT, "text")


class WorkspaceProxyLsOptions(TableOptions):
    """Options of `coder workspace-proxy ls`."""

    column: tuple[str, ...] = column_option(COLUMNS, ("name", "url", "proxy status"))
    output: str = output_option(("table", "json", "text"), "table")


class WorkspaceProxyRegenerateTokenOptions(TokenTableOptions, bases_first=True):
    """Options of `coder workspace-proxy regenerate-token`."""

    column: tuple[str, ...] = column_option(WITH_TOKEN, ("name", "url", "proxy token"))
    output: str = output_option(_TEXT, "text")


CREATE = Command(
    words="workspace-proxy create",
    summary="Create a workspace proxy",
    options=WorkspaceProxyCreateOptions,
    max_args=0,
    examples=(
        (
            "Create a proxy and print its token",
            "coder workspace-proxy create --name eu --display-name Europe --icon /emojis/1f30d.png",
        ),
    ),
)

DELETE = Command(
    words="workspace-proxy delete",
    summary="Delete a workspace proxy",
    options=YesOption,
    usage="<name|id>",
    min_args=1,
    max_args=1,
    examples=(("Delete a proxy", "coder workspace-proxy delete eu"),),
)

EDIT = Command(
    words="workspace-proxy edit",
    summary="Edit a workspace proxy",
    options=WorkspaceProxyEditOptions,
    usage="<name|id>",
    min_args=1,
    max_args=1,
    examples=(("Change the display name", 'coder workspace-proxy edit eu --display-name "Europe, west"'),),
)

LIST = Command(
    words="workspace-proxy ls",
    summary="List workspace proxies",
    options=WorkspaceProxyLsOptions,
    max_args=0,
    examples=(("List the proxies and their health", "coder workspace-proxy ls"),),
)

REGENERATE = Command(
    words="workspace-proxy regenerate-token",
    summary="Regenerate a workspace proxy's token; the old one is revoked",
    options=WorkspaceProxyRegenerateTokenOptions,
    usage="<name|id>",
    min_args=1,
    max_args=1,
    examples=(("Replace a leaked token", "coder workspace-proxy regenerate-token eu"),),
)
