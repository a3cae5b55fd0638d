"""`coder show`."""

from __future__ import annotations

import sys

from coder.api.agents.agents import WorkspaceAgent
from coder.api.workspaces.builds import WorkspaceResource
from coder.api.workspaces.workspaces import Workspace
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.failures import add_action_to_errors
from coder.cli.declarations.workspaces.show import (
    SHOW,
    ShowOptions,
)
from coder.cli.workspaces.agent_health import health_lines
from coder.cli.workspaces.find_workspace import find_workspace
from coder.cli.workspaces.resource_tree import agent_lines, head_line
from coder.cli.workspaces.workspaces import status_word
from coder.net.blocking import BlockingClient


@implements(SHOW)
def _show(invocation: Invocation[ShowOptions]) -> int:
    client = session.client(invocation)
    with add_action_to_errors("get workspace"):
        workspace = find_workspace(client, invocation.args[0])
    build = workspace.latest_build
    sys.stdout.write(head_line(workspace, status_word(build)) + "\n")
    for resource in build.resources:
        if resource.hide or resource.workspace_transition != build.transition:
            continue
        _print_resource(client, workspace, resource, details=invocation.options.details)
        if invocation.options.details or build.has_external_agent:
            _print_health(client, resource.agents or [])
    return 0


def _print_health(client: BlockingClient, agents: list[WorkspaceAgent]) -> None:
    for agent in agents:
        for line in health_lines(client, agent.id):
            sys.stdout.write(f"   {line}\n")


def _print_resource(
    client: BlockingClient, workspace: Workspace, resource: WorkspaceResource, *, details: bool
) -> None:
    sys.stdout.write(f"{resource.type}.{resource.name}\n")
    for line in agent_lines(client, workspace, resource):
        sys.stdout.write(f"{line}\n")
    if details:
        for item in resource.metadata or []:
            value = "***" if item.sensitive else item.value
            sys.stdout.write(f"   {item.key} = {value}\n")
