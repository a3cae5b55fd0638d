"""Extraction of agents and their parts: apps, scripts, environment, dev containers, instance ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from coder.base.json_types import as_object
from coder.provisionerd.terraform.extract.document import Block, ExtractError, ResourceInstance, by_address
from coder.provisionerd.terraform.extract.graph import Graph, nearest
from coder.provisionerd.terraform.provider.resources.app import SLUG_PATTERN
from coder.rpc.proto import provisioner_pb2 as pb

_SLUG = re.compile(r"[a-z0-9](-?[a-z0-9])*")
_AGENT_PATTERN = f"(?i){SLUG_PATTERN}"
_AGENT_NAME = re.compile(r"[a-z0-9](-?[a-z0-9])*", re.IGNORECASE)

_SHARING = {
    "owner": pb.AppSharingLevel.OWNER,
    "authenticated": pb.AppSharingLevel.AUTHENTICATED,
    "public": pb.AppSharingLevel.PUBLIC,
}
_OPEN_IN = {"slim-window": pb.AppOpenIn.SLIM_WINDOW, "tab": pb.AppOpenIn.TAB}

_INSTANCE_ID_ATTRIBUTE = {
    "google_compute_instance": "instance_id",
    "aws_instance": "id",
    "aws_spot_instance_request": "spot_instance_id",
    "azurerm_linux_virtual_machine": "virtual_machine_id",
    "azurerm_windows_virtual_machine": "virtual_machine_id",
}

Warn = Callable[[str, dict[str, str]], None]


@dataclass(slots=True)
class Agents:
    """Agents by the label of the resource they run on."""

    by_resource: dict[str, list[pb.Agent]] = field(default_factory=dict)

    def all(self) -> Iterable[pb.Agent]:
        for agents in self.by_resource.values():
            yield from agents


def collect_agents(resources: list[ResourceInstance], graph: Graph, is_target: Callable[[str], bool]) -> Agents:
    """Read every coder_agent and find the nearest resource among those that depend on it.

    An agent without a dependent resource has no machine to run on and is left out. Raises ExtractError.
    """
    agents = Agents()
    names: set[str] = set()
    for resource in by_address(resources, "coder_agent"):
        agent = _agent(resource)
        if agent.name.lower() in names:
            raise ExtractError(f"duplicate agent name: {agent.name}", resource.address)
        names.add(agent.name.lower())
        node = graph.node(resource.label)
        if node is None:
            raise ExtractError(f'couldn\'t find node on graph: "{resource.label}"', resource.address)
        target = nearest(graph, node, graph.needed_by, is_target)
        if target is not None:
            agents.by_resource.setdefault(target, []).append(agent)
    for resource in by_address(resources, "coder_agent_instance"):
        for agent in agents.all():
            if agent.id == resource.text("agent_id") and agent.WhichOneof("auth") == "instance_id":
                agent.instance_id = resource.text("instance_id")
    return agents


def _check_agent_name(resource: ResourceInstance) -> None:
    name = resource.name
    if _AGENT_NAME.fullmatch(name):
        return
    if "_" in name:
        raise ExtractError(
            f'agent name "{name}" contains underscores which are no longer supported, please use hyphens instead '
            f'(regex: "{_AGENT_PATTERN}")',
            resource.address,
        )
    raise ExtractError(f'agent name "{name}" does not match regex "{_AGENT_PATTERN}"', resource.address)


def _agent(resource: ResourceInstance) -> pb.Agent:
    _check_agent_name(resource)
    agent = pb.Agent(
        id=resource.text("id"),
        name=resource.name,
        env={key: str(value) for key, value in as_object(resource.values.get("env")).items() if value is not None},
        operating_system=resource.text("os"),
        architecture=resource.text("arch"),
        directory=resource.text("dir"),
        connection_timeout_seconds=resource.number("connection_timeout"),
        troubleshooting_url=resource.text("troubleshooting_url"),
        motd_file=resource.text("motd_file"),
        order=resource.number("order"),
        api_key_scope=resource.text("api_key_scope"),
        metadata=[_agent_metadata(item) for item in resource.blocks("metadata")],
        display_apps=_display_apps(resource.blocks("display_apps")),
        resources_monitoring=_monitoring(resource.blocks("resources_monitoring")),
        scripts=_builtin_scripts(resource),
    )
    if resource.text("auth") in {"", "token"}:
        agent.token = resource.text("token")
    else:
        agent.instance_id = ""
    return agent


def _agent_metadata(item: Block) -> pb.Agent.Metadata:
    return pb.Agent.Metadata(
        key=item.text("key"),
        display_name=item.text("display_name"),
        script=item.text("script"),
        interval=item.number("interval"),
        timeout=item.number("timeout"),
        order=item.number("order"),
    )


def _display_apps(blocks: list[Block]) -> pb.DisplayApps:
    if not blocks:
        return pb.DisplayApps(vscode=True, web_terminal=True, ssh_helper=True, port_forwarding_helper=True)
    names = ("vscode", "vscode_insiders", "web_terminal", "ssh_helper", "port_forwarding_helper")
    return pb.DisplayApps(**{name: blocks[0].flag(name) for name in names})


def _monitoring(blocks: list[Block]) -> pb.ResourcesMonitoring:
    monitoring = pb.ResourcesMonitoring()
    for block in blocks[:1]:
        for memory in block.blocks("memory")[:1]:
            monitoring.memory.CopyFrom(
                pb.MemoryResourceMonitor(enabled=memory.flag("enabled"), threshold=memory.number("threshold"))
            )
        for volume in block.blocks("volume"):
            monitoring.volumes.add(
                path=volume.text("path"), enabled=volume.flag("enabled"), threshold=volume.number("threshold")
            )
    return monitoring


def _builtin_scripts(resource: ResourceInstance) -> list[pb.Script]:
    """Return the agent's built-in scripts, the predecessors of coder_script."""
    scripts: list[pb.Script] = []
    if resource.text("startup_script"):
        legacy = resource.values.get("login_before_ready")
        scripts.append(
            pb.Script(
                display_name="Startup Script",
                icon="/emojis/25b6-fe0f.png",
                log_path="coder-startup-script.log",
                script=resource.text("startup_script"),
                run_on_start=True,
                start_blocks_login=resource.text("startup_script_behavior") == "blocking" or legacy is False,
            )
        )
    if resource.text("shutdown_script"):
        scripts.append(
            pb.Script(
                display_name="Shutdown Script",
                icon="/emojis/25c0.png",
                log_path="coder-shutdown-script.log",
                script=resource.text("shutdown_script"),
                run_on_stop=True,
            )
        )
    return scripts


# --- parts of an agent
def _belongs_to(graph: Graph, resource: ResourceInstance, owner_type: str, owner_name: str, owner_id: str) -> bool:
    """Return whether a resource belongs to an agent or dev container.

    Ids decide once both are known. Before that, only a direct edge between two resources of the root module does.
    """
    agent_id = resource.text("agent_id")
    if owner_id == "" and agent_id == "":
        return graph.root_edge(f"{resource.type}.{resource.name}", f"{owner_type}.{owner_name}")
    return owner_id == agent_id


def attach_devcontainers(resources: list[ResourceInstance], graph: Graph, agents: Agents) -> None:
    for resource in by_address(resources, "coder_devcontainer"):
        for agent in agents.all():
            if _belongs_to(graph, resource, "coder_agent", agent.name, agent.id):
                agent.devcontainers.add(
                    id=resource.text("id"),
                    name=resource.name,
                    workspace_folder=resource.text("workspace_folder"),
                    config_path=resource.text("config_path"),
                    subagent_id=resource.text("subagent_id"),
                )


def attach_apps(
    resources: list[ResourceInstance], graph: Graph, agents: Agents, new_id: Callable[[], str], warn: Warn
) -> None:
    """Add apps to their agents. Raises ExtractError for a malformed or duplicate slug."""
    slugs: set[str] = set()
    for resource in by_address(resources, "coder_app"):
        app = _app(resource, new_id)
        if not _SLUG.fullmatch(app.slug):
            raise ExtractError(f'app slug "{app.slug}" does not match regex "{SLUG_PATTERN}"', resource.address)
        if app.slug in slugs:
            raise ExtractError(f'duplicate app slug, they must be unique per template: "{app.slug}"', resource.address)
        slugs.add(app.slug)
        if not resource.text("id"):
            warn("coder_app's id was unexpectedly empty", {"name": resource.text("name")})
        for agent in agents.all():
            if _belongs_to(graph, resource, "coder_agent", agent.name, agent.id):
                agent.apps.append(app)
            for container in agent.devcontainers:
                if _belongs_to(graph, resource, "coder_devcontainer", container.name, container.subagent_id):
                    container.apps.append(app)


def _app(resource: ResourceInstance, new_id: Callable[[], str]) -> pb.App:
    slug = resource.text("slug") or resource.name
    checks = resource.blocks("healthcheck")
    return pb.App(
        id=resource.text("id") or new_id(),
        slug=slug,
        display_name=resource.text("display_name") or resource.text("name") or slug,
        command=resource.text("command"),
        url=resource.text("url"),
        icon=resource.text("icon"),
        subdomain=resource.flag("subdomain"),
        external=resource.flag("external"),
        hidden=resource.flag("hidden"),
        order=resource.number("order"),
        group=resource.text("group"),
        tooltip=resource.text("tooltip"),
        sharing_level=_SHARING.get(resource.text("share").lower(), pb.AppSharingLevel.OWNER),
        open_in=_OPEN_IN.get(resource.text("open_in"), pb.AppOpenIn.SLIM_WINDOW),
        healthcheck=_healthcheck(checks[0]) if checks else None,
    )


def _healthcheck(block: Block) -> pb.Healthcheck:
    return pb.Healthcheck(url=block.text("url"), interval=block.number("interval"), threshold=block.number("threshold"))


def attach_scripts_and_envs(resources: list[ResourceInstance], graph: Graph, agents: Agents) -> None:
    for resource in by_address(resources, "coder_env"):
        env = pb.Env(
            name=resource.text("name"), value=resource.text("value"), merge_strategy=resource.text("merge_strategy")
        )
        for agent in agents.all():
            if _belongs_to(graph, resource, "coder_agent", agent.name, agent.id):
                agent.extra_envs.append(env)
            for container in agent.devcontainers:
                if _belongs_to(graph, resource, "coder_devcontainer", container.name, container.subagent_id):
                    container.envs.append(env)
    for resource in by_address(resources, "coder_script"):
        script = _script(resource)
        for agent in agents.all():
            if _belongs_to(graph, resource, "coder_agent", agent.name, agent.id):
                agent.scripts.append(script)
            for container in agent.devcontainers:
                if _belongs_to(graph, resource, "coder_devcontainer", container.name, container.subagent_id):
                    container.scripts.append(script)


def _script(resource: ResourceInstance) -> pb.Script:
    return pb.Script(
        display_name=resource.text("display_name"),
        icon=resource.text("icon"),
        script=resource.text("script"),
        cron=resource.text("cron"),
        log_path=resource.text("log_path"),
        start_blocks_login=resource.flag("start_blocks_login"),
        run_on_start=resource.flag("run_on_start"),
        run_on_stop=resource.flag("run_on_stop"),
        timeout_seconds=resource.number("timeout"),
    )


def set_instance_ids(resource: ResourceInstance, agents: list[pb.Agent]) -> None:
    """Set the machine's cloud instance id on agents that authenticate with it and have none."""
    attribute = _INSTANCE_ID_ATTRIBUTE.get(resource.type)
    instance_id = resource.text(attribute) if attribute else ""
    for agent in agents:
        if instance_id and agent.WhichOneof("auth") == "instance_id" and not agent.instance_id:
            agent.instance_id = instance_id
