"""Creation of templates, from a version that belongs to no template yet."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, cast
from uuid import UUID

from coder.api.base.enums import WorkspaceAgentPortShareLevel
from coder.api.base.refusals import InvalidFields, NotFound
from coder.api.templates.templates import CreateTemplateRequest, Template, TemplateRole
from coder.base.ids import new_uuid
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.access.workspace_access import template_resource
from coder.coderd.services.foundation.uniqueness import constraint_refusals
from coder.coderd.services.people.organizations import hold_organization
from coder.coderd.services.templates.template_checks import NAME_INDEX, check_settings, name_taken, value_or
from coder.coderd.services.templates.template_schedules import read_schedule
from coder.coderd.services.templates.templates import show_template
from coder.coderd.services.templates.versions.loaded_versions import find_version, lock_version
from coder.coderd.store.provisioning import system_jobs
from coder.coderd.store.templates import system_template_versions, system_templates
from coder.coderd.store.templates import template_versions as version_store
from coder.coderd.store.templates import templates as store
from coder.coderd.store.templates.templates import TemplateRow
from coder.domain.access.policy import Class, Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


async def create_template(
    ctx: Context, subject: Subject, organization_id: UUID, body: CreateTemplateRequest
) -> Template:
    """Create a template from a version without a template. Raises InvalidFields, NotFound, Conflict, Forbidden."""
    await ctx.db.read(_check_places, subject, organization_id, body)
    require(subject, "create", Class("template", organization_id=organization_id))
    check_settings("Invalid create template request.", body)
    schedule = read_schedule(body, "Invalid create template request.")
    row = replace(_new_row(organization_id, subject.user_id, body, ctx.clock.now()), **schedule)
    with constraint_refusals({NAME_INDEX: name_taken(row.name)}):
        await ctx.db.run(_create, subject, row)
    return await show_template(ctx, row.id)


async def _check_places(tx: Tx, subject: Subject, organization_id: UUID, body: CreateTemplateRequest) -> None:
    """Require a free name and a free version. The original says so before it asks for permission or for settings.

    A hidden template's name looks free here, and a hidden version unknown.
    """
    present = await system_templates.get_template_by_name(tx, organization_id, body.name)
    if present is not None and may(subject, "read", template_resource(present)):
        raise name_taken(body.name)
    loaded = await find_version(tx, body.template_version_id)
    if loaded is None or not may(subject, "read", loaded.resource):
        raise _missing(body.template_version_id)
    if loaded.version.organization_id != organization_id:
        raise _missing(body.template_version_id)
    if loaded.version.template_id is not None:
        raise _part_of_template(body.template_version_id)


async def _create(tx: Tx, subject: Subject, row: TemplateRow) -> None:
    await hold_organization(tx, row.organization_id)
    missing = _missing(row.active_version_id)
    try:
        loaded = await lock_version(tx, subject, row.active_version_id, "read")
    except NotFound as error:
        raise missing from error
    version = await system_template_versions.get_version(tx, row.active_version_id, lock=True)
    if version is None or version.organization_id != row.organization_id:
        raise missing
    if version.template_id is not None:
        raise _part_of_template(version.id)
    require(subject, "update", loaded.resource)
    if await system_templates.get_template_by_name(tx, row.organization_id, row.name) is not None:
        raise name_taken(row.name)
    job = await system_jobs.get_job(tx, version.job_id)
    await store.insert_template(tx, replace(row, provisioner=job.provisioner if job else row.provisioner))
    await version_store.update_version(tx, version.id, template_id=row.id, updated_at=row.created_at)


def _missing(version_id: UUID) -> NotFound:
    return _VersionMissingError(f'Template version "{version_id}" does not exist.')


def _part_of_template(version_id: UUID) -> InvalidFields:
    text = f"Template version {version_id} is already part of a template"
    return InvalidFields(("template_version_id", "Template version is already part of a template"), message=text)


class _VersionMissingError(NotFound):
    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.validations = (("template_version_id", "Template version does not exist"),)


def _new_row(organization_id: UUID, user_id: UUID, body: CreateTemplateRequest, now: datetime) -> TemplateRow:
    everyone: dict[str, TemplateRole] = {} if body.disable_everyone_group_access else {str(organization_id): "use"}
    return TemplateRow(
        id=new_uuid(),
        organization_id=organization_id,
        name=body.name,
        display_name=value_or(body.display_name, ""),
        description=value_or(body.description, ""),
        icon=value_or(body.icon, ""),
        provisioner="terraform",
        active_version_id=body.template_version_id,
        created_by=user_id,
        created_at=now,
        updated_at=now,
        deleted=False,
        deprecated="",
        default_ttl_ms=value_or(body.default_ttl_ms, 0),
        activity_bump_ms=value_or(body.activity_bump_ms, 3_600_000),
        time_til_autostop_notify_ms=value_or(body.time_til_autostop_notify_ms, 0),
        autostop_days=0,
        autostop_weeks=1,
        autostart_days=127,
        allow_user_cancel_workspace_jobs=bool(body.allow_user_cancel_workspace_jobs),
        allow_user_autostart=True,
        allow_user_autostop=True,
        failure_ttl_ms=0,
        time_til_dormant_ms=0,
        time_til_dormant_autodelete_ms=0,
        require_active_version=False,
        max_port_share_level=cast("WorkspaceAgentPortShareLevel", body.max_port_share_level or "public"),
        cors_behavior=body.cors_behavior or "simple",
        use_classic_parameter_flow=value_or(body.template_use_classic_parameter_flow, False),
        disable_module_cache=False,
        agents_allowed=value_or(body.agents_allowed, True),
        user_acl={},
        group_acl=everyone,
    )
