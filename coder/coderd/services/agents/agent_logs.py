"""Logs of agents: read by users, written by agents, with their sources.

Following logs is `services/workspaces/agent_streams.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.agents.agent_streams import WorkspaceAgentLog
from coder.api.agents.agents import WorkspaceAgentLogSource
from coder.api.base.refusals import Invalid, TooLarge
from coder.coderd.services.access.token_masking import mask_build_tokens
from coder.coderd.services.agents.agent_access import load_agent
from coder.coderd.store.agents import agent_logs as log_store
from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.agents import system_agents
from coder.coderd.store.agents.agent_logs import AgentLogRow, LogAppend, NewAgentLog
from coder.coderd.store.agents.agents import CurrentAgent, LogSourceRow
from coder.coderd.store.workspaces.change_feed import notify_agents
from coder.domain.access.policy import Subject
from coder.domain.agents.agents import MAX_LOG_SOURCES, MAX_LOGS_LENGTH, MAX_SOURCE_TEXT

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

LOG_LEVELS = ("trace", "debug", "info", "warn", "error")
REPLACEMENT = "❌"
"""Replacement of NUL, which Postgres cannot store, and of invalid UTF-8, as upstream."""


async def list_logs(
    ctx: Context, subject: Subject, agent_id: UUID, *, after: int = 0, before: int = 0
) -> list[WorkspaceAgentLog]:
    await load_agent(ctx, subject, agent_id)
    rows = await ctx.db.read(log_store.list_logs, agent_id, after=after, before=before)
    return present_logs(rows)


async def list_logs_as_text(ctx: Context, subject: Subject, agent_id: UUID, *, after: int = 0, before: int = 0) -> str:
    """Return the same as text, with the names of the agent and of each line's source."""
    current = await load_agent(ctx, subject, agent_id)
    logs = present_logs(await ctx.db.read(log_store.list_logs, current.agent.id, after=after, before=before))
    detail = await ctx.db.read(system_agents.get_agent_detail, current.agent.id)
    names = {source.id: source.display_name for source in detail.log_sources} if detail else {}
    return "".join(f"{log.text(current.agent.name, names.get(log.source_id, ''))}\n" for log in logs)


def present_logs(rows: Sequence[AgentLogRow]) -> list[WorkspaceAgentLog]:
    return [
        WorkspaceAgentLog(
            id=row.id,
            created_at=row.created_at,
            output=row.output,
            level=row.level,
            source_id=row.log_source_id,
        )
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class AgentLogLine:
    """A line as an agent sends it; an empty level is `info`."""

    created_at: datetime
    output: str
    level: str = ""


async def append_logs(ctx: Context, current: CurrentAgent, source_id: UUID, lines: Sequence[AgentLogLine]) -> None:
    """Store lines and notify followers. Raises Invalid, TooLarge (the agent's log is full, permanently)."""
    if not lines:
        raise Invalid("No logs provided.")
    for line in lines:
        if line.level and line.level not in LOG_LEVELS:
            raise Invalid("Invalid log level provided.", f'invalid log level: "{line.level}"')
    if not await ctx.db.run(store_logs, current, source_id, lines):
        raise TooLarge("Logs limit exceeded", f"An agent may write {MAX_LOGS_LENGTH} bytes of logs.")


@dataclass(frozen=True, slots=True)
class LogReport:
    """Lines of an agent, and a source to create with them."""

    known: CurrentAgent
    source_id: UUID
    lines: Sequence[AgentLogLine]
    new_source: LogSourceRow | None = None


async def store_logs(tx: Tx, current: CurrentAgent, source_id: UUID, lines: Sequence[AgentLogLine]) -> bool:
    """Store lines without tokens of builds; return False when the log is full."""
    return (await store_all_logs(tx, [LogReport(current, source_id, lines)]))[0]


async def store_all_logs(tx: Tx, reports: Sequence[LogReport]) -> list[bool]:
    """Store reports of many agents, as `store_logs` does, together.

    Watchers of the workspace are notified of the first line and of the overflow only.
    """
    for report in reports:
        if report.new_source is not None:
            await agent_store.add_log_source(tx, report.new_source)
    texts = [line.output.replace("\x00", REPLACEMENT) for report in reports for line in report.lines]
    outputs = iter(await mask_build_tokens(tx, texts))
    appends = [
        LogAppend(
            report.known.agent.id,
            report.source_id,
            [NewAgentLog(line.created_at, next(outputs), line.level or "info") for line in report.lines],
        )
        for report in reports
    ]
    stored = await log_store.append_all_logs(tx, appends, max_length=MAX_LOGS_LENGTH)
    places: dict[tuple[UUID, UUID, UUID], None] = {}
    changed: dict[tuple[UUID, UUID, UUID], None] = {}
    for report, is_stored in zip(reports, stored, strict=True):
        agent = report.known.agent
        place = (report.known.owner_id, report.known.workspace_id, agent.id)
        places[place] = None
        if (agent.logs_length == 0) if is_stored else not agent.logs_overflowed:
            changed[place] = None
    await notify_agents(tx, "logs", list(places))
    await notify_agents(tx, "startup", list(changed))
    return stored


async def add_log_source(
    ctx: Context, current: CurrentAgent, source_id: UUID, display_name: str, icon: str
) -> WorkspaceAgentLogSource:
    """Create a source of logs; an existing one stays as it is. Raises Invalid (a long text, too many)."""
    for name, text in (("display_name", display_name), ("icon", icon)):
        if len(text) > MAX_SOURCE_TEXT:
            problem = f"May have {MAX_SOURCE_TEXT} characters."
            raise Invalid("Invalid log source.", problem, [(name, problem)])
    texts = (text.replace("\x00", REPLACEMENT) for text in (display_name, icon))
    row = LogSourceRow(current.agent.id, source_id, ctx.clock.now(), *texts)
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
    # A template may declare more sources; the agent may keep using these.
    if await agent_store.count_log_sources(tx, row.agent_id) > max(before, MAX_LOG_SOURCES):
        raise Invalid("Too many log sources.", f"An agent may have {MAX_LOG_SOURCES}.")
