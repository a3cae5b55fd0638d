"""Queries about claims from identity providers: names and values.

For the pages that set up sync. A member's claims belong to each organization of the member.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import text

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

_OF = """
    FROM user_links l JOIN users u ON u.id = l.user_id, LATERAL jsonb_each(
        COALESCE(NULLIF(l.claims -> 'merged_claims', 'null'::jsonb), l.claims)
    ) AS claim(name, value)
    WHERE NOT u.deleted AND l.login_type = 'oidc' AND jsonb_typeof(l.claims) = 'object'
    AND (CAST(:organization AS uuid) IS NULL OR EXISTS (
        SELECT 1 FROM organization_members m WHERE m.user_id = u.id AND m.organization_id = :organization
    ))
"""
_FIELDS = text("SELECT DISTINCT claim.name" + _OF + " ORDER BY 1")
_EACH = """, LATERAL (
    SELECT claim.value WHERE jsonb_typeof(claim.value) <> 'array'
    UNION ALL SELECT e FROM jsonb_array_elements(
        CASE jsonb_typeof(claim.value) WHEN 'array' THEN claim.value ELSE '[]'::jsonb END
    ) AS e
) AS item(value)
WHERE claim.name = :field AND"""
_VALUES = text("SELECT DISTINCT item.value #>> '{}'" + _OF.replace("WHERE", _EACH, 1) + " ORDER BY 1")


async def claim_fields(tx: Tx, organization_id: UUID | None) -> list[str]:
    """Return the names of claims, sorted; only those of an organization's members if it is named."""
    rows = await tx.execute(_FIELDS, {"organization": organization_id})
    return [row[0] for row in rows]


async def claim_values(tx: Tx, field: str, organization_id: UUID | None) -> list[str]:
    """Return the values of a claim, sorted; lists count as their elements."""
    rows = await tx.execute(_VALUES, {"organization": organization_id, "field": field})
    return [row[0] for row in rows if row[0] is not None]
