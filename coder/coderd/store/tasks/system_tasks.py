"""Reads of tasks without a subject, for loaders that check permission and for the server itself."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import func, select

from coder.coderd.store.tables.tasks import task_snapshots, tasks
from coder.coderd.store.tasks.tasks import COLUMNS, LIVING, VIEW, SnapshotRow, TaskRow, TaskView, task_row

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


async def get_view(tx: Tx, task_id: UUID) -> TaskView | None:
    """Return a living task."""
    row = (await tx.execute(VIEW.where(LIVING, tasks.c.id == task_id))).one_or_none()
    return task_row(row) if row else None


async def get_view_by_name(tx: Tx, owner_id: UUID, name: str) -> TaskView | None:
    """Return a living task of an owner, without regard to case."""
    query = VIEW.where(LIVING, tasks.c.owner_id == owner_id, func.lower(tasks.c.name) == func.lower(name))
    row = (await tx.execute(query)).one_or_none()
    return task_row(row) if row else None


async def get_task_of(tx: Tx, workspace_id: UUID, *, deleted: bool = False) -> TaskRow | None:
    """Return the task of a workspace; deleted ones with `deleted`."""
    query = select(*COLUMNS).where(tasks.c.workspace_id == workspace_id).order_by(tasks.c.created_at.desc()).limit(1)
    row = (await tx.execute(query if deleted else query.where(LIVING))).one_or_none()
    return TaskRow(*row) if row else None


async def get_snapshot(tx: Tx, task_id: UUID) -> SnapshotRow | None:
    query = select(task_snapshots.c.messages, task_snapshots.c.created_at).where(task_snapshots.c.task_id == task_id)
    row = (await tx.execute(query)).one_or_none()
    return SnapshotRow(*row) if row else None
