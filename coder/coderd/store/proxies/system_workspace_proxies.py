"""Reads of workspace proxies without a subject, for loaders that check permission and for the server itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func

from coder.coderd.store.engine.names import called
from coder.coderd.store.proxies.workspace_proxies import SELECT, ProxyRow
from coder.coderd.store.tables.proxies import workspace_proxies

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


async def find_proxy(tx: Tx, reference: str) -> ProxyRow | None:
    """Return a proxy by id or name."""
    is_named = func.lower(workspace_proxies.c.name) == func.lower(reference)
    row = (await tx.execute(called(SELECT, reference, workspace_proxies.c.id, is_named))).one_or_none()
    return None if row is None else ProxyRow(*row)
