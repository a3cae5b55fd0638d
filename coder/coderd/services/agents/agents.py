"""Agents: who they are (by token), reading them, and what they do over plain HTTP beside their RPC.

The agent RPC itself is `agent_rpc.py`; following logs and metadata is `services/workspaces/agent_streams.py`; reaching
into an agent over the mesh is `agent_http.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from coder.api.agents.agent_streams import WorkspaceAgentLog
from coder.api.agents.agents import WorkspaceAgent, WorkspaceAgentLogSource
from coder.api.base.refusals import Forbidden, Invalid, NotFound, TooLarge, Unauthenticated
from coder.api.login.external_auth import AgentGitSSHKey
from coder.base.ids import new_uuid
from coder.coderd.services.access import owner_identity
from coder.coderd.services.access.authorization import require
from coder.coderd.services.access.workspace_access import agent_resource
from coder.coderd.services.agents import agent_tokens
from coder.coderd.services.agents.agent_view import AgentParts, present_agent, view_context
from coder.coderd.services.notifications import task_notifications
from coder.coderd.services.notifications.notifications import NotificationSite, site_of
from coder.coderd.services.people import git_ssh_keys
from coder.coderd.store.agents import agent_apps as app_store
from coder.coderd.store.agents import agent_logs as log_store
from coder.coderd.store.agents import agent_scripts as script_store
from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.agents.agent_apps import AppStatusRow
from coder.coderd.store.agents.agent_logs import AgentLogRow, NewAgentLog
from coder.coderd.store.agents.agents import AgentPlace as AgentPlace
from coder.coderd.store.agents.agents import LogSourceRow
from coder.coderd.store.people import git_ssh_keys as ssh_key_store
from coder.coderd.store.workspaces.change_feed import notify_change
from coder.domain.access.policy import Subject
from coder.domain.agents.agents import MAX_LOG_SOURCES, MAX_LOGS_LENGTH, MAX_SOURCE_TEXT

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.domain.access.credentials import Credentials

UNKNOWN = "Agent doesn't exist with that id, or you do not have access to it."
_NOT_AUTHORIZED = (
    "The agent cannot authenticate until the workspace provision job has been completed. If the job is no longer "
    "running, this agent is invalid."
)
LOG_LEVELS = ("trace", "debug", "info", "warn", "error")
_APP_STATES = ("working", "idle", "complete", "failure")
_MAX_STATUS_MESSAGE = 160
REPLACEMENT = "❌"
"""Stands for what Postgres cannot store (NUL) and for broken UTF-8, as upstream's."""


async def authenticate_agent(ctx: Context, credentials: Credentials) -> AgentPlace:
    """The current agent behind a token. Raises Unauthenticated: an older build's token is as good as none."""
    if not credentials.token:
        raise Unauthenticated('Cookie "coder_session_token" must be provided.')
    try:
        token = UUID(credentials.token)
    except ValueError as error:
        detail = f"An agent token must be a valid UUIDv4. (len {len(credentials.token)})"
        raise Unauthenticated("Workspace agent token invalid.", detail) from error
    place = await ctx.db.read(find_by_token, token)
    if place is None:
        raise Unauthenticated("Workspace agent not authorized.", _NOT_AUTHORIZED)
    if place.rotated_token is not None:
        await agent_tokens.note_use(ctx, place, place.rotated_token, credentials.remote_ip)
    return place


async def find_by_token(tx: Tx, token: UUID) -> AgentPlace | None:
    """The current agent behind a token; None for one that is good no longer. The one rule of the door and of every
    look after it."""
    place = await agent_store.get_agent_by_token(tx, token)
    return None if place is None or place.owner_status == "suspended" else place


async def find_again(tx: Tx, place: AgentPlace) -> AgentPlace | None:
    """What a link was let in for, as it is now; None when it would not be let in for that again."""
    current = await find_by_token(tx, place.rotated_token or place.agent.auth_token)
    return current if current is not None and current.build_id == place.build_id else None


async def require_again(ctx: Context, place: AgentPlace) -> None:
    """For who waits long on what it was let in for. Raises Unauthenticated."""
    if await ctx.db.read(find_again, place) is None:
        raise Unauthenticated("Workspace agent not authorized.", _NOT_AUTHORIZED)


async def load_agent(ctx: Context, subject: Subject, agent_id: UUID, action: str = "read") -> AgentPlace:
    """A current agent whose workspace `subject` may read (and do `action` to).

    Raises NotFound (also for agents of older builds), Forbidden.
    """
    place = await ctx.db.read(agent_store.get_agent_place, agent_id)
    if place is None:
        raise NotFound(UNKNOWN)
    try:
        require(subject, "read", agent_resource(place))
    except NotFound as error:
        raise NotFound(UNKNOWN) from error
    if action != "read":
        require(subject, action, agent_resource(place))
    return place


async def get_agent(ctx: Context, subject: Subject, agent_id: UUID) -> WorkspaceAgent:
    place = await load_agent(ctx, subject, agent_id)
    parts = await ctx.db.read(load_parts, agent_id)
    if parts is None:
        raise NotFound(UNKNOWN)
    return present_agent(parts, view_context(ctx, place.workspace_name, place.owner_username))


async def load_parts(tx: Tx, agent_id: UUID) -> AgentParts | None:
    """One agent with everything shown inside it."""
    detail = await agent_store.get_agent_detail(tx, agent_id)
    if detail is None:
        return None
    apps = await app_store.list_apps(tx, [agent_id])
    scripts = await script_store.list_scripts(tx, [agent_id])
    return AgentParts(detail.agent, detail.log_sources, apps, scripts)


async def list_logs(
    ctx: Context, subject: Subject, agent_id: UUID, *, after: int = 0, before: int = 0
) -> list[WorkspaceAgentLog]:
    await load_agent(ctx, subject, agent_id)
    rows = await ctx.db.read(log_store.list_logs, agent_id, after=after, before=before)
    return present_logs(rows)


def present_logs(rows: Sequence[AgentLogRow]) -> list[WorkspaceAgentLog]:
    return [
        WorkspaceAgentLog(
            id=row.id,
            created_at=row.created_at,
            output=row.output,
            level=cast("Any", row.level),
            source_id=row.log_source_id,
        )
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class AgentLogLine:
    """One line as an agent sends it; an empty level is `info`."""

    created_at: datetime
    output: str
    level: str = ""


async def append_logs(ctx: Context, place: AgentPlace, source_id: UUID, lines: Sequence[AgentLogLine]) -> None:
    """Stores lines and wakes followers. Raises Invalid, TooLarge (the agent's log is full, for ever)."""
    if not lines:
        raise Invalid("No logs provided.")
    for line in lines:
        if line.level and line.level not in LOG_LEVELS:
            raise Invalid("Invalid log level provided.", f'invalid log level: "{line.level}"')
    if not await ctx.db.run(store_logs, place, source_id, lines):
        raise TooLarge("Logs limit exceeded", f"An agent may write {MAX_LOGS_LENGTH} bytes of logs.")


async def store_logs(tx: Tx, place: AgentPlace, source_id: UUID, lines: Sequence[AgentLogLine]) -> bool:
    """False: the log is full. Watchers of the workspace hear of the first line and of the overflow only."""
    rows = [
        NewAgentLog(line.created_at, line.output.replace("\x00", REPLACEMENT), line.level or "info") for line in lines
    ]
    stored = await log_store.append_logs(tx, place.agent.id, source_id, rows, max_length=MAX_LOGS_LENGTH)
    news = {"owner_id": place.owner_id, "workspace_id": place.workspace_id, "agent_id": place.agent.id}
    await notify_change(tx, "logs", **news)
    first = stored and place.agent.logs_length == 0
    if first or (not stored and not place.agent.logs_overflowed):
        await notify_change(tx, "startup", **news)
    return stored


async def add_log_source(
    ctx: Context, place: AgentPlace, source_id: UUID, display_name: str, icon: str
) -> WorkspaceAgentLogSource:
    """Makes a source of logs; giving it again changes nothing. Raises Invalid (a long text, too many)."""
    for name, text in (("display_name", display_name), ("icon", icon)):
        if len(text) > MAX_SOURCE_TEXT:
            said = f"May have {MAX_SOURCE_TEXT} characters."
            raise Invalid("Invalid log source.", said, [(name, said)])
    texts = (text.replace("\x00", REPLACEMENT) for text in (display_name, icon))
    row = LogSourceRow(place.agent.id, source_id, ctx.clock.now(), *texts)
    await ctx.db.run(_add_log_source, row)
    return WorkspaceAgentLogSource(
        workspace_agent_id=row.agent_id,
        id=row.id,
        created_at=row.created_at,
        display_name=row.display_name,
        icon=row.icon,
    )


async def _add_log_source(tx: Tx, row: LogSourceRow) -> None:
    before = await agent_store.count_log_sources(tx, row.agent_id)
    await agent_store.add_log_source(tx, row)
    # A template may have given it more; those it may go on naming.
    if await agent_store.count_log_sources(tx, row.agent_id) > max(before, MAX_LOG_SOURCES):
        raise Invalid("Too many log sources.", f"An agent may have {MAX_LOG_SOURCES}.")


async def gets_user_data(ctx: Context, place: AgentPlace) -> bool:
    """Return whether this agent may have its owner's keys, tokens and secrets: the template allows it
    (`api_key_scope`), and the owner still is an active member of the workspace's organization."""
    if place.agent.api_key_scope == "no_user_data":
        return False
    return await ctx.db.read(owner_identity.is_delivered, place.owner_id, place.organization_id)


async def require_user_data(ctx: Context, place: AgentPlace) -> None:
    """Raises Forbidden for an agent that gets nothing of its owner's."""
    if not await gets_user_data(ctx, place):
        raise Forbidden("This agent may not read its owner's data.")


async def require_user_data_again(ctx: Context, place: AgentPlace) -> None:
    """The same for a call that waits long. Raises Unauthenticated, Forbidden."""
    await require_again(ctx, place)
    await require_user_data(ctx, place)


async def get_git_ssh_key(ctx: Context, place: AgentPlace) -> AgentGitSSHKey:
    """The owner's key pair, private half included: it is used inside their own workspace."""
    await require_user_data(ctx, place)
    key = await ctx.db.read(ssh_key_store.get_git_ssh_key, place.owner_id)
    if key is None:
        raise NotFound("The workspace's owner has no SSH key.")
    return AgentGitSSHKey(public_key=key.public_key, private_key=git_ssh_keys.opened(ctx, key.private_key))


@dataclass(frozen=True, slots=True)
class AppReport:
    """What an agent says an app is doing."""

    app_slug: str
    state: str
    message: str = ""
    uri: str = ""


async def report_app_status(ctx: Context, place: AgentPlace, report: AppReport) -> None:
    """Raises Invalid (message too long, unknown app, unknown state)."""
    if len(report.message) > _MAX_STATUS_MESSAGE:
        said = f"Message must be less than {_MAX_STATUS_MESSAGE} characters."
        raise Invalid("Message is too long.", said, [("message", said)])
    if report.state not in _APP_STATES:
        raise Invalid("Failed to parse request.", f"Invalid state: {report.state}")
    await ctx.db.run(_report_app_status, place, report, site_of(ctx), ctx.clock.now())


async def _report_app_status(
    tx: Tx, place: AgentPlace, report: AppReport, site: NotificationSite, now: datetime
) -> None:
    apps = await app_store.list_apps(tx, [place.agent.id])
    found = next((detail for detail in apps if detail.app.slug == report.app_slug), None)
    if found is None:
        raise Invalid("Failed to get workspace app.", f'No app found with slug "{report.app_slug}"')
    row = AppStatusRow(
        id=new_uuid(),
        created_at=now,
        workspace_id=place.workspace_id,
        agent_id=place.agent.id,
        app_id=found.app.id,
        state=report.state,
        message=report.message.replace("\x00", REPLACEMENT),
        uri=report.uri.replace("\x00", ""),
    )
    await app_store.insert_app_status(tx, row)
    await task_notifications.app_said(tx, site, place, row, found.statuses[0].state if found.statuses else None, now)
    await notify_change(
        tx, "app_status", owner_id=place.owner_id, workspace_id=place.workspace_id, agent_id=place.agent.id
    )


def external_auth_unknown(match: str) -> NotFound:
    """There is no provider for that URL or id."""
    return NotFound(
        f'No matching external auth provider found in Coder for the url "{match}".',
        "External auth provider not found.",
    )


async def find_agent_place(ctx: Context, agent_id: UUID) -> AgentPlace | None:
    """Where an agent of a newest build stands, whoever asks; None for every other id."""
    return await ctx.db.read(agent_store.get_agent_place, agent_id)
