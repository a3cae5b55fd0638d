"""Queries on the metadata a template makes agents collect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import bindparam, select, update

from coder.coderd.store.engine.metadata import Uuid
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
_METADATA = (
    select(*_METADATA_COLUMNS)
    .where(workspace_agent_metadata.c.agent_id == bindparam("agent_id", type_=Uuid))
    .order_by(workspace_agent_metadata.c.display_order, workspace_agent_metadata.c.key)
)


async def list_metadata(tx: Tx, agent_id: UUID) -> list[MetadataRow]:
    return [MetadataRow(*row) for row in await tx.execute(_METADATA, {"agent_id": agent_id})]


async def update_metadata(
    tx: Tx, agent_id: UUID, results: Mapping[str, tuple[str, str]], collected_at: datetime
) -> None:
    """Store `results`: key -> (value, error). Keys the build does not define are ignored."""
    table = workspace_agent_metadata
    for key, (value, error) in results.items():
        await tx.execute(
            update(table)
            .where(table.c.agent_id == agent_id, table.c.key == key)
            .values(value=value, error=error, collected_at=collected_at)
        )
