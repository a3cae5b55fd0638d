"""Locations of all sealed texts, for commands that change their keys with the server stopped or running.

`services/foundation/encryption_at_rest.py` defines them. A value is replaced wherever the same text occurs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlalchemy import Column, delete, select, update

from coder.coderd.store.engine.sql_types import SqlTable
from coder.coderd.store.tables.people import external_auth_links, git_ssh_keys, user_links
from coder.coderd.store.tables.site_configs import site_configs
from coder.coderd.store.tables.user_secrets import user_secrets

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

_WHOLE: tuple[tuple[SqlTable, Column[str]], ...] = (
    (user_links, user_links.c.oauth_access_token),
    (user_links, user_links.c.oauth_refresh_token),
    (external_auth_links, external_auth_links.c.access_token),
    (external_auth_links, external_auth_links.c.refresh_token),
    (user_secrets, user_secrets.c.value),
    (git_ssh_keys, git_ssh_keys.c.private_key),
)
"""Columns whose whole text is a secret, sealed or not."""


async def rewrite(tx: Tx, whole: Callable[[str], str], inside: Callable[[str], str]) -> int:
    """Map every text through `whole` (secrets) or `inside` (settings with sealed parts). Return how many changed."""
    changed = 0
    for table, column in _WHOLE:
        for text in list((await tx.execute(select(column).distinct().where(column != ""))).scalars()):
            fresh = whole(text)
            if fresh != text:
                await tx.execute(update(table).where(column == text).values({column.name: fresh}))
                changed += 1
    value = site_configs.c.value
    for text in list((await tx.execute(select(value).where(value.contains("sealed:1:")))).scalars()):
        fresh = inside(text)
        if fresh != text:
            await tx.execute(update(site_configs).where(value == text).values(value=fresh))
            changed += 1
    return changed


async def forget_sealed(tx: Tx) -> int:
    """Delete the sealed texts and the rows that are useless without them. Return the number of rows."""
    removed = 0
    for table in (external_auth_links, user_secrets, git_ssh_keys):
        columns = [column for owner, column in _WHOLE if owner is table]
        for column in columns:
            removed += (await tx.execute(delete(table).where(column.startswith("sealed:1:")))).rowcount
    sealed = user_links.c.oauth_access_token.startswith("sealed:1:")
    emptied = {"oauth_access_token": "", "oauth_refresh_token": "", "oauth_expiry": None}
    removed += (await tx.execute(update(user_links).where(sealed).values(emptied))).rowcount
    removed += (await tx.execute(delete(site_configs).where(site_configs.c.value.contains("sealed:1:")))).rowcount
    return removed
