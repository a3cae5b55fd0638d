"""Resolution of names to workspaces and agents."""

from __future__ import annotations

from coder.api.agents.agents import WorkspaceAgent
from coder.api.workspaces.workspaces import Workspace
from coder.base.errors import CoderError
from coder.base.quoted import quoted


def split_target(text: str) -> tuple[str, str, str]:
    """Split `[owner/]workspace[.agent]` into (owner, workspace, agent); `--` and `~` are alternatives to `/`.

    Owner defaults to `me`, agent to ''. Raise CoderError.
    """
    body = text.replace("--", "/").replace("~", "/")
    owner, slash, rest = body.partition("/")
    if not slash:
        owner, rest = "me", body
    workspace, _, agent = rest.partition(".")
    if not workspace or not owner or "/" in rest:
        raise CoderError(
            "bad_name", f"invalid workspace name: {quoted(text)}", "Write it as [owner/]workspace[.agent]."
        )
    return owner, workspace, agent


def choose_agent(workspace: Workspace, name: str) -> WorkspaceAgent:
    """Return the agent with this name, or the only one, not counting those of dev containers.

    Raise CoderError that lists the agents.
    """
    agents = [agent for resource in workspace.latest_build.resources for agent in resource.agents or []]
    names = " ".join(agent.name for agent in agents)
    if not agents:
        raise CoderError("no_agent", f"workspace {quoted(workspace.name)} has no agents")
    if name:
        matches = [agent for agent in agents if agent.name == name]
        if not matches:
            raise CoderError("no_agent", f'agent not found by name "{name}", available agents: [{names}]')
        return matches[0]
    own = [agent for agent in agents if agent.parent_id is None]
    if len(own) == 1:
        return own[0]
    if len(agents) > 1:
        raise CoderError(
            "many_agents", f"multiple agents found, please specify the agent name, available agents: [{names}]"
        )
    return agents[0]
