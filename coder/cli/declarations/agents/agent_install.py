"""Declarations of the commands of `coder agent`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import Options, option
from coder.cli.declarations.agents.credentials import CredentialOptions

DRY_RUN: bool = option(
    False,
    "Print the files and services that would change, without changing them.",
)


class ServiceOptions(Options):
    """Description of the agent's service."""

    self_upgrade: bool = True
    name: str = option(
        "coder-agent",
        "Name of the service, if several agents run on one machine.",
    )
    system: bool = option(
        False,
        "Install for the whole machine (requires root); defaults to the current user only.",
    )
    run_as: str = option(
        "",
        "With --system: user that runs the agent and its shells; defaults to the user who called sudo.",
    )


class AgentInstallOptions(CredentialOptions, ServiceOptions, bases_first=True):
    """Options of `coder agent install`."""

    self_upgrade: bool = option(
        True,
        "Upgrade the agent when the server has a newer version.",
    )
    dry_run: bool = DRY_RUN


class AgentUninstallOptions(ServiceOptions, bases_first=True):
    """Options of `coder agent uninstall`."""

    dry_run: bool = DRY_RUN


INSTALL = Command(
    words="agent install",
    summary="Install the agent as a system service that starts with the machine",
    options=AgentInstallOptions,
    max_args=0,
    examples=(
        (
            "Attach this machine as a workspace, also after a reboot",
            "coder agent install --agent-url https://coder.example.com --agent-token-file ~/.coder-token",
        ),
        (
            "Install for the whole machine, with shells that run as one user",
            "coder agent install --system --run-as alice --agent-url https://coder.example.com "
            "--agent-token-file /root/token",
        ),
        (
            "Show what would be written, without writing it",
            "coder agent install --dry-run --agent-url https://coder.example.com --agent-token-file ~/.coder-token",
        ),
    ),
)

UNINSTALL = Command(
    words="agent uninstall",
    summary="Stop the agent's service and remove it with its token",
    options=AgentUninstallOptions,
    max_args=0,
    examples=(
        ("Remove the current user's service", "coder agent uninstall"),
        ("Remove the machine-wide service", "coder agent uninstall --system"),
    ),
)
