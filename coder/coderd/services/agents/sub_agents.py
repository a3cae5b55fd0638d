"""Agents that an agent makes for its dev containers: made, listed, removed (docs/protocol/agents.md#sub-agents).

They belong to their parent's resource and build, and end with it; a rotation of its token gives them others. Refusals
are RpcErrors with upstream's words where they are known; what is wrong with an application alone is told beside the
answer.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.base.ids import new_uuid
from coder.coderd.services.agents.agent_reports import uuid_untrusted
from coder.coderd.services.agents.agents import find_again
from coder.coderd.services.audit import audit
from coder.coderd.services.audit.audit import AuditEvent, Origin
from coder.coderd.services.provisioning.resources import new_app_row
from coder.coderd.store.access.keys import notify_shared_less
from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.agents.agent_apps import AppRow
from coder.coderd.store.agents.agents import AgentPlace, AgentRow
from coder.coderd.store.audit import audit as audit_store
from coder.coderd.store.audit.audit import AuditSnapshot
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.templates import templates as template_store
from coder.coderd.store.workspaces import port_shares as share_store
from coder.coderd.store.workspaces.change_feed import notify_change
from coder.domain.agents import sub_agents as laws
from coder.domain.apps.external_addresses import explain_made_address
from coder.domain.foundation.share_levels import shared_at_most
from coder.rpc.errors import RpcError
from coder.rpc.proto import agent_pb2

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

Request = agent_pb2.CreateSubAgentRequest
_NOT_ITS_OWN = "subagent does not belong to this parent agent"
_NO_RIGHT = "the agent's token is good no longer"
_TEXTS = ("directory", "architecture", "operating_system")
# Numbers of newer releases are in none of these.
_DISPLAY_APPS: dict[int, str] = {number: name.lower() for name, number in Request.DisplayApp.items()}
_LEVELS: dict[int, str] = {number: name.lower() for name, number in Request.App.SharingLevel.items()}
_OPEN_IN: dict[int, str] = {number: name.lower().replace("_", "-") for name, number in Request.App.OpenIn.items()}
_APP_TEXTS = ("command", "display_name", "group", "icon", "url")


class _AppError(Exception):
    """Why one application is not made: a field, or "", and a sentence."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


async def create_sub_agent(ctx: Context, place: AgentPlace, request: Request) -> agent_pb2.CreateSubAgentResponse:
    """Raises RpcError."""
    if place.agent.parent_id is not None:
        raise RpcError(0, "an agent of a dev container cannot have agents of its own")
    for name in _TEXTS:
        if problem := _explain_text(getattr(request, name)):
            raise RpcError(0, f"{name} {problem}")
    if len(request.display_apps) > laws.MAX_APPS or len(request.apps) > laws.MAX_APPS:
        raise RpcError(0, f"an agent may have {laws.MAX_APPS} applications")
    display_apps = [_display_app(value) for value in request.display_apps]
    if request.HasField("id"):
        row = await ctx.db.run(_change, place, uuid_untrusted(request.id), request.directory, display_apps)
        return agent_pb2.CreateSubAgentResponse(agent=_message(row))
    if problem := laws.explain_name(request.name):
        raise RpcError(0, problem)
    return await ctx.db.run(_create, place, request, display_apps, ctx.clock.now())


async def list_sub_agents(ctx: Context, place: AgentPlace) -> agent_pb2.ListSubAgentsResponse:
    rows = await ctx.db.read(_list, place)
    return agent_pb2.ListSubAgentsResponse(agents=[_message(row) for row in rows])


async def delete_sub_agent(ctx: Context, place: AgentPlace, sub_agent_id: UUID) -> None:
    """Its token is good no longer, and a link that has it ends. Raises RpcError for any but a child."""
    await ctx.db.run(_delete, place, sub_agent_id, ctx.clock.now())


async def _require_right(tx: Tx, place: AgentPlace) -> None:
    """A rotation of the parent's token gives its children others, for whoever has the new one. Raises RpcError."""
    if await find_again(tx, place) is None:
        raise RpcError(0, _NO_RIGHT)


async def _list(tx: Tx, place: AgentPlace) -> list[AgentRow]:
    rows = await agent_store.list_sub_agents(tx, place.agent.id)
    await _require_right(tx, place)  # afterwards: what a rotation changes meanwhile is not told to the older token
    return rows


async def _create(
    tx: Tx, place: AgentPlace, request: Request, display_apps: list[str], now: datetime
) -> agent_pb2.CreateSubAgentResponse:
    parent = place.agent
    await _hold(tx, place)
    others = [detail.agent for detail in await agent_store.list_agents_of_jobs(tx, [parent.job_id])]
    if request.name.lower() in {other.name.lower() for other in others}:
        raise RpcError(0, f'workspace agent name "{request.name}" already exists in this workspace')
    if sum(other.parent_id == parent.id for other in others) >= laws.MAX_SUB_AGENTS:
        raise RpcError(0, f"an agent may have {laws.MAX_SUB_AGENTS} sub-agents")
    made = await agent_store.count_sub_agents_made(tx, parent.job_id)
    if problem := laws.explain_total(*made, len(request.apps)):
        raise RpcError(0, problem)
    template = await template_store.get_template(tx, place.template_id)
    row = _row(parent, request, display_apps, now)
    apps, faults = _judged(request, row, template.max_port_share_level if template is not None else "owner", now)
    before = await audit_store.take_snapshot(tx, "workspace", place.workspace_id)
    await agent_store.insert_agents(tx, [row], apps=apps)
    # Of one that had the name in an earlier build: they were given for that one's ports.
    await _end_shares(tx, place, row)
    await _tell(tx, place, row, "an agent made it for a dev container", before, now)
    return agent_pb2.CreateSubAgentResponse(agent=_message(row), app_creation_errors=faults)


async def _hold(tx: Tx, place: AgentPlace) -> None:
    """Of two that are made side by side the second sees the first, and either what became of its parent's token. Raises
    RpcError."""
    await job_store.get_job(tx, place.agent.job_id, lock=True)
    await _require_right(tx, place)


def _row(parent: AgentRow, request: Request, display_apps: list[str], now: datetime) -> AgentRow:
    """What is not asked for is the parent's, or nothing."""
    return replace(
        parent,
        id=new_uuid(),
        parent_id=parent.id,
        created_at=now,
        updated_at=now,
        name=request.name,
        auth_token=new_uuid(),
        auth_instance_id=None,
        architecture=request.architecture,
        operating_system=request.operating_system,
        environment_variables=None,
        directory=request.directory,
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
        motd_file="",
        display_apps=display_apps,
        display_order=0,
        logs_length=0,
        logs_overflowed=False,
        resources_monitoring={},
        devcontainers=[],
    )


def _judged(
    request: Request, agent: AgentRow, most: str, now: datetime
) -> tuple[list[AppRow], list[agent_pb2.CreateSubAgentResponse.AppCreationError]]:
    """The applications that are made, and what is wrong with the others."""
    rows: list[AppRow] = []
    faults = []
    taken: set[str] = set()
    for index, app in enumerate(request.apps):
        try:
            rows.append(_app_row(app, agent, index, most, now, taken))
            taken.add(app.slug)
        except _AppError as error:
            fault = agent_pb2.CreateSubAgentResponse.AppCreationError(index=index, error=str(error))
            if error.field:
                fault.field = error.field
            faults.append(fault)
    return rows, faults


def _app_row(app: Request.App, agent: AgentRow, index: int, most: str, now: datetime, taken: set[str]) -> AppRow:
    if problem := laws.explain_slug(app.slug):
        raise _AppError("slug", problem)
    if app.slug in taken:
        raise _AppError("slug", f'duplicate app slug "{app.slug}"')
    for name in _APP_TEXTS:
        if problem := _explain_text(getattr(app, name)):
            raise _AppError(name, f"{name} {problem}")
    if app.external and (problem := explain_made_address(app.url)):
        raise _AppError("url", f"url {problem}")
    if problem := _explain_text(app.healthcheck.url):
        raise _AppError("healthcheck", f"its URL {problem}")
    if (level := _LEVELS.get(app.share)) is None:
        raise _AppError("share", f"unknown sharing level {app.share}")
    if (opened := _OPEN_IN.get(app.open_in)) is None:
        raise _AppError("open_in", f"unknown way to open {app.open_in}")
    return new_app_row(
        app,
        ident=new_uuid(),
        agent_id=agent.id,
        slug=laws.stored_slug(agent.name, app.slug),
        sharing_level=shared_at_most(level, most),
        open_in=opened,
        now=now,
        position=index,
    )


def _display_app(value: int) -> str:
    if (name := _DISPLAY_APPS.get(value)) is None:
        raise RpcError(0, f"unknown display app {value}")
    return name


def _explain_text(text: str) -> str:
    if len(text) > laws.MAX_TEXT:
        return f"may have {laws.MAX_TEXT} characters"
    # Postgres cannot store it.
    return "contains a zero byte" if "\x00" in text else ""


async def _change(tx: Tx, place: AgentPlace, ident: UUID, directory: str, display_apps: list[str]) -> AgentRow:
    """One that the template has made: only where it is and what it shows is the container's to say."""
    await _hold(tx, place)
    row = await _child(tx, place, ident)
    changed = replace(row, display_apps=display_apps, directory=directory or row.directory)
    await agent_store.update_agent(tx, ident, display_apps=changed.display_apps, directory=changed.directory)
    await notify_change(tx, "startup", owner_id=place.owner_id, workspace_id=place.workspace_id, agent_id=ident)
    return changed


async def _delete(tx: Tx, place: AgentPlace, ident: UUID, now: datetime) -> None:
    await _hold(tx, place)
    row = await _child(tx, place, ident)
    before = await audit_store.take_snapshot(tx, "workspace", place.workspace_id)
    await agent_store.delete_agent(tx, ident)
    await _end_shares(tx, place, row)
    await _tell(tx, place, row, "the agent that made it removed it", before, now)


async def _end_shares(tx: Tx, place: AgentPlace, row: AgentRow) -> None:
    """Shares go by an agent's name, and the next of that name is another container."""
    if await share_store.delete_port_shares_of(tx, place.workspace_id, row.name):
        await notify_shared_less(tx)


async def _child(tx: Tx, place: AgentPlace, ident: UUID) -> AgentRow:
    rows = await agent_store.list_sub_agents(tx, place.agent.id)
    found = next((row for row in rows if row.id == ident), None)
    if found is None:
        raise RpcError(0, _NOT_ITS_OWN)
    return found


async def _tell(
    tx: Tx, place: AgentPlace, row: AgentRow, reason: str, before: AuditSnapshot | None, now: datetime
) -> None:
    """Watchers and the audit log: the workspace has an agent more, or less, and maybe shared ports less."""
    await notify_change(tx, "state", owner_id=place.owner_id, workspace_id=place.workspace_id)
    after = await audit_store.take_snapshot(tx, "workspace", place.workspace_id)
    said = {"agent_name": row.name, "parent_agent_name": place.agent.name, "reason": reason}
    await audit.write(tx, AuditEvent("workspace", "write", Origin(), 200, before, after, additional=said), now)


def _message(row: AgentRow) -> agent_pb2.SubAgent:
    return agent_pb2.SubAgent(name=row.name, id=row.id.bytes, auth_token=row.auth_token.bytes)
