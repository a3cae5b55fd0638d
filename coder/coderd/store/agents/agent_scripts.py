"""Queries on agents' scripts and their runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import bindparam, func, select, true
from sqlalchemy.dialects.postgresql import ARRAY, distinct_on, insert

from coder.coderd.store.engine.metadata import Uuid
from coder.coderd.store.engine.prepared_statements import PreparedStatement
from coder.coderd.store.tables.agents import workspace_agent_script_timings, workspace_agent_scripts, workspace_agents

if TYPE_CHECKING:
    from coder.api.agents.agents import WorkspaceAgentScriptStatus
    from coder.api.base.enums import TimingStage
    from coder.coderd.store.engine.database import Tx

_IDS = bindparam("ids", type_=ARRAY(Uuid))


@dataclass(frozen=True, slots=True)
class ScriptRow:
    """Script with the end of its last run (None before)."""

    id: UUID
    agent_id: UUID
    created_at: datetime
    log_source_id: UUID
    log_path: str
    script: str
    cron: str
    run_on_start: bool
    run_on_stop: bool
    start_blocks_login: bool
    timeout_seconds: int
    display_name: str
    position: int
    exit_code: int | None = None
    status: WorkspaceAgentScriptStatus | None = None


@dataclass(frozen=True, slots=True)
class ScriptTimingRow:
    agent_id: UUID
    agent_name: str
    display_name: str
    started_at: datetime
    ended_at: datetime
    exit_code: int
    stage: TimingStage
    status: WorkspaceAgentScriptStatus


_SCRIPT_COLUMNS = tuple(
    workspace_agent_scripts.c[field.name] for field in fields(ScriptRow) if field.name not in {"exit_code", "status"}
)


_last_run = (
    select(workspace_agent_script_timings.c.exit_code, workspace_agent_script_timings.c.status)
    .where(workspace_agent_script_timings.c.script_id == workspace_agent_scripts.c.id)
    .order_by(workspace_agent_script_timings.c.id.desc())
    .limit(1)
    .lateral("last_run")
)


_SCRIPTS = PreparedStatement(
    select(*_SCRIPT_COLUMNS, _last_run.c.exit_code, _last_run.c.status)
    .select_from(workspace_agent_scripts)
    .outerjoin(_last_run, true())
    .where(workspace_agent_scripts.c.agent_id == func.any(_IDS))
    .order_by(workspace_agent_scripts.c.position)
)


async def list_scripts(tx: Tx, agent_ids: Sequence[UUID]) -> list[ScriptRow]:
    return [ScriptRow(*row) for row in await _SCRIPTS.fetch(tx, ids=agent_ids)]


async def list_script_timings(tx: Tx, job_id: UUID) -> list[ScriptTimingRow]:
    """Return the first run of every script of a build's agents: a cron script runs without end."""
    timings, scripts = workspace_agent_script_timings, workspace_agent_scripts
    query = (
        select(
            workspace_agents.c.id,
            workspace_agents.c.name,
            scripts.c.display_name,
            timings.c.started_at,
            timings.c.ended_at,
            timings.c.exit_code,
            timings.c.stage,
            timings.c.status,
        )
        .join(scripts, scripts.c.id == timings.c.script_id)
        .join(workspace_agents, workspace_agents.c.id == scripts.c.agent_id)
        .where(workspace_agents.c.job_id == job_id)
        .order_by(timings.c.script_id, timings.c.started_at, timings.c.id)
        .ext(distinct_on(timings.c.script_id))
    )
    return [ScriptTimingRow(*row) for row in await tx.execute(query)]


async def insert_script_timing(
    tx: Tx, script_id: UUID, *, started_at: datetime, ended_at: datetime, exit_code: int, stage: str, status: str
) -> None:
    """Insert a timing. Raises IntegrityError for an unknown script."""
    await tx.execute(
        insert(workspace_agent_script_timings).values(
            script_id=script_id,
            started_at=started_at,
            ended_at=ended_at,
            exit_code=exit_code,
            stage=stage,
            status=status,
        )
    )
