"""Reads of templates without a subject, for loaders that check permission and for the server itself."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import func, select

from coder.coderd.store.tables.jobs import provisioner_jobs
from coder.coderd.store.tables.templates import template_versions, templates
from coder.coderd.store.templates.templates import COLUMNS, COUNT, TemplateRow, TemplateView, select_views

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


async def get_template(tx: Tx, template_id: UUID, *, lock: bool = False, hold: bool = False) -> TemplateRow | None:
    """Return a template, deleted ones too. `lock` keeps others from changing it until the transaction ends; `hold`
    excludes only `lock`, so that many may rely on the row concurrently."""
    query = select(*COLUMNS).where(templates.c.id == template_id)
    if lock or hold:
        query = query.with_for_update(read=not lock, key_share=not lock)
    row = (await tx.execute(query)).one_or_none()
    return TemplateRow(*row) if row else None


async def list_templates_of_file(tx: Tx, file_id: UUID) -> list[TemplateRow]:
    """Return the templates with a version of this archive."""
    versions = (
        select(template_versions.c.template_id)
        .join(provisioner_jobs, provisioner_jobs.c.id == template_versions.c.job_id)
        .where(provisioner_jobs.c.file_id == file_id)
    )
    rows = await tx.execute(select(*COLUMNS).where(templates.c.id.in_(versions)))
    return [TemplateRow(*row) for row in rows]


async def get_templates(tx: Tx, template_ids: Collection[UUID]) -> dict[UUID, TemplateRow]:
    """Return the existing templates by id."""
    if not template_ids:
        return {}
    rows = await tx.execute(select(*COLUMNS).where(templates.c.id.in_(template_ids)))
    return {row.id: TemplateRow(*row) for row in rows}


async def get_template_by_name(tx: Tx, organization_id: UUID, name: str) -> TemplateRow | None:
    """Return a living one, ignoring the case of its name."""
    query = select(*COLUMNS).where(
        templates.c.organization_id == organization_id,
        func.lower(templates.c.name) == func.lower(name),
        templates.c.deleted.is_(False),
    )
    row = (await tx.execute(query)).one_or_none()
    return TemplateRow(*row) if row else None


async def get_view(tx: Tx, template_id: UUID) -> TemplateView | None:
    row = (await tx.execute(select_views().where(templates.c.id == template_id))).one_or_none()
    return TemplateView(TemplateRow(*row[:COUNT]), *row[COUNT:]) if row else None
