"""Queries about users' accounts at identity providers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import and_, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from coder.base.json_types import Json
from coder.coderd.store.tables.people import user_links, users

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class LinkRow:
    """Account. Tokens are sealed where the site has encryption keys (`services/foundation/encryption_at_rest.py`)."""

    user_id: UUID
    login_type: str
    linked_id: str
    oauth_access_token: str
    oauth_refresh_token: str
    oauth_expiry: datetime | None
    claims: Mapping[str, Json]


_COLUMNS = tuple(user_links.c[name] for name in LinkRow.__slots__)


async def get_link(tx: Tx, user_id: UUID, login_type: str) -> LinkRow | None:
    condition = (user_links.c.user_id == user_id, user_links.c.login_type == login_type)
    row = (await tx.execute(select(*_COLUMNS).where(*condition))).one_or_none()
    return None if row is None else LinkRow(*row)


async def find_linked_user(tx: Tx, login_type: str, linked_id: str) -> UUID | None:
    """Return the living user with that account."""
    statement = (
        select(user_links.c.user_id)
        .join(users, users.c.id == user_links.c.user_id)
        .where(user_links.c.login_type == login_type, user_links.c.linked_id == linked_id, ~users.c.deleted)
    )
    return (await tx.execute(statement)).scalars().first()


async def put_link(tx: Tx, row: LinkRow) -> None:
    values = {name: getattr(row, name) for name in LinkRow.__slots__}
    statement = insert(user_links).values(**values)
    changed = {name: value for name, value in values.items() if name not in {"user_id", "login_type"}}
    await tx.execute(statement.on_conflict_do_update(index_elements=["user_id", "login_type"], set_=changed))


async def renew_link(tx: Tx, row: LinkRow, used: str) -> bool:
    """Replace the tokens if the stored refresh token still is `used`: a login or another renewal may have been
    faster."""
    condition = (
        user_links.c.user_id == row.user_id,
        user_links.c.login_type == row.login_type,
        user_links.c.oauth_refresh_token == used,
    )
    changed = {name: getattr(row, name) for name in ("oauth_access_token", "oauth_refresh_token", "oauth_expiry")}
    return bool((await tx.execute(update(user_links).where(*condition).values(**changed))).rowcount)


async def delete_link(tx: Tx, user_id: UUID, login_type: str) -> None:
    await tx.execute(delete(user_links).where(user_links.c.user_id == user_id, user_links.c.login_type == login_type))


async def reset_links(tx: Tx, login_type: str, keep_prefix: str, *, write: bool) -> int:
    """Unlink accounts of the provider whose id has another prefix; "" unlinks all. Return their number.

    The next login links them again, by e-mail address. Without `write` they are only counted.
    """
    links = user_links.c
    stale = and_(links.login_type == login_type, links.linked_id != "")
    if keep_prefix:
        stale = and_(stale, ~links.linked_id.startswith(keep_prefix, autoescape=True))
    if write:
        return (await tx.execute(update(user_links).where(stale).values(linked_id=""))).rowcount
    return int((await tx.execute(select(func.count()).select_from(user_links).where(stale))).scalar_one())
