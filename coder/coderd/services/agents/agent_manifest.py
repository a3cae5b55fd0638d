"""The manifest that an agent gets when it connects (docs/protocol/agents.md#calls), converted from rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import UUID

from coder.base.json_types import as_list, as_object, as_text
from coder.coderd.services.network.derp_map import current_map
from coder.coderd.store.agents.agent_apps import AppRow
from coder.coderd.store.agents.agent_metadata import MetadataRow
from coder.coderd.store.agents.agent_scripts import ScriptRow
from coder.coderd.store.agents.agents import CurrentAgent
from coder.domain.workspaces.workspaces import subdomain_app_name
from coder.rpc.proto import agent_pb2
from coder.tailnet import derpmap

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

_Sharing = agent_pb2.WorkspaceApp.SharingLevel
_Health = agent_pb2.WorkspaceApp.Health


def build_manifest(
    ctx: Context,
    current: CurrentAgent,
    apps: Sequence[AppRow],
    scripts: Sequence[ScriptRow],
    metadata: Sequence[MetadataRow],
    children: Collection[UUID] = (),
) -> agent_pb2.Manifest:
    agent = current.agent
    manifest = agent_pb2.Manifest(
        agent_id=agent.id.bytes,
        agent_name=agent.name,
        owner_username=current.owner_username,
        workspace_id=current.workspace_id.bytes,
        workspace_name=current.workspace_name,
        environment_variables=agent.environment_variables or {},
        directory=agent.directory,
        vs_code_port_proxy_uri=port_proxy_uri(ctx.config.wildcard_access_url, ctx.access_url, current),
        motd_path=agent.motd_file,
        disable_direct_connections=ctx.config.block_direct_connections,
        derp_force_websockets=ctx.config.derp_force_websockets,
        derp_map=derpmap.to_proto(current_map(ctx)),
        scripts=[_script(script) for script in scripts],
        apps=[_app(app, current, wildcard=bool(ctx.config.wildcard_access_url)) for app in apps],
        metadata=[_metadata(row) for row in metadata],
    )
    manifest.devcontainers.extend(_devcontainer(stored, children) for stored in agent.devcontainers)
    if agent.parent_id is not None:
        manifest.parent_id = agent.parent_id.bytes
    return manifest


def _devcontainer(stored: Mapping[str, str], children: Collection[UUID]) -> agent_pb2.WorkspaceAgentDevcontainer:
    """Return a dev container; its sub-agent's id is included only for an existing sub-agent in `children`."""
    message = agent_pb2.WorkspaceAgentDevcontainer(
        id=_uuid(stored["id"]).bytes,
        name=stored["name"],
        workspace_folder=stored["workspace_folder"],
        config_path=stored["config_path"],
    )
    if stored["subagent_id"] and (sub_agent_id := _uuid(stored["subagent_id"])) in children:
        message.subagent_id = sub_agent_id.bytes
    return message


def _uuid(text: str) -> UUID:
    """Return the UUID in a text of a template's provider; the nil UUID for any other text."""
    try:
        return UUID(text)
    except ValueError:
        return UUID(int=0)


def port_proxy_uri(wildcard: str, access_url: str, current: CurrentAgent) -> str:
    """Return the URL of this agent's ports in a browser, with `{{port}}` for the number; empty without a wildcard."""
    if not wildcard:
        return ""
    access = urlsplit(access_url)
    host = wildcard.replace(
        "*", f"{{{{port}}}}--{current.agent.name}--{current.workspace_name}--{current.owner_username}", 1
    )
    port = f":{access.port}" if access.port and ":" not in wildcard else ""
    return f"{access.scheme}://{host}{port}"


def _script(script: ScriptRow) -> agent_pb2.WorkspaceAgentScript:
    message = agent_pb2.WorkspaceAgentScript(
        id=script.id.bytes,
        log_source_id=script.log_source_id.bytes,
        log_path=script.log_path,
        script=script.script,
        cron=script.cron,
        run_on_start=script.run_on_start,
        run_on_stop=script.run_on_stop,
        start_blocks_login=script.start_blocks_login,
    )
    message.timeout.FromTimedelta(timedelta(seconds=script.timeout_seconds))
    return message


def _app(app: AppRow, current: CurrentAgent, *, wildcard: bool) -> agent_pb2.WorkspaceApp:
    name = ""
    if app.subdomain and wildcard:
        name = subdomain_app_name(app.slug, current.workspace_name, current.owner_username)
    message = agent_pb2.WorkspaceApp(
        id=app.id.bytes,
        url=app.url,
        external=app.external,
        slug=app.slug,
        display_name=app.display_name,
        command=app.command,
        icon=app.icon,
        subdomain=app.subdomain,
        subdomain_name=name,
        sharing_level=_Sharing.Value(app.sharing_level.upper()),
        health=_Health.Value(app.health.upper()),
        hidden=app.hidden,
    )
    message.healthcheck.url = app.healthcheck_url
    message.healthcheck.threshold = app.healthcheck_threshold
    message.healthcheck.interval.FromTimedelta(timedelta(seconds=app.healthcheck_interval))
    return message


def _metadata(row: MetadataRow) -> agent_pb2.WorkspaceAgentMetadata.Description:
    message = agent_pb2.WorkspaceAgentMetadata.Description(
        display_name=row.display_name, key=row.key, script=row.script
    )
    # The protocol's quirk: the field of nanoseconds carries seconds.
    message.interval.FromNanoseconds(row.interval_seconds)
    message.timeout.FromNanoseconds(row.timeout_seconds)
    return message


def monitoring_configuration(
    current: CurrentAgent,
) -> agent_pb2.GetResourcesMonitoringConfigurationResponse:
    """Return the memory and volumes to monitor; the window is fixed (docs/protocol/agents.md#limits)."""
    kind = agent_pb2.GetResourcesMonitoringConfigurationResponse
    monitoring = current.agent.resources_monitoring or {}
    message = kind(config=kind.Config(num_datapoints=20, collection_interval_seconds=10))
    memory = as_object(monitoring.get("memory"))
    if memory:
        message.memory.enabled = bool(memory.get("enabled"))
    for volume in map(as_object, as_list(monitoring.get("volumes"))):
        message.volumes.add(enabled=bool(volume.get("enabled")), path=as_text(volume.get("path")))
    return message
