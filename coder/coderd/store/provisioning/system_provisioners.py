"""Reads of provisioner keys without a subject, for loaders that check permission and for the server itself."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import func, select

from coder.coderd.store.provisioning.provisioners import KEY_COLUMNS, ProvisionerKeyRow
from coder.coderd.store.tables.provisioners import provisioner_keys

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


async def get_key_by_name(tx: Tx, organization_id: UUID, name: str) -> ProvisionerKeyRow | None:
    query = select(*KEY_COLUMNS).where(
        provisioner_keys.c.organization_id == organization_id, func.lower(provisioner_keys.c.name) == func.lower(name)
    )
    row = (await tx.execute(query)).one_or_none()
    return ProvisionerKeyRow(*row) if row else None
