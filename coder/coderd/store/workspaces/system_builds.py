"""Reads of builds without a subject, for loaders that check permission and for the server itself."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import select

from coder.coderd.store.tables.builds import workspace_builds
from coder.coderd.store.workspaces.builds import BUILD_COLUMNS, VIEW, BuildRow, BuildView, make_view

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


async def get_view(tx: Tx, build_id: UUID) -> BuildView | None:
    row = (await tx.execute(VIEW.where(workspace_builds.c.id == build_id))).one_or_none()
    return make_view(row) if row else None


async def get_view_by_number(tx: Tx, workspace_id: UUID, number: int) -> BuildView | None:
    query = VIEW.where(workspace_builds.c.workspace_id == workspace_id, workspace_builds.c.build_number == number)
    row = (await tx.execute(query)).one_or_none()
    return make_view(row) if row else None


async def get_build(tx: Tx, build_id: UUID) -> BuildRow | None:
    row = (await tx.execute(select(*BUILD_COLUMNS).where(workspace_builds.c.id == build_id))).one_or_none()
    return BuildRow(*row) if row else None


async def get_build_by_job(tx: Tx, job_id: UUID) -> BuildRow | None:
    row = (await tx.execute(select(*BUILD_COLUMNS).where(workspace_builds.c.job_id == job_id))).one_or_none()
    return BuildRow(*row) if row else None


async def get_latest_build(tx: Tx, workspace_id: UUID) -> BuildRow | None:
    query = select(*BUILD_COLUMNS).where(workspace_builds.c.workspace_id == workspace_id)
    row = (await tx.execute(query.order_by(workspace_builds.c.build_number.desc()).limit(1))).one_or_none()
    return BuildRow(*row) if row else None


async def get_previous_build(tx: Tx, build: BuildRow) -> BuildRow | None:
    """Return the build before `build` of the same workspace."""
    query = select(*BUILD_COLUMNS).where(
        workspace_builds.c.workspace_id == build.workspace_id, workspace_builds.c.build_number < build.build_number
    )
    row = (await tx.execute(query.order_by(workspace_builds.c.build_number.desc()).limit(1))).one_or_none()
    return BuildRow(*row) if row else None


async def get_state(tx: Tx, build_id: UUID) -> bytes:
    """Return the Terraform state that the build left (or inherited from the one before); empty when there is none."""
    result = await tx.execute(select(workspace_builds.c.provisioner_state).where(workspace_builds.c.id == build_id))
    return bytes(result.scalar_one_or_none() or b"")
