"""Claims that identity providers have sent: names and values for the forms of IdP sync."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coder.api.base.refusals import Invalid
from coder.coderd.services.people.organization_settings import require_sync
from coder.coderd.store.login import provider_claims as claim_store

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.people.organizations import OrganizationRow
    from coder.domain.access.policy import Subject


async def claim_fields(ctx: Context, subject: Subject, organization: OrganizationRow | None) -> list[str] | None:
    """Return the names of claims that identity providers have sent; None without any."""
    require_sync(subject, "read", organization)
    return await ctx.db.read(claim_store.claim_fields, None if organization is None else organization.id) or None


async def claim_values(
    ctx: Context, subject: Subject, organization: OrganizationRow | None, field: str
) -> list[str] | None:
    """Return the values of a claim seen so far. Raises Invalid without its name."""
    if not field:
        raise Invalid("claimField query parameter is required")
    require_sync(subject, "read", organization)
    return await ctx.db.read(claim_store.claim_values, field, None if organization is None else organization.id) or None
