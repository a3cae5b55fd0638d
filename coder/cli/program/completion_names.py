"""Completion of names: the kinds of names that arguments and flags take, and the deployment's names of each kind.

`ARGUMENT_KINDS` and `COMMAND_KINDS` map arguments to kinds, by the words of a command's usage; `FLAGS` maps flags.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from coder.api.agents.agent_ports import WorkspaceAgentListeningPortsResponse
from coder.api.agents.agents import WorkspaceAgent
from coder.api.base import names
from coder.base.errors import CoderError
from coder.cli.core import session
from coder.cli.core.command import Invocation
from coder.cli.core.options import Options
from coder.cli.workspaces.find_workspace import find_workspace
from coder.client.answers import read
from coder.net.errors import NetError

if TYPE_CHECKING:
    from coder.cli.core.command import Command
    from coder.net.blocking import BlockingClient

ARGUMENT_KINDS = {
    "<workspace>": "workspaces",
    "[workspace]": "workspaces",
    "[user/]workspace[.agent]": "workspaces",
    "[agent]": "agents",
    "<app slug>": "apps",
    "<always|never>": "always never",
    "{<duration> | manual}": "manual",
    "{<start-time> [day-of-week] [location] | manual}": "manual",
    "<template>": "templates",
    "[template]": "templates",
    "<template-name>": "templates",
    "[template-name...]": "templates",
    "<username>": "users",
    "<username|user_id>": "users",
    "<username | user_id>": "users",
    "<username|user_id|'me'>": "users",
    "<task>": "tasks",
    "<task>...": "tasks",
    "<organization_name_or_id>": "organizations",
    "['selected'|'me'|uuid|org_name]": "organizations",
} | dict.fromkeys(
    (
        "[command]",
        "[directory]",
        "[destination]",
        "[file]",
        "<file>",
        "<file|->",
        "[input]",
        "[template-folder...]",
        "[project directory]",
        "[<directory in workspace>]",
        "<new name>",
        "<duration from now>",
        "<title>",
        "<message>",
        "<question>",
        "<git_repo_url>",
        "[<url>]",
        "<host>",
        "<id>",
        "<job_id>",
        "<unit>",
        "<depends-on…>",
        "<provider>",
        "<role_name>",
        "[role_names ...]",
        "[roles...]",
        "[template-version-names...]",
        "<organization name>",
        "--",
        "[word...]",
        "[ssh arguments]",
    ),
    "",
)
"""Word of a usage -> kind of its names, or the literal words; "" if there is nothing to complete."""
COMMAND_KINDS = {
    "create": ("",),
    "external-workspaces create": ("",),
    "templates create": ("",),
    "task create": ("",),
    "groups create": ("",),
    "provisioner keys create": ("",),
    "secret create": ("",),
    "wireguard add": ("",),
    "groups delete": ("groups",),
    "groups edit": ("groups",),
    "provisioner keys delete": ("",),
    "secret delete": ("secrets",),
    "secret disable": ("secrets",),
    "secret enable": ("secrets",),
    "secret list": ("secrets",),
    "secret update": ("secrets",),
    "wireguard remove": ("",),
    "templates delete": ("templates...",),
    "templates pull": ("templates", ""),
    "tokens remove": ("tokens",),
    "tokens view": ("tokens",),
    "workspace-proxy delete": ("proxies",),
    "workspace-proxy edit": ("proxies",),
    "workspace-proxy regenerate-token": ("proxies",),
}
"""Kinds for commands whose usage is ambiguous, or whose argument is the name of a new resource."""
FLAGS = {
    "template": "templates",
    "org": "organizations",
    "user": "users",
    "owner": "users",
    "initiator": "users",
    "add-users": "users",
    "rm-users": "users",
    "group": "groups",
    "tcp": "ports",
    "udp": "ports",
    "copy-parameters-from": "workspaces",
    "workspace": "workspaces",
}
_WORD = re.compile(r"(?:\[[^\]<]*(?:<[^>]*>)?[^\]]*\]|<[^>]*>|\{[^}]*\}|[^\s\[<{])+")


def usage_words(usage: str) -> list[str]:
    """Split a usage into its words; `<workspace> [command]` has two, and blanks inside brackets are kept."""
    return _WORD.findall(usage)


def argument_kind(command: Command[Options], index: int) -> str:
    """Return the kind of names of the argument at this index (from 0); "" if unknown."""
    kinds = COMMAND_KINDS.get(command.words)
    if kinds is None:
        kinds = tuple(
            f"{ARGUMENT_KINDS.get(word, '')}{'...' if '...' in word else ''}" for word in usage_words(command.usage)
        )
    if not kinds:
        return ""
    kind = kinds[index] if index < len(kinds) else kinds[-1] if kinds[-1].endswith("...") else ""
    return kind.removesuffix("...")


def _names(client: BlockingClient, kind: str) -> list[str]:
    answer = client.request("GET", _LIST_ROUTES[kind])
    match kind:
        case "workspaces":
            items = read(answer, names.NamedWorkspaces).workspaces
        case "tasks":
            items = read(answer, names.NamedTasks).tasks
        case "proxies":
            items = read(answer, names.NamedRegions).regions
        case "users":
            return [user.username for user in read(answer, names.NamedUsers).users]
        case "tokens":
            return [token.token_name for token in read(answer, list[names.NamedToken])]
        case _:
            items = read(answer, list[names.Named])
    return [item.name for item in items]


_LIST_ROUTES = {
    "workspaces": "/api/v2/workspaces?q=owner%3Ame",
    "users": "/api/v2/users",
    "templates": "/api/v2/templates",
    "organizations": "/api/v2/users/me/organizations",
    "groups": "/api/v2/groups",
    "tasks": "/api/v2/tasks?q=owner%3Ame",
    "secrets": "/api/v2/users/me/secrets",
    "tokens": "/api/v2/users/me/keys/tokens",
    "proxies": "/api/v2/workspaceproxies",
}
"""Routes that list the names of a kind."""


def names_of_kind(kind: str, invocation: Invocation[Options], args: Sequence[str]) -> list[str]:
    """Return the deployment's names of a kind; empty if the request fails, since completion must not fail.

    `args`: the preceding arguments; the first is the workspace whose agents, apps and ports are listed.
    """
    try:
        if kind in _LIST_ROUTES:
            return sorted(filter(None, _names(session.client(invocation), kind)))
        if kind in _WORKSPACE_LISTS:
            return _WORKSPACE_LISTS[kind](session.client(invocation), args[0]) if args else []
    except (CoderError, NetError, ValueError):  # msgspec raises ValueError for an answer of another shape
        return []
    return kind.split()


def _agents(client: BlockingClient, workspace: str) -> list[WorkspaceAgent]:
    workspace_details = find_workspace(client, workspace)
    return [agent for resource in workspace_details.latest_build.resources for agent in resource.agents or ()]


def _agent_names(client: BlockingClient, workspace: str) -> list[str]:
    return sorted(agent.name for agent in _agents(client, workspace))


def _apps(client: BlockingClient, workspace: str) -> list[str]:
    return sorted(app.slug for agent in _agents(client, workspace) for app in agent.apps or ())


def _ports(client: BlockingClient, workspace: str) -> list[str]:
    """Return the ports that programs in the workspace listen on."""
    agents = _agents(client, workspace)
    if not agents:
        return []
    answer = client.request("GET", f"/api/v2/workspaceagents/{agents[0].id}/listening-ports")
    return [str(port.port) for port in read(answer, WorkspaceAgentListeningPortsResponse).ports]


_WORKSPACE_LISTS: dict[str, Callable[[BlockingClient, str], list[str]]] = {
    "agents": _agent_names,
    "apps": _apps,
    "ports": _ports,
}
KINDS = frozenset({*_LIST_ROUTES, *_WORKSPACE_LISTS})
