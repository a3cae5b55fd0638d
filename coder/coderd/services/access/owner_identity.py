"""Workspaces that may act as their owner.

An owner's identity is the session token, the private SSH key, user secrets and tokens of external accounts. What an
organization's administrator or template author runs in a workspace can read all of it. So a workspace gets it only
while its owner is an active member of the workspace's organization.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Forbidden
from coder.coderd.services.access.authorization import may
from coder.coderd.store.people import organizations as organization_store
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from coder.domain.access.policy import Class, Subject

if TYPE_CHECKING:
    from coder.coderd.config.settings import ServerConfig
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class IdentityTarget:
    """A workspace build that asks for its owner's identity, itself or by its agents."""

    owner_id: UUID
    organization_id: UUID
    initiator_id: UUID
    "User who requested the build; the owner for builds by schedule."


async def is_delivered(tx: Tx, config: ServerConfig, target: IdentityTarget) -> bool:
    """Return whether a build, its agents and their sub-agents get the owner's identity.

    Every interface that hands out a part of it asks here. Prebuilt workspaces are exempt: the system user is in the
    default organization alone, and has nothing to deliver. `--withhold-owner-identity` excludes builds that another
    user requested.
    """
    if target.owner_id == PREBUILDS_USER_ID:
        return True
    if config.withhold_owner_identity and target.initiator_id != target.owner_id:
        return False
    return await organization_store.is_active_member(tx, target.organization_id, target.owner_id)


async def require_member(tx: Tx, subject: Subject, owner_id: UUID, organization_id: UUID) -> None:
    """Require that the owner of a new workspace is an active member of its organization.

    A grant of the organization reaches its members alone; a grant of the site reaches every user. Raises Forbidden.
    """
    if may(subject, "create", Class("workspace")):
        return
    if not await organization_store.is_active_member(tx, organization_id, owner_id):
        raise Forbidden(
            "The workspace's owner must be an active member of the template's organization.",
            "Add the user to the organization or activate the account, then try again.",
        )
