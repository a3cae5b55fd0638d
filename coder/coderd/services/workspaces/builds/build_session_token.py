"""Session token of the workspace's owner, for Terraform.

Every start of a user's workspace gets a fresh token, created when the daemon acquires the job. Stop and delete get no
token.
"""

from __future__ import annotations

import secrets
import string
from datetime import datetime
from typing import TYPE_CHECKING

from coder.coderd.services.access.authentication import hash_secret
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from coder.coderd.store.workspaces.build_owner import OwnerFacts
from coder.coderd.store.workspaces.builds import BuildRow
from coder.coderd.store.workspaces.workspaces import WorkspaceRow

if TYPE_CHECKING:
    from coder.coderd.config.settings import ServerConfig
    from coder.coderd.store.engine.database import Tx

_ALPHABET = string.ascii_letters + string.digits


def _token_name(workspace: WorkspaceRow) -> str:
    return f"{workspace.owner_id}_{workspace.id}_session_token"


async def revoke_session_token(tx: Tx, workspace: WorkspaceRow) -> None:
    """Revoke the token that an earlier start of the workspace got, if any."""
    await key_store.replace_token(tx, workspace.owner_id, _token_name(workspace))


async def create_session_token(
    tx: Tx, build: BuildRow, workspace: WorkspaceRow, owner: OwnerFacts, config: ServerConfig, now: datetime
) -> str:
    """Create the token of a start build and return it; empty for all other builds."""
    if build.transition != "start" or workspace.owner_id == PREBUILDS_USER_ID:
        # A key of the system user would open every unclaimed workspace, of any template and organization. A user who
        # claims the workspace could read it there.
        return ""
    key_id, secret = _random_text(10), _random_text(22)
    await key_store.insert_key(
        tx,
        key_store.KeyRow(
            id=key_id,
            user_id=workspace.owner_id,
            hashed_secret=hash_secret(secret),
            last_used=now,
            expires_at=now + config.max_token_lifetime,
            created_at=now,
            updated_at=now,
            login_type=owner.login_type,
            lifetime_seconds=int(config.max_token_lifetime.total_seconds()),
            ip_address="",
            token_name=_token_name(workspace),
            scopes=["coder:all"],
            allow_list=["*:*"],
        ),
    )
    return f"{key_id}-{secret}"


def _random_text(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))
