"""Agents as JSON, converted from rows without the database."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from msgspec import UNSET

from coder.api.agents.agents import (
    Healthcheck,
    WorkspaceAgent,
    WorkspaceAgentHealth,
    WorkspaceAgentLogSource,
    WorkspaceAgentScript,
    WorkspaceApp,
    WorkspaceAppStatus,
)
from coder.base.json_types import Json
from coder.coderd.services.foundation.documentation import troubleshooting_url
from coder.coderd.store.agents.agent_apps import AppDetail, AppRow, AppStatusRow
from coder.coderd.store.agents.agent_scripts import ScriptRow
from coder.coderd.store.agents.agents import AgentRow, LogSourceRow
from coder.domain.access.build_tokens import HIDDEN, mask_tokens
from coder.domain.agents.agents import INACTIVE_DISCONNECT_TIMEOUT, AgentHealth, AgentStatus, agent_health, agent_status
from coder.domain.workspaces.workspaces import subdomain_app_name

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.services.network.coordinator import RegionLatency


@dataclass(slots=True)
class AgentParts:
    """An agent with the parts that its JSON includes."""

    agent: AgentRow
    log_sources: list[LogSourceRow] = field(default_factory=list)
    apps: list[AppDetail] = field(default_factory=list)
    scripts: list[ScriptRow] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class AgentViewContext:
    """Inputs of an agent's JSON in addition to its rows."""

    now: datetime
    reveals: bool
    "Whether the reader may see values inside the workspace; the keys of environment variables are always shown."
    troubleshooting_url: str = ""
    "URL for agents whose template has none."
    workspace_name: str = ""
    owner_username: str = ""
    inactive_timeout: timedelta = INACTIVE_DISCONNECT_TIMEOUT
    latency: Callable[[UUID], Mapping[str, RegionLatency] | None] | None = None
    "`{latency_ms, preferred}` by region name for an agent id, as the agent reported to the coordinator."


def view_context(ctx: Context, workspace_name: str, owner_username: str, *, reveals: bool) -> AgentViewContext:
    """Return the present context for agents of a workspace."""
    return AgentViewContext(
        ctx.clock.now(),
        reveals,
        troubleshooting_url(ctx),
        workspace_name=workspace_name,
        owner_username=owner_username,
        latency=ctx.services.relay.coordinator.latency_of,
    )


def planned_context(ctx: Context, *, reveals: bool) -> AgentViewContext:
    """Return the context for agents that an import or dry run planned: no workspace has them."""
    return AgentViewContext(now=ctx.clock.now(), reveals=reveals, troubleshooting_url=troubleshooting_url(ctx))


def status_of(agent: AgentRow, now: datetime, inactive_timeout: timedelta = INACTIVE_DISCONNECT_TIMEOUT) -> AgentStatus:
    """Return the agent's connection status at `now`."""
    return agent_status(
        now,
        created_at=agent.created_at,
        first_connected_at=agent.first_connected_at,
        last_connected_at=agent.last_connected_at,
        disconnected_at=agent.disconnected_at,
        connection_timeout_seconds=agent.connection_timeout_seconds,
        inactive_timeout=inactive_timeout,
    )


def health_of(agent: AgentRow, now: datetime, inactive_timeout: timedelta = INACTIVE_DISCONNECT_TIMEOUT) -> AgentHealth:
    return agent_health(status_of(agent, now, inactive_timeout), agent.lifecycle_state)


def present_agent(parts: AgentParts, context: AgentViewContext) -> WorkspaceAgent:
    """Return an agent as JSON."""
    agent = parts.agent
    status = status_of(agent, context.now, context.inactive_timeout)
    health = agent_health(status, agent.lifecycle_state)
    apps = sorted(parts.apps, key=lambda d: (d.app.display_order, d.app.display_name, d.app.slug))
    blocking = any(script.start_blocks_login for script in parts.scripts)
    return WorkspaceAgent(
        id=agent.id,
        parent_id=agent.parent_id,
        created_at=agent.created_at,
        updated_at=agent.updated_at,
        first_connected_at=agent.first_connected_at or UNSET,
        last_connected_at=agent.last_connected_at or UNSET,
        disconnected_at=_present_disconnect(agent, status) or UNSET,
        started_at=agent.started_at or UNSET,
        ready_at=agent.ready_at or UNSET,
        status=status,
        lifecycle_state=agent.lifecycle_state,
        name=agent.name,
        resource_id=agent.resource_id,
        instance_id=agent.auth_instance_id or UNSET,
        architecture=agent.architecture,
        environment_variables=_present_environment(agent, context),
        operating_system=agent.operating_system,
        logs_length=agent.logs_length,
        logs_overflowed=agent.logs_overflowed,
        directory=agent.directory or UNSET,
        expanded_directory=agent.expanded_directory or UNSET,
        version=agent.version,
        api_version=agent.api_version,
        apps=[present_app(detail, context) for detail in apps],
        latency=_latency(agent, context) or UNSET,
        connection_timeout_seconds=agent.connection_timeout_seconds,
        troubleshooting_url=agent.troubleshooting_url or context.troubleshooting_url,
        subsystems=sorted(agent.subsystems),
        health=WorkspaceAgentHealth(healthy=health.healthy, reason=health.reason or UNSET),
        display_apps=agent.display_apps,
        log_sources=[_present_source(source) for source in parts.log_sources],
        scripts=[_present_script(script, context) for script in parts.scripts],
        startup_script_behavior="blocking" if blocking else "non-blocking",
    )


def _present_disconnect(agent: AgentRow, status: str) -> datetime | None:
    # A time from before the last connection is outdated.
    return agent.disconnected_at if status == "disconnected" else None


def present_app(detail: AppDetail, context: AgentViewContext) -> WorkspaceApp:
    app = detail.app
    name = subdomain_app_name(app.slug, context.workspace_name, context.owner_username)
    return WorkspaceApp(
        id=app.id,
        url=_text(app.url, context) or UNSET,
        external=app.external,
        slug=app.slug,
        display_name=app.display_name or UNSET,
        command=_text(app.command, context) or UNSET,
        icon=app.icon or UNSET,
        subdomain=app.subdomain,
        subdomain_name=name if app.subdomain and context.workspace_name else UNSET,
        sharing_level=app.sharing_level,
        healthcheck=_present_check(app, context),
        health=app.health,
        group=app.display_group or UNSET,
        hidden=app.hidden,
        open_in=app.open_in,
        tooltip=app.tooltip or UNSET,
        statuses=[present_status(status) for status in detail.statuses],
    )


def _present_check(app: AppRow, context: AgentViewContext) -> Healthcheck:
    url = _text(app.healthcheck_url, context)
    return Healthcheck(url=url, interval=app.healthcheck_interval, threshold=app.healthcheck_threshold)


def _present_environment(agent: AgentRow, context: AgentViewContext) -> dict[str, str] | None:
    variables = agent.environment_variables
    return variables if context.reveals or not variables else dict.fromkeys(variables, HIDDEN)


def _text(text: str, context: AgentViewContext) -> str:
    """Return a text of the template, which may contain the owner's session token."""
    return text if context.reveals else mask_tokens(text)


def present_status(row: AppStatusRow) -> WorkspaceAppStatus:
    """Return a status as JSON; upstream deprecated `icon` and `needs_user_attention`, which are always empty."""
    return WorkspaceAppStatus(
        id=row.id,
        created_at=row.created_at,
        workspace_id=row.workspace_id,
        agent_id=row.agent_id,
        app_id=row.app_id,
        state=row.state,
        message=row.message,
        uri=row.uri,
        icon="",
        needs_user_attention=False,
    )


def _present_source(row: LogSourceRow) -> WorkspaceAgentLogSource:
    return WorkspaceAgentLogSource(
        workspace_agent_id=row.agent_id,
        id=row.id,
        created_at=row.created_at,
        display_name=row.display_name,
        icon=row.icon,
    )


def _present_script(row: ScriptRow, context: AgentViewContext) -> WorkspaceAgentScript:
    return WorkspaceAgentScript(
        id=row.id,
        log_source_id=row.log_source_id,
        log_path=row.log_path,
        script=_text(row.script, context),
        cron=row.cron,
        run_on_start=row.run_on_start,
        run_on_stop=row.run_on_stop,
        start_blocks_login=row.start_blocks_login,
        timeout=row.timeout_seconds * 1_000_000_000,
        display_name=row.display_name,
        exit_code=row.exit_code if row.exit_code is not None else UNSET,
        status=row.status or UNSET,
    )


def _latency(agent: AgentRow, context: AgentViewContext) -> dict[str, Json]:
    measured = (context.latency(agent.id) if context.latency else None) or {}
    return {name: {"preferred": region.preferred, "latency_ms": region.latency_ms} for name, region in measured.items()}
