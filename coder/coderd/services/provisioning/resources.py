"""Resources of jobs: rows of what a provisioner reported.

Builds, template imports and dry runs share this. The JSON of rows is `services/agents/resource_view.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.agents.agents import DisplayApp, WorkspaceAppOpenIn, WorkspaceAppSharingLevel
from coder.api.base.enums import WorkspaceTransition
from coder.base.errors import CoderError
from coder.base.ids import new_uuid
from coder.base.json_types import Json, JsonObject
from coder.coderd.services.access.token_masking import mask_build_tokens
from coder.coderd.store.agents import agent_apps as app_store
from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.agents.agent_apps import AppRow
from coder.coderd.store.agents.agent_metadata import MetadataRow
from coder.coderd.store.agents.agent_scripts import ScriptRow
from coder.coderd.store.agents.agents import AgentRow, LogSourceRow
from coder.coderd.store.engine.turns import Turns
from coder.coderd.store.provisioning import resources as resource_store
from coder.coderd.store.provisioning.resources import ResourceMetadata, ResourceRow
from coder.domain.agents.agents import environment_of
from coder.domain.agents.sub_agents import AGENT_NAME, APP_SLUG
from coder.rpc.proto import agent_pb2
from coder.rpc.proto import provisioner_pb2 as pb

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from coder.coderd.store.engine.database import Tx

EXTERNAL_AGENT = "coder_external_agent"
"""Resource type that marks a workspace with an external agent."""

DEVCONTAINER_ICON = "/emojis/1f4e6.png"
_DISPLAY_APPS: tuple[DisplayApp, ...] = (
    "vscode",
    "vscode_insiders",
    "ssh_helper",
    "port_forwarding_helper",
    "web_terminal",
)
_SHARING: dict[int, WorkspaceAppSharingLevel] = {
    pb.AppSharingLevel.OWNER: "owner",
    pb.AppSharingLevel.AUTHENTICATED: "authenticated",
    pb.AppSharingLevel.PUBLIC: "public",
}
_OPEN_IN: dict[int, WorkspaceAppOpenIn] = {
    pb.AppOpenIn.TAB: "tab"
}  # all others are slim windows: upstream removed "window"


class BadResultError(CoderError):
    """Raised for a provisioner's report that cannot be stored; the job fails with this message."""

    def __init__(self, message: str) -> None:
        super().__init__("bad_provisioner_result", message)


@dataclass(frozen=True, slots=True)
class Inserted:
    """Ids of inserted agents and applications."""

    agent_ids: list[UUID]
    app_ids: dict[str, UUID]
    "Stored id by the provisioner's id, for applications that have one."
    has_external_agent: bool


@dataclass(slots=True)
class _Rows:
    resources: list[ResourceRow] = field(default_factory=list)
    agents: list[AgentRow] = field(default_factory=list)
    apps: list[AppRow] = field(default_factory=list)
    scripts: list[ScriptRow] = field(default_factory=list)
    sources: list[LogSourceRow] = field(default_factory=list)
    metadata: list[MetadataRow] = field(default_factory=list)
    app_ids: dict[str, UUID] = field(default_factory=dict)


async def insert_resources(
    tx: Tx,
    job_id: UUID,
    transition: WorkspaceTransition,
    resources: Iterable[pb.Resource],
    now: datetime,
    *,
    workspace_id: UUID | None = None,
) -> Inserted:
    """Store what a job reported. Agents are new rows every time, and only the start transition has agents.

    Applications keep Terraform's id unless another workspace has it. Raises BadResultError (duplicate agent names,
    tokens that are no UUIDs, environment conflicts).
    """
    rows, turns = _Rows(), Turns()
    for resource in resources:
        row = _resource_row(resource, job_id, transition, now, len(rows.resources))
        rows.resources.append(row)
        for agent in resource.agents if transition == "start" else ():
            await _add_agent(rows, agent, row.id, job_id, now, turns)
        await turns.rest()
    _check_names(rows.agents)
    await _check_texts(rows, turns)
    renamed = await _own_ids(tx, rows.apps, workspace_id)
    stored = {before.id: after.id for before, after in zip(rows.apps, renamed, strict=True)}
    rows.apps = renamed
    await _mask_metadata(tx, rows.resources)
    await resource_store.insert_resources(tx, rows.resources)
    await agent_store.insert_agents(
        tx, rows.agents, apps=rows.apps, scripts=rows.scripts, log_sources=rows.sources, metadata=rows.metadata
    )
    external = any(row.type == EXTERNAL_AGENT for row in rows.resources)
    app_ids = {reported: stored[ident] for reported, ident in rows.app_ids.items()}
    return Inserted([agent.id for agent in rows.agents], app_ids, external)


async def _mask_metadata(tx: Tx, resources: Iterable[ResourceRow]) -> None:
    """Mask the owner's session token in the metadata of resources, which every reader of the workspace sees."""
    items = [item for row in resources for item in row.metadata]
    for item, value in zip(items, await mask_build_tokens(tx, [item["value"] for item in items]), strict=True):
        item["value"] = value


async def _own_ids(tx: Tx, apps: list[AppRow], workspace_id: UUID | None) -> list[AppRow]:
    """Return the applications, with a new id for each whose id another workspace has."""
    owners = await app_store.find_app_workspaces(tx, [app.id for app in apps]) if apps else {}
    foreign = {key for key, owner in owners.items() if workspace_id is None or owner != workspace_id}
    return [replace(app, id=new_uuid()) if app.id in foreign else app for app in apps]


def _resource_row(
    resource: pb.Resource, job_id: UUID, transition: WorkspaceTransition, now: datetime, position: int
) -> ResourceRow:
    metadata: list[ResourceMetadata] = [
        {"key": item.key, "value": item.value, "sensitive": item.sensitive}
        for item in resource.metadata
        if not item.is_null
    ]
    return ResourceRow(
        id=new_uuid(),
        created_at=now,
        job_id=job_id,
        transition=transition,
        type=resource.type,
        name=resource.name,
        hide=resource.hide,
        icon=resource.icon,
        instance_type=resource.instance_type,
        daily_cost=resource.daily_cost,
        module_path=resource.module_path,
        metadata=metadata,
        position=position,
    )


async def _add_agent(
    rows: _Rows,
    agent: pb.Agent,
    resource_id: UUID,
    job_id: UUID,
    now: datetime,
    turns: Turns,
    parent: AgentRow | None = None,
) -> None:
    row = _agent_row(agent, resource_id, job_id, now)
    if parent is not None:
        row = replace(row, parent_id=parent.id)
    elif not AGENT_NAME.fullmatch(agent.name):
        raise BadResultError(f"agent name {agent.name!r} does not match regex (?i)^{AGENT_NAME.pattern}$")
    rows.agents.append(row)
    await _add_devcontainers(rows, agent, row, turns)
    slugs: set[str] = set()
    for number, app in enumerate(agent.apps):
        if not APP_SLUG.fullmatch(app.slug):
            raise BadResultError(f"app slug {app.slug!r} does not match regex ^{APP_SLUG.pattern}$")
        if app.slug in slugs:
            raise BadResultError(f"duplicate app slug {app.slug!r} for agent {agent.name!r}")
        slugs.add(app.slug)
        stored = _app_row(app, row.id, now, number)
        rows.apps.append(stored)
        if app.id:
            rows.app_ids[app.id] = stored.id
        await turns.rest()
    for number, script in enumerate(agent.scripts):
        source = LogSourceRow(row.id, new_uuid(), now, script.display_name, script.icon)
        rows.sources.append(source)
        rows.scripts.append(_script_row(script, row.id, source.id, now, number))
        await turns.rest()
    for item in agent.metadata:
        rows.metadata.append(_metadata_row(item, row.id))
        await turns.rest()


def _agent_row(agent: pb.Agent, resource_id: UUID, job_id: UUID, now: datetime) -> AgentRow:
    try:
        environment = environment_of(
            dict(agent.env), [(extra.name, extra.value, extra.merge_strategy) for extra in agent.extra_envs]
        )
    except ValueError as error:
        raise BadResultError(str(error)) from error
    return AgentRow(
        id=new_uuid(),
        parent_id=None,
        created_at=now,
        updated_at=now,
        resource_id=resource_id,
        job_id=job_id,
        name=agent.name,
        auth_token=_token(agent),
        auth_instance_id=agent.instance_id or None,
        api_key_scope=agent.api_key_scope or "all",
        architecture=agent.architecture,
        operating_system=agent.operating_system,
        environment_variables=environment or None,
        directory=agent.directory,
        expanded_directory="",
        version="",
        api_version="",
        subsystems=[],
        first_connected_at=None,
        last_connected_at=None,
        disconnected_at=None,
        lifecycle_state="created",
        started_at=None,
        ready_at=None,
        connection_timeout_seconds=agent.connection_timeout_seconds,
        troubleshooting_url=agent.troubleshooting_url,
        motd_file=agent.motd_file,
        display_apps=_display_apps(agent),
        display_order=int(agent.order),
        logs_length=0,
        logs_overflowed=False,
        resources_monitoring=_monitoring(agent),
        devcontainers=[],
    )


async def _add_devcontainers(rows: _Rows, agent: pb.Agent, row: AgentRow, turns: Turns) -> None:
    """Add dev containers: each with a log source, and with an agent when it has applications, scripts or variables.

    Terraform keeps its ids over builds, but these rows are new in each build, so its ids are not stored.
    """
    for item in agent.devcontainers:
        ident, source = new_uuid(), new_uuid()
        label = f"Dev Container ({item.name})"
        rows.sources.append(LogSourceRow(row.id, source, row.created_at, label, DEVCONTAINER_ICON))
        script = _script_row(pb.Script(display_name=label), row.id, source, row.created_at, len(rows.scripts))
        rows.scripts.append(replace(script, id=ident))
        sub_agent_id = ""
        if item.apps or item.scripts or item.envs:
            index = len(rows.agents)
            await _add_agent(rows, _sub_agent(agent, item), row.resource_id, row.job_id, row.created_at, turns, row)
            sub_agent_id = str(rows.agents[index].id)
        row.devcontainers.append(
            {
                "id": str(ident),
                "name": item.name,
                "workspace_folder": item.workspace_folder,
                "config_path": item.config_path,
                "subagent_id": sub_agent_id,
            }
        )
        await turns.rest()


def _sub_agent(agent: pb.Agent, item: pb.Devcontainer) -> pb.Agent:
    """Return the agent of a dev container, as far as the template describes it."""
    sub_agent = pb.Agent(
        name=item.name,
        operating_system="linux",
        architecture=agent.architecture,
        directory=item.workspace_folder,
        apps=item.apps,
        scripts=item.scripts,
        extra_envs=item.envs,
        api_key_scope=agent.api_key_scope,
        connection_timeout_seconds=agent.connection_timeout_seconds,
        troubleshooting_url=agent.troubleshooting_url,
    )
    sub_agent.display_apps.SetInParent()  # none, until the agent reports its own
    return sub_agent


def _token(agent: pb.Agent) -> UUID:
    # A plan does not know tokens yet, and agents of cloud machines have none: their rows get a token that stays secret.
    if not agent.token:
        return new_uuid()
    try:
        return UUID(agent.token)
    except ValueError as error:
        raise BadResultError(f"invalid auth token of agent {agent.name!r}: it must be a UUID") from error


def _display_apps(agent: pb.Agent) -> list[DisplayApp]:
    # This order is the API's.
    if not agent.HasField("display_apps"):
        return ["vscode", "ssh_helper", "port_forwarding_helper", "web_terminal"]
    return [name for name in _DISPLAY_APPS if getattr(agent.display_apps, name)]


def _monitoring(agent: pb.Agent) -> JsonObject:
    if not agent.HasField("resources_monitoring"):
        return {}
    monitoring = agent.resources_monitoring
    memory = {"enabled": monitoring.memory.enabled, "threshold": monitoring.memory.threshold}
    return {
        "memory": memory if monitoring.HasField("memory") else None,
        "volumes": [
            {"path": volume.path, "enabled": volume.enabled, "threshold": volume.threshold}
            for volume in monitoring.volumes
        ],
    }


def _app_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        return new_uuid()  # a plan does not know the id yet


def _app_row(app: pb.App, agent_id: UUID, now: datetime, position: int) -> AppRow:
    return new_app_row(
        app,
        ident=_app_id(app.id),
        agent_id=agent_id,
        slug=app.slug,
        sharing_level=_SHARING.get(app.sharing_level, "owner"),
        open_in=_OPEN_IN.get(app.open_in, "slim-window"),
        tooltip=app.tooltip,
        now=now,
        position=position,
    )


def new_app_row(
    app: pb.App | agent_pb2.CreateSubAgentRequest.App,
    *,
    ident: UUID,
    agent_id: UUID,
    slug: str,
    sharing_level: WorkspaceAppSharingLevel,
    open_in: WorkspaceAppOpenIn,
    tooltip: str = "",
    now: datetime,
    position: int,
) -> AppRow:
    """Return the row of an application that a template declares, or an agent for its dev container."""
    return AppRow(
        id=ident,
        created_at=now,
        agent_id=agent_id,
        slug=slug,
        display_name=app.display_name or app.slug,
        icon=app.icon,
        command=app.command,
        url=app.url,
        external=app.external,
        subdomain=app.subdomain,
        sharing_level=sharing_level,
        healthcheck_url=app.healthcheck.url,
        healthcheck_interval=app.healthcheck.interval,
        healthcheck_threshold=app.healthcheck.threshold,
        health="initializing" if app.healthcheck.url else "disabled",
        display_order=int(app.order),
        display_group=app.group,
        hidden=app.hidden,
        open_in=open_in,
        tooltip=tooltip,
        position=position,
    )


def _script_row(script: pb.Script, agent_id: UUID, source_id: UUID, now: datetime, position: int) -> ScriptRow:
    return ScriptRow(
        id=new_uuid(),
        agent_id=agent_id,
        created_at=now,
        log_source_id=source_id,
        log_path=script.log_path,
        script=script.script,
        cron=script.cron,
        run_on_start=script.run_on_start,
        run_on_stop=script.run_on_stop,
        start_blocks_login=script.start_blocks_login,
        timeout_seconds=script.timeout_seconds,
        display_name=script.display_name,
        position=position,
    )


def _metadata_row(item: pb.Agent.Metadata, agent_id: UUID) -> MetadataRow:
    return MetadataRow(
        agent_id=agent_id,
        key=item.key,
        display_name=item.display_name,
        script=item.script,
        interval_seconds=item.interval,
        timeout_seconds=item.timeout,
        display_order=int(item.order),
        value="",
        error="",
        collected_at=None,
    )


def _check_names(agents: Sequence[AgentRow]) -> None:
    seen: set[str] = set()
    for agent in agents:
        if agent.name.lower() in seen:
            raise BadResultError(f"duplicate agent name {agent.name!r}")
        seen.add(agent.name.lower())


async def _check_texts(rows: _Rows, turns: Turns) -> None:
    # Postgres cannot store a zero byte; rejected here, it fails the job instead of leaving it hung.
    parts: tuple[Sequence[DataclassInstance], ...] = (
        rows.resources,
        rows.agents,
        rows.apps,
        rows.scripts,
        rows.sources,
        rows.metadata,
    )
    for row in chain.from_iterable(parts):
        await turns.rest()
        for item in fields(row):
            if _has_zero_byte(getattr(row, item.name)):
                raise BadResultError(f"{item.name} of {type(row).__name__.removesuffix('Row')} contains a zero byte")


def _has_zero_byte(value: Json) -> bool:
    if isinstance(value, str):
        return "\x00" in value
    if isinstance(value, dict):
        return any(map(_has_zero_byte, chain.from_iterable(value.items())))
    return isinstance(value, list) and any(map(_has_zero_byte, value))
