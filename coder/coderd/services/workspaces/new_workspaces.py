"""Inserting a new workspace and queueing its first build, in one transaction.

A prebuilt workspace that matches the request is claimed instead of inserting a row (`prebuild_claims.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Conflict, Forbidden, Invalid, NotFound
from coder.api.workspaces.workspaces import AutomaticUpdates
from coder.base.ids import new_uuid
from coder.coderd.services.access import owner_identity
from coder.coderd.services.access.authorization import may
from coder.coderd.services.access.workspace_access import (
    template_resource,
)
from coder.coderd.services.workspaces.builds.build_requests import BuildRequest, BuildRules
from coder.coderd.services.workspaces.builds.new_builds import enqueue_build
from coder.coderd.services.workspaces.builds.queued_builds import QueuedBuild, load_queued_build
from coder.coderd.services.workspaces.prebuild_claims import claim
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from coder.coderd.store.templates import system_template_versions, system_templates
from coder.coderd.store.templates.templates import TemplateRow
from coder.coderd.store.workspaces import system_workspaces
from coder.coderd.store.workspaces import workspaces as workspace_store
from coder.coderd.store.workspaces.workspaces import WorkspaceRow, WorkspaceView
from coder.domain.access.policy import Class, Subject, decide
from coder.domain.workspaces.workspaces import next_start

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

_NIL = UUID(int=0)
NAME_INDEX = "ix_workspaces_owner_id_name_living"
NAME_IN_USE = "This value is already in use and should be unique."
_USE_REFUSED = (
    "Although you are able to view the template, you are unauthorized to create a workspace using it. Please contact "
    "an administrator about your permissions if you feel this is an error."
)


@dataclass(frozen=True, slots=True)
class CreateSpec:
    """A validated request for a new workspace."""

    owner_id: UUID
    name: str
    template_id: UUID | None
    version_id: UUID | None
    autostart_schedule: str | None
    ttl_ms: int | None
    "None selects the template's default."
    automatic_updates: AutomaticUpdates
    parameters: dict[str, str]
    preset_id: UUID | None


def name_taken(name: str) -> Conflict:
    """Return the refusal for a name that another workspace of the owner has."""
    return Conflict(f'Workspace "{name}" already exists.', validations=[("name", NAME_IN_USE)])


async def enqueue_first_build(
    tx: Tx,
    subject: Subject,
    spec: CreateSpec,
    request: BuildRequest,
    organization_id: UUID | None,
    rules: BuildRules,
    now: datetime,
) -> tuple[QueuedBuild, WorkspaceView]:
    """Insert the workspace and queue its first build inside a transaction. Raises what `create_workspace` does."""
    template = await _select_template(tx, spec)
    _check_template(subject, template, spec, organization_id)
    await owner_identity.require_member(tx, subject, spec.owner_id, template.organization_id)
    if await system_workspaces.get_view_by_name(tx, spec.owner_id, spec.name) is not None:
        raise name_taken(spec.name)
    workspace = _new_row(spec, template, now)
    claimed = await claim(tx, workspace, request.preset_id)
    if claimed is None:
        await workspace_store.insert_workspace(tx, workspace)
    workspace = claimed or workspace
    build = await enqueue_build(tx, subject, workspace, template, request, rules, now)
    view = await system_workspaces.get_view(tx, workspace.id)
    if view is None:
        raise NotFound
    return await load_queued_build(tx, build.id, rules, now), view


async def _select_template(tx: Tx, spec: CreateSpec) -> TemplateRow:
    template_id = spec.template_id
    if spec.version_id is not None:
        version = await system_template_versions.get_version(tx, spec.version_id)
        if version is None:
            raise Invalid(
                f'Template version "{spec.version_id}" doesn\'t exist.',
                validations=[("template_version_id", "template not found")],
            )
        if version.template_id is None:
            raise Invalid(
                "Template version is not linked to a template.",
                validations=[("template_version_id", "template version is not linked to a template")],
            )
        if version.archived:
            raise Invalid(
                "Archived template versions cannot be used to make a workspace.",
                validations=[("template_version_id", "template version archived")],
            )
        template_id = version.template_id
    # The row is held: a concurrent deletion or loss of permission must not be followed by a new workspace.
    template = await system_templates.get_template(tx, template_id or _NIL, hold=True)
    if template is None:
        raise _no_template(template_id)
    return template


def _no_template(template_id: UUID | None) -> Invalid:
    return Invalid(f'Template "{template_id}" doesn\'t exist.', validations=[("template_id", "template not found")])


def _check_template(subject: Subject, template: TemplateRow, spec: CreateSpec, organization_id: UUID | None) -> None:
    # A user who could read the template learns that it was deleted (recorded), and nothing more.
    resource = template_resource(replace(template, deleted=False))
    if not may(subject, "read", resource) or (
        organization_id is not None and organization_id != template.organization_id
    ):
        raise _no_template(template.id)
    new = Class("workspace", owner_id=spec.owner_id, organization_id=template.organization_id)
    # Only the server creates the system user's workspaces; users claim one through the preset.
    if spec.owner_id == PREBUILDS_USER_ID or not decide(subject, "create", new):
        raise Forbidden
    if template.deleted:
        raise NotFound(f'Template "{template.name}" has been deleted!')
    if not may(subject, "use", resource):
        raise Forbidden(f'Unauthorized access to use the template "{template.name}".', _USE_REFUSED)
    if template.deprecated:
        raise Invalid(
            f'Template "{template.name}" has been deprecated, and cannot be used to create a new workspace.',
            template.deprecated,
        )
    if spec.autostart_schedule and not template.allow_user_autostart:
        raise Invalid(
            "Invalid Autostart Schedule.", validations=[("schedule", "the template does not allow autostart")]
        )


def _new_row(spec: CreateSpec, template: TemplateRow, now: datetime) -> WorkspaceRow:
    # None selects the template's default; 0 means "never stops automatically".
    ttl_ms = spec.ttl_ms if spec.ttl_ms is not None and template.allow_user_autostop else template.default_ttl_ms
    return WorkspaceRow(
        id=new_uuid(),
        created_at=now,
        updated_at=now,
        owner_id=spec.owner_id,
        organization_id=template.organization_id,
        template_id=template.id,
        name=spec.name,
        deleted=False,
        autostart_schedule=spec.autostart_schedule,
        ttl_ms=ttl_ms or None,
        last_used_at=now,
        dormant_at=None,
        deleting_at=None,
        next_start_at=next_start(spec.autostart_schedule, now, allowed_days=template.autostart_days),
        automatic_updates=spec.automatic_updates,
        favorite=False,
        user_acl={},
        group_acl={},
        latest_build_id=None,
    )
