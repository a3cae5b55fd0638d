"""`coder external-workspaces`: machines outside the deployment, attached by one command."""

from __future__ import annotations

import re
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
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.failures import add_action_to_errors
from coder.cli.declarations.workspaces.create import CreateOptions
from coder.cli.declarations.workspaces.external_workspaces import (
    AGENT_INSTRUCTIONS,
    CREATE,
    HEALTH,
    LIST,
    ROTATE_TOKEN,
    AgentInstructionsOptions,
    ExternalAgentOptions,
    ExternalWorkspacesListOptions,
)
from coder.cli.ui.output import print_json, say
from coder.cli.workspaces.agent_health import fetch_health, format_health
from coder.cli.workspaces.create import create_workspace
from coder.cli.workspaces.find_workspace import find_workspace
from coder.cli.workspaces.workspaces import list_workspaces
from coder.client.answers import read
from coder.domain.agents.init_scripts import PLATFORMS, attach_command
from coder.net.blocking import BlockingClient
from coder.net.errors import HttpError

_ADDRESS = re.compile(r"\"(https?://[^\"]+?)/api/v2/init-script/")
Answered = TypeVar("Answered", ExternalAgentCredentials, RotatedAgentToken)


@dataclass(frozen=True, slots=True)
class Attachment(Generic[Answered]):
    """Instructions to attach an agent's machine."""

    agent_name: str
    answer: Answered


@implements(CREATE)
def _create(invocation: Invocation[CreateOptions]) -> int:
    if not invocation.options.template:
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


@implements(AGENT_INSTRUCTIONS)
def _instructions(invocation: Invocation[AgentInstructionsOptions]) -> int:
    client = session.client(invocation)
    name, _, agent = invocation.args[0].partition(".")
    workspace = find_workspace(client, name)
    attachments = _credentials(client, workspace, agent)
    if invocation.options.os or invocation.options.arch:
        return _print_chosen(invocation, workspace, attachments)
    if invocation.options.output == "json":
        output = [_as_json(workspace.name, item) for item in attachments]
        print_json(output[0] if len(output) == 1 else output)
        return 0
    _print_instructions(workspace.name, attachments)
    _warn_of_missing_programs(client, workspace)
    return 0


@implements(ROTATE_TOKEN)
def _rotate(invocation: Invocation[ExternalAgentOptions]) -> int:
    client = session.client(invocation)
    name, _, agent = invocation.args[0].partition(".")
    workspace = find_workspace(client, name)
    attachments: list[Attachment[RotatedAgentToken]] = []
    for agent_name in _agent_names(workspace, agent):
        path = _agent_path(workspace, agent_name, "rotate-token")
        with add_action_to_errors(f"rotate the token of agent {quoted(agent_name)}"):
            attachments.append(Attachment(agent_name, read(client.request("POST", path), RotatedAgentToken)))
    if invocation.options.output == "json":
        output = [_as_json(workspace.name, item) | {"generation": item.answer.generation} for item in attachments]
        print_json(output[0] if len(output) == 1 else output)
        return 0
    say("The old token stays valid until the agent connects with the new one.\n")
    _print_instructions(workspace.name, attachments)
    return 0


def _print_chosen(
    invocation: Invocation[AgentInstructionsOptions],
    workspace: Workspace,
    attachments: Sequence[Attachment[ExternalAgentCredentials]],
) -> int:
    """Print the commands for the chosen kinds of machine. Raise CoderError for one without a program."""
    platforms = {item.agent_name: _template_platform(workspace, item.agent_name) for item in attachments}
    chosen = [
        (item, platform)
        for item in attachments
        for platform in _choose(invocation.options.os, invocation.options.arch, platforms[item.agent_name])
    ]
    lines = {
        (item.agent_name, platform): attach_command(_address(item.answer.command), *platform, item.answer.agent_token)
        for item, platform in chosen
    }
    if invocation.options.output == "json":
        print_json(
            [
                _as_json(workspace.name, item)
                | {"os": platform[0], "arch": platform[1], "init_script": lines[item.agent_name, platform]}
                for item, platform in chosen
            ]
        )
        return 0
    for (agent, (system, arch)), line in lines.items():
        of_agent = f" (agent {agent})" if len(attachments) > 1 else ""
        sys.stdout.write(f"{system}/{arch}{of_agent}:\n{line}\n\n")
    return 0


def _choose(system: str, arch: str, template: tuple[str, str]) -> list[tuple[str, str]]:
    """Return the platforms that the flags select; a missing flag is the template's value, or the first that exists."""
    systems = [system] if system not in {"", "all"} else []
    if not system and arch != "all":
        systems = [template[0]]
    found = [each for each in PLATFORMS if not systems or each[0] in systems]
    if arch not in {"", "all"}:
        found = [each for each in found if each[1] == arch]
    elif not arch and system not in {"", "all"}:
        found = [each for each in found if each[1] == template[1]] or found[:1]
    if not found:
        known = ", ".join("/".join(each) for each in PLATFORMS)
        raise CoderError("platform", f"no agent exists for {system or template[0]}/{arch}", f"Use one of: {known}.")
    return found


def _template_platform(workspace: Workspace, name: str) -> tuple[str, str]:
    return next(
        (agent.operating_system, agent.architecture)
        for resource in workspace.latest_build.resources
        for agent in resource.agents or []
        if agent.name == name
    )


def _address(command: str) -> str:
    """Return the address that machines reach the server at, from its command. Raise CoderError without one."""
    found = _ADDRESS.search(command)
    if found is None:
        raise CoderError("instructions", "the server's command has no address", "Leave out --os and --arch.")
    return found[1]


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


@implements(HEALTH)
def _health(invocation: Invocation[ExternalAgentOptions]) -> int:
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
    if invocation.options.output == "json":
        print_json({name: report.json() for name, report in reports.items()})
        return 0
    for agent in agents:
        sys.stdout.write(f"{workspace.name}.{agent.name}  {agent.status}\n")
        for line in format_health(reports[agent.name], 10):
            sys.stdout.write(f"  {line}\n")
    return 0


@implements(LIST)
def _run_list(invocation: Invocation[ExternalWorkspacesListOptions]) -> int:
    return list_workspaces(invocation, "has_external_agent:true", "coder external-workspaces create <name>")
