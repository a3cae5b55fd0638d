"""`coder logs`: prints the log of a workspace's build, then those of its agents."""

from __future__ import annotations

import sys

import trio

from coder.api.agents.agent_streams import WorkspaceAgentLog
from coder.api.agents.agents import WorkspaceAgent
from coder.api.provisioning.jobs import ProvisionerJobLog
from coder.api.workspaces.builds import WorkspaceBuild
from coder.api.workspaces.workspaces import Workspace
from coder.base.errors import CoderError
from coder.base.threads import run_trio
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.failures import add_action_to_errors
from coder.cli.declarations.workspaces.workspace_logs import LOGS, LogsOptions
from coder.cli.ui.output import go_time
from coder.cli.workspaces.find_workspace import find_workspace
from coder.client.answers import read
from coder.client.logs import follow_agent_logs, follow_job_logs
from coder.net.blocking import BlockingClient


@implements(LOGS)
def _logs(invocation: Invocation[LogsOptions]) -> int:
    client = session.client(invocation)
    with add_action_to_errors("failed to get workspace"):
        workspace = find_workspace(client, invocation.args[0])
    build = _chosen(client, workspace, invocation.options.build_number)
    path = f"/api/v2/workspacebuilds/{build.id}"
    if invocation.options.follow:
        run_trio(_follow, client, path)
        return 0
    lines = [_build_line(log) for log in read(client.request("GET", f"{path}/logs"), list[ProvisionerJobLog])]
    for agent in _agents(build):
        answer = client.request("GET", f"/api/v2/workspaceagents/{agent.id}/logs")
        lines += [_agent_line(agent, log) for log in read(answer, list[WorkspaceAgentLog])]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


def _chosen(client: BlockingClient, workspace: Workspace, number: int) -> WorkspaceBuild:
    """Return the build with this number; zero and below count back from the latest."""
    latest = workspace.latest_build
    build_number = number if number > 0 else latest.build_number + number
    if build_number == latest.build_number:
        return latest
    if build_number < 1:
        raise CoderError("build", f"there is no build {number}", f"The latest is {latest.build_number}.")
    path = f"/api/v2/users/{workspace.owner_id}/workspace/{workspace.name}/builds/{build_number}"
    with add_action_to_errors("failed to get workspace build"):
        return read(client.request("GET", path), WorkspaceBuild)


def _agents(build: WorkspaceBuild) -> list[WorkspaceAgent]:
    return [agent for resource in build.resources for agent in resource.agents or ()]


def _build_line(log: ProvisionerJobLog) -> str:
    return f"{go_time(log.created_at)} [{log.log_level}] [provisioner|{log.stage}] {log.output}"


def _agent_line(agent: WorkspaceAgent, log: WorkspaceAgentLog) -> str:
    return log.text(agent.name, next((item.display_name for item in agent.log_sources if item.id == log.source_id), ""))


async def _follow(client: BlockingClient, path: str) -> None:
    """Print the build's lines until its end, then those of all agents until a newer build replaces them."""
    async for log in follow_job_logs(client.policy, f"{path}/logs"):
        _say(_build_line(log))
    build = read(await trio.to_thread.run_sync(client.request, "GET", path), WorkspaceBuild)

    async def watch(agent: WorkspaceAgent) -> None:
        async for log in follow_agent_logs(client.policy, agent.id):
            _say(_agent_line(agent, log))

    async with trio.open_nursery() as nursery:
        for agent in _agents(build):
            nursery.start_soon(watch, agent)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
