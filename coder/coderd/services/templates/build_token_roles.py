"""Setting of a template: whether session tokens of its builds carry all roles of the workspaces' owners.

Off, a token carries member rights and the administrator roles of the template's organization
(`coder/domain/access/build_tokens.py`). On, the template's authors and the organization's administrators can act with
every role of its users, site roles included. So the change requires a site role, not a role of the organization.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.templates.templates import TemplateBuildTokens
from coder.coderd.services.access.application_limits import refuse_applications
from coder.coderd.services.access.authorization import require
from coder.coderd.services.access.workspace_access import load_template, lock_template
from coder.coderd.store.access import build_keys
from coder.domain.access.policy import Class, Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


async def get_build_tokens(ctx: Context, subject: Subject, template_id: UUID) -> TemplateBuildTokens:
    """Return the setting to every reader of the template: its users are the ones concerned. Raises NotFound."""
    await load_template(ctx, subject, template_id)
    return TemplateBuildTokens(all_roles=await ctx.db.read(build_keys.has_full_build_tokens, template_id))


async def set_build_tokens(
    ctx: Context, subject: Subject, template_id: UUID, request: TemplateBuildTokens
) -> TemplateBuildTokens:
    """Change the setting. Raises NotFound, Forbidden.

    Turned off, it narrows existing tokens at once; turned on, it applies to later builds.
    """
    if request.all_roles:
        await refuse_applications(ctx, subject, "full_build_tokens")
    await ctx.db.run(_set, subject, template_id, request.all_roles)
    return request


async def _set(tx: Tx, subject: Subject, template_id: UUID, all_roles: bool) -> None:
    template = await lock_template(tx, subject, template_id)
    if all_roles:
        require(subject, "update", Class("deployment_config"), hidden=False)
    await build_keys.set_full_build_tokens(tx, template.id, all_roles)
