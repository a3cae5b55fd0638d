"""Queries about session tokens of workspace builds and the keys created with them.

`coder/domain/access/build_tokens.py` has the rules.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import String, and_, func, or_, select, update

from coder.coderd.store.access import keys as key_store
from coder.coderd.store.tables.people import api_keys
from coder.coderd.store.tables.templates import templates
from coder.coderd.store.tables.workspaces import workspaces
from coder.domain.access.build_tokens import BuildRoles

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


async def has_full_build_tokens(tx: Tx, template_id: UUID, *, hold: bool = False) -> bool:
    """Return whether the template's builds get tokens with all roles of their owners.

    With `hold` the setting does not change until the transaction ends, so that turning it off finds every such token.
    """
    statement = select(templates.c.full_build_tokens).where(templates.c.id == template_id)
    if hold:
        statement = statement.with_for_update(read=True, key_share=True)
    row = (await tx.execute(statement)).one_or_none()
    return row is not None and bool(row[0])


async def set_full_build_tokens(tx: Tx, template_id: UUID, is_full: bool) -> None:
    """Set the template's rule. The transaction has locked the template. Turning it off narrows existing tokens."""
    await tx.execute(update(templates).where(templates.c.id == template_id).values(full_build_tokens=is_full))
    if is_full:
        return
    full = and_(api_keys.c.build_template_id == template_id, api_keys.c.build_roles == BuildRoles.ALL)
    # `scopes` stays the same, and is set because the trigger that empties caches of keys listens to it.
    narrowed = {"build_roles": BuildRoles.ORGANIZATION, "scopes": api_keys.c.scopes}
    changed = await tx.execute(update(api_keys).where(full).values(narrowed).returning(api_keys.c.user_id))
    for user_id in {row[0] for row in changed}:
        await key_store.notify_user_revoked(tx, user_id)


async def delete_build_keys_of_member(tx: Tx, organization_id: UUID, user_id: UUID) -> None:
    """Delete the tokens that builds of an organization's workspaces gave a user, and the keys created with them.

    Includes tokens from before migration 0035, which are found by the name of their workspace.
    """
    name = func.concat(workspaces.c.owner_id.cast(String), "_", workspaces.c.id.cast(String), "_session_token")
    own = select(name).where(workspaces.c.owner_id == user_id, workspaces.c.organization_id == organization_id)
    from_build = or_(api_keys.c.build_organization_id == organization_id, api_keys.c.token_name.in_(own))
    await key_store.delete_keys(tx, and_(api_keys.c.user_id == user_id, from_build))


async def count_unlimited_build_keys(tx: Tx, now: datetime) -> int:
    """Return the number of valid tokens of builds from before migration 0035, which carry all roles of their owners."""
    condition = and_(key_store.IS_BUILD_KEY, api_keys.c.build_organization_id.is_(None), api_keys.c.expires_at > now)
    return int((await tx.execute(select(func.count()).select_from(api_keys).where(condition))).scalar_one())


async def hashes_of_build_keys(tx: Tx, key_ids: Collection[str]) -> dict[str, bytes]:
    """Return the hashed secrets of the tokens of builds, and of keys created with them, among `key_ids`."""
    from_build = or_(key_store.IS_BUILD_KEY, api_keys.c.build_key_id.is_not(None))
    statement = select(api_keys.c.id, api_keys.c.hashed_secret).where(api_keys.c.id.in_(key_ids), from_build)
    return {row[0]: row[1] for row in await tx.execute(statement)}
