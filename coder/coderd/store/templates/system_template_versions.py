"""Reads of template versions without a subject, for loaders that check permission and for the server itself."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import select

from coder.coderd.store.tables.templates import template_version_presets, template_versions
from coder.coderd.store.templates.template_versions import (
    COLUMNS,
    PresetRow,
    VersionRow,
    VersionView,
    select_views,
    version_view,
)

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


async def get_version(tx: Tx, version_id: UUID, *, lock: bool = False) -> VersionRow | None:
    query = select(*COLUMNS).where(template_versions.c.id == version_id)
    if lock:
        query = query.with_for_update()
    row = (await tx.execute(query)).one_or_none()
    return VersionRow(*row) if row else None


async def get_versions(tx: Tx, version_ids: Collection[UUID]) -> dict[UUID, VersionRow]:
    """Return the existing versions by id."""
    if not version_ids:
        return {}
    rows = await tx.execute(select(*COLUMNS).where(template_versions.c.id.in_(version_ids)))
    return {row.id: VersionRow(*row) for row in rows}


async def get_view(tx: Tx, version_id: UUID) -> VersionView | None:
    row = (await tx.execute(select_views().where(template_versions.c.id == version_id))).one_or_none()
    return version_view(row) if row else None


async def get_view_by_name(tx: Tx, template_id: UUID, name: str) -> VersionView | None:
    """Return a version by its exact name: names of versions, unlike those of templates, have a case."""
    query = select_views().where(template_versions.c.template_id == template_id, template_versions.c.name == name)
    row = (await tx.execute(query)).one_or_none()
    return version_view(row) if row else None


async def get_previous_view(tx: Tx, version: VersionRow) -> VersionView | None:
    """Return the newest version of the same template that is older than this one."""
    query = (
        select_views()
        .where(
            template_versions.c.organization_id == version.organization_id,
            template_versions.c.template_id == version.template_id,
            template_versions.c.created_at < version.created_at,
        )
        .order_by(template_versions.c.created_at.desc())
        .limit(1)
    )
    row = (await tx.execute(query)).one_or_none()
    return version_view(row) if row else None


async def get_preset(tx: Tx, preset_id: UUID) -> PresetRow | None:
    columns = [template_version_presets.c[field.name] for field in fields(PresetRow)]
    row = (await tx.execute(select(*columns).where(template_version_presets.c.id == preset_id))).one_or_none()
    return PresetRow(*row) if row else None
