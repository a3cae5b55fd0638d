"""Parameter values a form may offer again: the last ones the user entered for the template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.services.access.authorization import require
from coder.coderd.store.templates import system_templates
from coder.coderd.store.templates import template_versions as version_store
from coder.coderd.store.workspaces import builds as build_store
from coder.domain.access.policy import Object, Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


async def autofill_parameters(ctx: Context, subject: Subject, owner_id: UUID, template_id: UUID) -> Mapping[str, str]:
    """Return the user's last value of each parameter the template still has; ephemeral parameters are left out."""
    require(subject, "read_personal", Object("user", str(owner_id), owner_id=owner_id))
    return await ctx.db.read(_autofill, owner_id, template_id)


async def _autofill(tx: Tx, owner_id: UUID, template_id: UUID) -> dict[str, str]:
    template = await system_templates.get_template(tx, template_id)
    if template is None:
        return {}
    definitions = await version_store.list_parameters(tx, template.active_version_id)
    offered = {item.name for item in definitions if not item.ephemeral}
    last_values = await build_store.list_last_parameters(tx, owner_id, template_id)
    return {name: value for name, value in last_values.items() if name in offered}
