"""Builds that create and delete prebuilt workspaces."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Refusal
from coder.base.ids import new_uuid
from coder.coderd.services.workspaces.builds.build_metrics import EnqueuedBuild
from coder.coderd.services.workspaces.builds.build_parameters import BuildTarget, Prepare
from coder.coderd.services.workspaces.builds.build_requests import BuildRequest, BuildRules
from coder.coderd.services.workspaces.builds.new_builds import enqueue_build
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from coder.coderd.store.templates import system_templates
from coder.coderd.store.workspaces import system_workspaces
from coder.coderd.store.workspaces import workspaces as workspace_store
from coder.coderd.store.workspaces.prebuilds import PrebuildPreset
from coder.coderd.store.workspaces.workspaces import WorkspaceRow
from coder.domain.access.policy import SYSTEM

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

_PRIORITY = 1


async def create_prebuild(tx: Tx, preset: PrebuildPreset, now: datetime, prepare: Prepare) -> list[EnqueuedBuild]:
    """Insert a prebuilt workspace and queue its start build; nothing for a deleted template."""
    template = await system_templates.get_template(tx, preset.template_id, hold=True)
    if template is None or template.deleted:
        return []
    workspace_id = new_uuid()
    workspace = WorkspaceRow(
        id=workspace_id,
        created_at=now,
        updated_at=now,
        owner_id=PREBUILDS_USER_ID,
        organization_id=preset.organization_id,
        template_id=preset.template_id,
        name=f"prebuild-{workspace_id.hex[-12:]}",
        deleted=False,
        autostart_schedule=None,
        ttl_ms=None,
        last_used_at=now,
        dormant_at=None,
        deleting_at=None,
        next_start_at=None,
        automatic_updates="never",
        favorite=False,
        user_acl={},
        group_acl={},
        latest_build_id=None,
    )
    await workspace_store.insert_workspace(tx, workspace)
    request = BuildRequest(
        transition="start",
        initiator_id=PREBUILDS_USER_ID,
        version_id=preset.version_id,
        preset_id=preset.preset_id,
        priority=_PRIORITY,
    )
    request = prepare(request, BuildTarget(PREBUILDS_USER_ID, preset.template_id))
    await enqueue_build(tx, SYSTEM, workspace, template, request, BuildRules(), now)
    return [EnqueuedBuild(request, template.provisioner)]


async def delete_prebuild(tx: Tx, workspace_id: UUID, now: datetime) -> list[EnqueuedBuild]:
    """Queue a delete build. Return nothing if the workspace was claimed meanwhile or is being built."""
    workspace = await system_workspaces.get_workspace(tx, workspace_id, lock=True)
    if workspace is None or workspace.deleted or workspace.owner_id != PREBUILDS_USER_ID:
        return []
    template = await system_templates.get_template(tx, workspace.template_id)
    if template is None:
        return []
    request = BuildRequest("delete", PREBUILDS_USER_ID, ephemeral=frozenset(), priority=_PRIORITY)
    try:
        await enqueue_build(tx, SYSTEM, workspace, template, request, BuildRules(), now)
    except Refusal:  # another build is active: the next turn tries again
        return []
    return [EnqueuedBuild(request, template.provisioner)]
