"""Frequent reports of all agents, written together: liveness, statistics, readings of machines, metadata, logs.

Each agent sends some twenty of them a minute. A call is answered when its batch is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.agents.agent_health import FlightRecord
from coder.base.json_types import JsonObject
from coder.coderd.services.access.token_masking import mask_build_tokens
from coder.coderd.services.activity.deadlines import bump_deadline
from coder.coderd.services.agents import disconnects
from coder.coderd.services.agents.agent_logs import LogReport, store_all_logs
from coder.coderd.services.foundation.batches import Batch
from coder.coderd.store.agents import agent_metadata as metadata_store
from coder.coderd.store.agents import agent_stats as stats_store
from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.agents import disconnects as vitals_store
from coder.coderd.store.agents.agent_stats import AgentStats
from coder.coderd.store.agents.agents import AliveLink, CurrentAgent
from coder.coderd.store.workspaces.change_feed import Kind, notify_agents

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


_LOG_SPACING = 0.2
"""Share of the usual spacing, our own value: the seconds that a line may wait while a user reads the log."""
_MOST_LOGS = 200


@dataclass(frozen=True, slots=True)
class Liveness:
    """Link of an agent that answered its pings."""

    known: CurrentAgent
    presence_id: UUID
    path: JsonObject | None
    at: datetime


@dataclass(frozen=True, slots=True)
class StatsReport:
    """Statistics of an agent, and whether they count as use of its workspace."""

    known: CurrentAgent
    values: AgentStats
    is_used: bool
    at: datetime


@dataclass(frozen=True, slots=True)
class VitalsReport:
    """Readings of an agent's machine, and the events since the last report."""

    known: CurrentAgent
    reading: JsonObject
    events: Sequence[FlightRecord]
    sent_at: datetime
    """By the machine's clock."""
    at: datetime


@dataclass(frozen=True, slots=True)
class MetadataReport:
    """Metadata of an agent: key -> (value, error)."""

    known: CurrentAgent
    results: Mapping[str, tuple[str, str]]
    at: datetime


class ReportBatches:
    """Batches of a server process."""

    def __init__(self, ctx: Context) -> None:
        self.liveness: Batch[Liveness, bool] = Batch(ctx, _mark_alive)
        """Answers whether the agent's token is still valid."""
        self.stats: Batch[StatsReport, None] = Batch(ctx, _insert_stats)
        self.vitals: Batch[VitalsReport, None] = Batch(ctx, _put_vitals)
        self.metadata: Batch[MetadataReport, None] = Batch(ctx, _update_metadata)
        self.logs: Batch[LogReport, bool] = Batch(ctx, store_all_logs, spacing=_LOG_SPACING, max_items=_MOST_LOGS)
        """Answers whether the agent's log had room."""


async def _mark_alive(tx: Tx, reports: Sequence[Liveness]) -> list[bool]:
    valid = await agent_store.find_valid_tokens(tx, {_token(report.known) for report in reports})
    links: dict[UUID, AliveLink] = {}
    answers = []
    for report in reports:
        token = valid.get(_token(report.known))
        is_valid = token is not None and token.owner_status != "suspended" and token.build_id == report.known.build_id
        answers.append(is_valid)
        if is_valid and token is not None and token.agent_id == report.known.agent.id:
            links[token.agent_id] = AliveLink(token.agent_id, report.presence_id, report.path)
    if links:
        await agent_store.mark_alive(tx, links, max(report.at for report in reports))
    return answers


def _token(known: CurrentAgent) -> UUID:
    return known.rotated_token or known.agent.auth_token


async def _insert_stats(tx: Tx, reports: Sequence[StatsReport]) -> list[None]:
    await stats_store.insert_all_stats(tx, [report.values for report in reports])
    used = {report.known.build_id: report for report in reports if report.is_used}
    for build_id in sorted(used):  # the same order on all replicas avoids deadlocks
        await bump_deadline(tx, build_id, used[build_id].at)
    await _notify(tx, "stats", [report.known for report in used.values()])
    return [None] * len(reports)


async def _put_vitals(tx: Tx, reports: Sequence[VitalsReport]) -> list[None]:
    await vitals_store.put_vitals(tx, {report.known.agent.id: (report.reading, report.at) for report in reports})
    for report in reports:
        if report.events:
            await disconnects.record_events(tx, report.known, report.events, report.sent_at, report.at)
    return [None] * len(reports)


async def _update_metadata(tx: Tx, reports: Sequence[MetadataReport]) -> list[None]:
    pairs = [(report, key, pair) for report in reports for key, pair in report.results.items()]
    texts = await mask_build_tokens(tx, [text for _, _, pair in pairs for text in pair])
    results = {
        (report.known.agent.id, key): (value, error, report.at)
        for (report, key, _), value, error in zip(pairs, texts[::2], texts[1::2], strict=True)
    }
    await metadata_store.update_metadata(tx, results)
    await _notify(tx, "metadata", {report.known.agent.id: report.known for report in reports}.values())
    return [None] * len(reports)


async def _notify(tx: Tx, kind: Kind, agents: Iterable[CurrentAgent]) -> None:
    places = [(known.owner_id, known.workspace_id, known.agent.id) for known in agents]
    if places:
        await notify_agents(tx, kind, places)
