"""Declarations of the commands of `coder open`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import Options, option


class OpenAppOptions(Options):
    """Options of `coder open app`."""

    region: str = option(
        "primary",
        'Name of the workspace proxy to open the app through; "primary" is the server.',
        env="CODER_OPEN_APP_REGION",
    )


class OpenVscodeOptions(Options):
    """Options of `coder open vscode`."""

    generate_token: bool = option(
        False,
        "Add a new session token to the address, for editors that are not logged in.",
        env="CODER_OPEN_VSCODE_GENERATE_TOKEN",
    )


APP = Command(
    words="open app",
    summary="Open a workspace application.",
    options=OpenAppOptions,
    usage="<workspace> <app slug>",
    min_args=1,
    max_args=2,
    examples=(
        ("Open an application in the browser", "coder open app my-workspace jupyter"),
        ("Open it through a workspace proxy", "coder open app my-workspace jupyter --region eu"),
    ),
)

VSCODE = Command(
    words="open vscode",
    summary="Open a workspace in VS Code Desktop",
    options=OpenVscodeOptions,
    usage="<workspace> [<directory in workspace>]",
    min_args=1,
    max_args=2,
    examples=(
        ("Open a folder of a workspace", "coder open vscode my-workspace src/project"),
        ("Add a session token, for an editor that is not logged in", "coder open vscode my-workspace --generate-token"),
    ),
)
