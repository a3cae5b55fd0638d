"""Terms of `q=` that name an object: one parser for each, shared by all lists."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.services.access.authorization import may
from coder.coderd.store.engine import names as name_store
from coder.domain.access.policy import Object, Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.domain.foundation.search import Terms


async def find_organization(ctx: Context, subject: Subject, terms: Terms) -> UUID | None:
    """Return the organization that a query names by id or name. One the caller may not see is refused."""
    text = terms.one("organization")
    if not text:
        return None
    organization_id = await ctx.db.read(name_store.find_organization, text)
    if organization_id is None or not may(
        subject, "read", Object("organization", str(organization_id), organization_id=organization_id)
    ):
        terms.refuse(
            "organization",
            f'Query param "organization" has invalid value: organization "{text}" either does not exist, or you are '
            "unauthorized to view it",
        )
        return None
    return organization_id
