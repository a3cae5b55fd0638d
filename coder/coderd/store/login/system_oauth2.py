"""Reads of OAuth2 applications without a subject, for loaders that check permission and for the server itself."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import select

from coder.coderd.store.login.oauth2 import APPS, OAuth2AppRow
from coder.coderd.store.tables.oauth2 import (
    oauth2_provider_apps,
)

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


async def get_app(tx: Tx, app_id: UUID) -> OAuth2AppRow | None:
    row = (await tx.execute(select(*APPS).where(oauth2_provider_apps.c.id == app_id))).one_or_none()
    return None if row is None else OAuth2AppRow(*row)
