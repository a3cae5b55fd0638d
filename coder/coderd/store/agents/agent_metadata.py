"""Queries on the metadata a template makes agents collect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import bindparam, select, text

from coder.coderd.store.engine.metadata import Uuid
from coder.coderd.store.engine.prepared_statements import PreparedStatement
from coder.coderd.store.engine.sql_types import ColumnValues
from coder.coderd.store.tables.agents import workspace_agent_metadata

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class MetadataRow:
    agent_id: UUID
    key: str
    display_name: str
    script: str
    interval_seconds: int
    timeout_seconds: int
    display_order: int
    value: str
    error: str
    collected_at: datetime | None


_METADATA_COLUMNS = tuple(workspace_agent_metadata.c[field.name] for field in fields(MetadataRow))
_METADATA = PreparedStatement(
    select(*_METADATA_COLUMNS)
    .where(workspace_agent_metadata.c.agent_id == bindparam("agent_id", type_=Uuid))
    .order_by(workspace_agent_metadata.c.display_order, workspace_agent_metadata.c.key)
)


async def list_metadata(tx: Tx, agent_id: UUID) -> list[MetadataRow]:
    return [MetadataRow(*row) for row in await _METADATA.fetch(tx, agent_id=agent_id)]


_UPDATE = text(
    "UPDATE workspace_agent_metadata m SET value = report.value, error = report.error, collected_at = report.at "
    "FROM unnest(CAST(:agents AS uuid[]), CAST(:keys AS text[]), CAST(:values AS text[]), CAST(:errors AS text[]), "
    "CAST(:times AS timestamptz[])) AS report(agent_id, key, value, error, at) "
    "WHERE m.agent_id = report.agent_id AND m.key = report.key"
)


async def update_metadata(tx: Tx, results: Mapping[tuple[UUID, str], tuple[str, str, datetime]]) -> None:
    """Store `results`: (agent id, key) -> (value, error, time): one statement for any number of agents.

    Keys the build does not define are ignored.
    """
    if not results:
        return
    places = sorted(results)
    values: ColumnValues = {
        "agents": [agent_id for agent_id, _ in places],
        "keys": [key for _, key in places],
        "values": [results[place][0] for place in places],
        "errors": [results[place][1] for place in places],
        "times": [results[place][2] for place in places],
    }
    await tx.execute(_UPDATE, values)
