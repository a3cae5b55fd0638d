"""Queries on resources of jobs. Their agents are in `store/agents/agents.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, TypedDict
from uuid import UUID

from sqlalchemy import bindparam, func, select
from sqlalchemy.dialects.postgresql import ARRAY

from coder.coderd.store.engine.metadata import Uuid
from coder.coderd.store.engine.prepared_statements import PreparedStatement
from coder.coderd.store.engine.rows import column_values
from coder.coderd.store.engine.turns import insert_rows
from coder.coderd.store.tables.resources import workspace_resources

if TYPE_CHECKING:
    from coder.api.base.enums import WorkspaceTransition
    from coder.coderd.store.engine.database import Tx


class ResourceMetadata(TypedDict):
    key: str
    value: str
    sensitive: bool


@dataclass(frozen=True, slots=True)
class ResourceRow:
    id: UUID
    created_at: datetime
    job_id: UUID
    transition: WorkspaceTransition
    type: str
    name: str
    hide: bool
    icon: str
    instance_type: str
    daily_cost: int
    module_path: str
    metadata: list[ResourceMetadata]
    "`[{key, value, sensitive}]`."
    position: int


_COLUMNS = tuple(workspace_resources.c[field.name] for field in fields(ResourceRow))
_BY_JOBS = PreparedStatement(
    select(*_COLUMNS).where(workspace_resources.c.job_id == func.any(bindparam("ids", type_=ARRAY(Uuid))))
)


async def list_resources(tx: Tx, job_ids: Sequence[UUID]) -> list[ResourceRow]:
    """Return resources in no particular order."""
    return [ResourceRow(*row) for row in await _BY_JOBS.fetch(tx, ids=job_ids)]


async def insert_resources(tx: Tx, rows: Sequence[ResourceRow]) -> None:
    await insert_rows(tx, workspace_resources, (column_values(row) for row in rows))
