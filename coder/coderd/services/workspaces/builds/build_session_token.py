"""Session token of the workspace's owner, for Terraform.

Every start of a user's workspace gets a fresh token, created when the daemon acquires the job. Stop and delete get no
token.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from coder.coderd.services.access.api_tokens import max_lifetime
from coder.coderd.services.access.new_keys import new_key
from coder.coderd.store.access import build_keys
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from coder.coderd.store.workspaces.build_owner import OwnerFacts
from coder.coderd.store.workspaces.builds import BuildRow
from coder.coderd.store.workspaces.workspaces import WorkspaceRow
from coder.domain.access.build_tokens import roles_of_build, token_name

if TYPE_CHECKING:
    from coder.coderd.config.settings import ServerConfig
    from coder.coderd.store.engine.database import Tx


async def revoke_session_token(tx: Tx, workspace: WorkspaceRow) -> None:
    """Revoke the token that an earlier start of the workspace got, if any, with the keys created by it.

    Locks the template first, as a change of its setting does (`set_full_build_tokens`).
    """
    await build_keys.has_full_build_tokens(tx, workspace.template_id, hold=True)
    await key_store.replace_token(tx, workspace.owner_id, token_name(workspace.owner_id, workspace.id))


async def create_session_token(
    tx: Tx, build: BuildRow, workspace: WorkspaceRow, owner: OwnerFacts, config: ServerConfig, now: datetime
) -> str:
    """Create the token of a start build and return it; empty for all other builds.

    It carries the roles that `coder/domain/access/build_tokens.py` lists, for at most the lifetime of the owner's
    tokens.
    """
    if build.transition != "start" or workspace.owner_id == PREBUILDS_USER_ID:
        # A key of the system user would open every unclaimed workspace, of any template and organization. A user who
        # claims the workspace could read it there.
        return ""
    is_full = await build_keys.has_full_build_tokens(tx, workspace.template_id, hold=True)
    roles = roles_of_build(
        is_full=is_full, requested_within=build.requested_within, organization_id=workspace.organization_id
    )
    row, token = new_key(
        workspace.owner_id,
        owner.login_type,
        max_lifetime(config, owner.site_roles),
        now,
        token_name=token_name(workspace.owner_id, workspace.id),
    )
    await key_store.insert_key(
        tx,
        replace(
            row,
            last_used=now,
            build_id=build.id,
            build_template_id=workspace.template_id,
            build_organization_id=workspace.organization_id,
            build_roles=roles,
        ),
    )
    return token
