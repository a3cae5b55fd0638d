"""Queries about links of users to external providers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import delete, select, update
from sqlalchemy.dialects.postgresql import insert

from coder.base.json_types import Json
from coder.coderd.store.engine.pubsub import notify
from coder.coderd.store.tables.people import external_auth_links as links

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class ExternalLink:
    """Link of a user to a provider; tokens as stored (sealed where there are keys)."""

    provider_id: str
    user_id: UUID
    created_at: datetime
    updated_at: datetime
    access_token: str
    refresh_token: str
    expires_at: datetime | None
    extra: Mapping[str, Json] | None


LINKED = "external_auth_linked"
"""NOTIFY channel: the id of a user who has just linked an account."""

_COLUMNS = tuple(links.c[name] for name in ExternalLink.__slots__)


async def get_link(tx: Tx, provider_id: str, user_id: UUID) -> ExternalLink | None:
    condition = (links.c.provider_id == provider_id, links.c.user_id == user_id)
    row = (await tx.execute(select(*_COLUMNS).where(*condition))).one_or_none()
    return None if row is None else ExternalLink(*row)


async def list_links(tx: Tx, user_id: UUID) -> list[ExternalLink]:
    statement = select(*_COLUMNS).where(links.c.user_id == user_id).order_by(links.c.provider_id)
    return [ExternalLink(*row) for row in await tx.execute(statement)]


async def put_link(tx: Tx, row: ExternalLink) -> None:
    """Insert a link, or replace the tokens of the old one."""
    values = {name: getattr(row, name) for name in ExternalLink.__slots__}
    kept = {"provider_id", "user_id", "created_at"}
    changed = {name: value for name, value in values.items() if name not in kept}
    statement = insert(links).values(**values)
    await tx.execute(statement.on_conflict_do_update(index_elements=["provider_id", "user_id"], set_=changed))
    await notify(tx, LINKED, str(row.user_id))


async def renew_link(tx: Tx, row: ExternalLink, used: str) -> bool:
    """Replace the tokens if the stored refresh token still is `used`: another process may have renewed (or linked)
    meanwhile."""
    condition = (
        links.c.provider_id == row.provider_id,
        links.c.user_id == row.user_id,
        links.c.refresh_token == used,
    )
    changed = {
        name: getattr(row, name) for name in ("updated_at", "access_token", "refresh_token", "expires_at", "extra")
    }
    return bool((await tx.execute(update(links).where(*condition).values(**changed))).rowcount)


async def delete_link(tx: Tx, provider_id: str, user_id: UUID) -> bool:
    condition = (links.c.provider_id == provider_id, links.c.user_id == user_id)
    return bool((await tx.execute(delete(links).where(*condition))).rowcount)
