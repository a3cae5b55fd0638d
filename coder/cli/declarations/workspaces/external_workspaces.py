"""Declarations of the commands of `coder external-workspaces`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import ORG, Options, column_option, option, output_option
from coder.cli.declarations.workspaces.create import CreateOptions
from coder.cli.declarations.workspaces.workspaces import COLUMNS, ListOptions

DEFAULT_COLUMNS = ("workspace", "template", "status", "healthy", "last built", "current version", "outdated")


class ExternalWorkspacesListOptions(ListOptions, bases_first=True):
    """Options of `coder external-workspaces list`."""

    column: tuple[str, ...] = column_option(COLUMNS, DEFAULT_COLUMNS)
    org: str = ORG


class ExternalAgentOptions(Options):
    """Options of commands about an external agent."""

    output: str = output_option(("text", "json"), "text")


class AgentInstructionsOptions(ExternalAgentOptions):
    """Options of `coder external-workspaces agent-instructions`."""

    os: str = option(
        "",
        "Operating system of the machine: linux, darwin, windows, or all; defaults to the template's.",
    )
    arch: str = option(
        "",
        "Processor of the machine: amd64, arm64, armv7, or all; defaults to the template's.",
    )


CREATE = Command(
    words="external-workspaces create",
    summary="Create a new external workspace",
    options=CreateOptions,
    usage="<workspace>",
    min_args=1,
    max_args=1,
    examples=(
        (
            "Create a workspace for an existing machine",
            "coder external-workspaces create build-server --template external",
        ),
        (
            "Create it without prompts, for a script",
            "coder external-workspaces create build-server --template external --parameter arch=arm64 -y",
        ),
    ),
)

LIST = Command(
    words="external-workspaces list",
    summary="List external workspaces",
    options=ExternalWorkspacesListOptions,
    max_args=0,
    examples=(
        ("List your external workspaces", "coder external-workspaces list"),
        ("List every user's external workspaces as JSON", "coder external-workspaces list --all -o json"),
    ),
)

AGENT_INSTRUCTIONS = Command(
    words="external-workspaces agent-instructions",
    summary="Get the instructions for an external agent",
    options=AgentInstructionsOptions,
    usage="[user/]workspace[.agent]",
    min_args=1,
    max_args=1,
    examples=(
        ("Print the command to run on the machine", "coder external-workspaces agent-instructions build-server"),
        (
            "Print the command for a Mac, whatever the template says",
            "coder external-workspaces agent-instructions build-server --os darwin --arch arm64",
        ),
        (
            "Print the commands for every kind of machine",
            "coder external-workspaces agent-instructions build-server --os all",
        ),
        ("Print the instructions as JSON", "coder external-workspaces agent-instructions build-server -o json"),
    ),
)

HEALTH = Command(
    words="external-workspaces health",
    summary="Show the health of an attached machine and why it disconnected",
    options=ExternalAgentOptions,
    usage="[user/]workspace[.agent]",
    min_args=1,
    max_args=1,
    examples=(
        ("Show the machine's health and its connection", "coder external-workspaces health build-server"),
        (
            "Print the health of one agent as JSON, for monitoring",
            "coder external-workspaces health alice/build-server.gpu -o json",
        ),
    ),
)

ROTATE_TOKEN = Command(
    words="external-workspaces rotate-token",
    summary="Rotate an external agent's token; the old one is valid until the new one is used",
    options=ExternalAgentOptions,
    usage="[user/]workspace[.agent]",
    min_args=1,
    max_args=1,
    examples=(
        (
            "Rotate a token; the old one is valid until the new one is used",
            "coder external-workspaces rotate-token build-server",
        ),
    ),
)
