"""`coder external-workspaces`: machines outside the deployment, attached by one command."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import quote

from coder.api.agents.external_agents import RotatedAgentToken
from coder.api.site.deployment import ExternalAgentCredentials
from coder.api.site.programs import Program
from coder.api.templates.template_versions import TemplateVersion
from coder.api.workspaces.workspaces import Workspace
from coder.base.errors import CoderError
from coder.base.quoted import quoted
from coder.cli import session
from coder.cli.command import Command, Invocation, output_option
from coder.cli.failures import add_action_to_errors
from coder.cli.output import print_json, say
from coder.cli.workspaces.agent_health import fetch_health, format_health
from coder.cli.workspaces.create import CREATE as _PLAIN_CREATE
from coder.cli.workspaces.create import create_workspace
from coder.cli.workspaces.workspaces import find_workspace, list_options, list_workspaces
from coder.client.answers import read
from coder.net.blocking import BlockingClient
from coder.net.errors import HttpError

DEFAULT_COLUMNS = ("workspace", "template", "status", "healthy", "last built", "current version", "outdated")

Answered = TypeVar("Answered", ExternalAgentCredentials, RotatedAgentToken)


@dataclass(frozen=True, slots=True)
class Attachment(Generic[Answered]):
    """Instructions to attach an agent's machine."""

    agent_name: str
    answer: Answered


def _create(invocation: Invocation) -> int:
    if not invocation["template"]:
        raise CoderError(
            "usage", "--template is required", "List your external workspaces with `coder external-workspaces list`."
        )

    def check(version: TemplateVersion) -> None:
        if not version.has_external_agent:
            raise CoderError(
                "no_external_agent",
                f"template version {quoted(version.name)} does not have an external agent",
                "Choose a template with a coder_external_agent resource, or use `coder create`.",
            )

    client = session.client(invocation)
    workspace = create_workspace(invocation, client, check_version=check)
    _print_instructions(workspace.name, _credentials(client, workspace, ""))
    _warn_of_missing_programs(client, workspace)
    return 0


def _instructions(invocation: Invocation) -> int:
    client = session.client(invocation)
    name, _, agent = invocation.args[0].partition(".")
    workspace = find_workspace(client, name)
    attachments = _credentials(client, workspace, agent)
    if invocation["output"] == "json":
        output = [_as_json(workspace.name, item) for item in attachments]
        print_json(output[0] if len(output) == 1 else output)
        return 0
    _print_instructions(workspace.name, attachments)
    _warn_of_missing_programs(client, workspace)
    return 0


def _rotate(invocation: Invocation) -> int:
    client = session.client(invocation)
    name, _, agent = invocation.args[0].partition(".")
    workspace = find_workspace(client, name)
    attachments: list[Attachment[RotatedAgentToken]] = []
    for agent_name in _agent_names(workspace, agent):
        path = _agent_path(workspace, agent_name, "rotate-token")
        with add_action_to_errors(f"rotate the token of agent {quoted(agent_name)}"):
            attachments.append(Attachment(agent_name, read(client.request("POST", path), RotatedAgentToken)))
    if invocation["output"] == "json":
        output = [_as_json(workspace.name, item) | {"generation": item.answer.generation} for item in attachments]
        print_json(output[0] if len(output) == 1 else output)
        return 0
    say("The old token stays valid until the agent connects with the new one.\n")
    _print_instructions(workspace.name, attachments)
    return 0


def _credentials(
    client: BlockingClient, workspace: Workspace, agent: str
) -> list[Attachment[ExternalAgentCredentials]]:
    """Return the attachments of the workspace's external agents. Raise CoderError if it has none."""
    attachments = []
    for name in _agent_names(workspace, agent):
        path = _agent_path(workspace, name, "credentials")
        try:
            answer = read(client.request("GET", path), ExternalAgentCredentials)
        except HttpError as error:
            raise CoderError("credentials", f"get external agent credentials for agent {quoted(name)}") from error
        attachments.append(Attachment(name, answer))
    return attachments


def _agent_path(workspace: Workspace, agent: str, verb: str) -> str:
    return f"/api/v2/workspaces/{workspace.id}/external-agent/{quote(agent, safe='')}/{verb}"


def _agent_names(workspace: Workspace, agent: str) -> list[str]:
    """Return the selected external agents: the named one, or all. Raise CoderError if there are none."""
    names = [
        item.name
        for resource in workspace.latest_build.resources
        if resource.type == "coder_external_agent"
        for item in resource.agents or []
    ]
    if not names and workspace.latest_build.has_external_agent:
        raise CoderError(
            "stopped",
            f"workspace {quoted(workspace.name)} is {workspace.latest_build.status}, so its external agent has no "
            f"token; start it with `coder start {workspace.name}`",
            "The machine then needs the new command: each start has a new token.",
        )
    if agent and agent not in names:
        raise CoderError("no_agent", f"agent not found by name {quoted(agent)}, available agents: [{' '.join(names)}]")
    if not names:
        raise CoderError(
            "no_external_agent",
            f"workspace {quoted(workspace.name)} has no external agent",
            "Only workspaces of templates with a coder_external_agent resource have one; is its build finished?",
        )
    return [agent] if agent else names


def _as_json(workspace: str, item: Attachment[Answered]) -> dict[str, object]:
    return {
        "workspace_name": workspace,
        "agent_name": item.agent_name,
        "auth_type": "token",
        "auth_token": item.answer.agent_token,
        "init_script": item.answer.command,
    }


def _print_instructions(workspace: str, attachments: Sequence[Attachment[Answered]]) -> None:
    sys.stdout.write(f"\nPlease run the following command to attach external agent to the workspace {workspace}:\n\n")
    for item in attachments:
        if len(attachments) > 1:
            sys.stdout.write(f"For agent {item.agent_name}:\n")
        sys.stdout.write(f"{item.answer.command}\n\n")


def _warn_of_missing_programs(client: BlockingClient, workspace: Workspace) -> None:
    """Print the platforms of external agents for which the server has no program, as the workspace's page does."""
    agents = [
        agent
        for resource in workspace.latest_build.resources
        if resource.type == "coder_external_agent"
        for agent in resource.agents or []
    ]
    try:
        programs = read(client.request("GET", "/api/v2/programs"), list[Program])
    except HttpError:  # another make of server, which has no such list
        return
    missing = {(program.os, program.architecture): program.remedy for program in programs if not program.available}
    for agent in agents:
        remedy = missing.get((agent.operating_system, agent.architecture))
        if remedy is not None:
            platform = f"{agent.operating_system}/{agent.architecture}"
            say(f"This server has no program for {platform}, so the line fails there.\n{remedy}")


def _health(invocation: Invocation) -> int:
    client = session.client(invocation)
    name, _, agent_name = invocation.args[0].partition(".")
    with add_action_to_errors("get workspace"):
        workspace = find_workspace(client, name)
    agents = [
        agent
        for resource in workspace.latest_build.resources
        for agent in resource.agents or []
        if agent_name in {"", agent.name}
    ]
    if not agents:
        raise CoderError(
            "no_agent",
            f"workspace {quoted(workspace.name)} has no agent" + (f" named {quoted(agent_name)}" if agent_name else ""),
            "`coder show` lists its agents; one that is stopped has none.",
        )
    with add_action_to_errors("get the agent's health"):
        reports = {agent.name: fetch_health(client, agent.id) for agent in agents}
    if invocation["output"] == "json":
        print_json({name: report.json() for name, report in reports.items()})
        return 0
    for agent in agents:
        sys.stdout.write(f"{workspace.name}.{agent.name}  {agent.status}\n")
        for line in format_health(reports[agent.name], 10):
            sys.stdout.write(f"  {line}\n")
    return 0


CREATE = Command(
    words="external-workspaces create",
    summary="Create a new external workspace",
    usage="<workspace>",
    run=_create,
    options=_PLAIN_CREATE.options,
    min_args=1,
    max_args=1,
)
LIST = Command(
    words="external-workspaces list",
    summary="List external workspaces",
    run=lambda invocation: list_workspaces(
        invocation, "has_external_agent:true", "coder external-workspaces create <name>"
    ),
    options=list_options(DEFAULT_COLUMNS),
    max_args=0,
)
AGENT_INSTRUCTIONS = Command(
    words="external-workspaces agent-instructions",
    summary="Get the instructions for an external agent",
    usage="[user/]workspace[.agent]",
    run=_instructions,
    options=(output_option(("text", "json"), "text"),),
    min_args=1,
    max_args=1,
)
ROTATE_TOKEN = Command(
    words="external-workspaces rotate-token",
    summary="Rotate an external agent's token; the old one is valid until the new one is used",
    usage="[user/]workspace[.agent]",
    run=_rotate,
    options=(output_option(("text", "json"), "text"),),
    min_args=1,
    max_args=1,
)
HEALTH = Command(
    words="external-workspaces health",
    summary="Show the health of an attached machine and why it disconnected",
    usage="[user/]workspace[.agent]",
    run=_health,
    options=(output_option(("text", "json"), "text"),),
    min_args=1,
    max_args=1,
)
