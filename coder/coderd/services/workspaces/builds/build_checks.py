"""Checks of a build request against template and version: access, import, privileges, external logins.

The order of the checks and their messages are upstream's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Failed, Forbidden, Invalid, NotAcceptable, NotFound
from coder.coderd.services.access.authorization import may
from coder.coderd.services.access.workspace_access import template_resource
from coder.coderd.services.templates.rollout_offers import find_offered_version
from coder.coderd.services.workspaces.builds.build_requests import BuildRequest, BuildRules, StaleValuesError
from coder.coderd.store.provisioning import system_jobs
from coder.coderd.store.provisioning.jobs import JobRow
from coder.coderd.store.templates import system_template_versions, system_templates
from coder.coderd.store.templates.template_versions import VersionRow
from coder.coderd.store.templates.templates import TemplateRow
from coder.coderd.store.workspaces.builds import BuildRow
from coder.domain.access.policy import ALL, Class, Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.workspaces.workspaces import WorkspaceRow, WorkspaceView

_TEMPLATE_MANAGERS = "Only template managers may provide custom state"
_DEBUG_OFF = "Terraform debug mode is disabled in the deployment configuration."
_DEBUG_ADMINS = "Workspace builds with a custom log level are restricted to administrators only."
_NEEDS_LOGIN = "The template needs an external login that the owner of the workspace does not have."


_NO_ACCESS = "You do not have permission to use the template of this workspace."
_NO_ACCESS_DETAIL = (
    "Ask an administrator of the template to give you access to it. You can still stop and delete the workspace."
)


def may_use(subject: Subject, template: TemplateRow) -> bool:
    """Return whether the caller may build a template's versions.

    The key must allow `read`, as upstream's does. Only the user's own permissions decide about `use`: upstream's scope
    for operating workspaces does not contain it.
    """
    resource = template_resource(template)
    return may(subject, "read", resource) and may(replace(subject, scope=ALL), "use", resource)


def check_template_access(
    subject: Subject, template: TemplateRow, request: BuildRequest, last_version_id: UUID | None
) -> None:
    """Require access to the template for a start, and for every build with another version than the last one.

    A user who lost access to the template can still stop and delete the workspace. Raises Forbidden.
    """
    other = request.version_id is not None and request.version_id != last_version_id
    if (request.transition == "start" or other) and not may_use(subject, template):
        raise Forbidden(_NO_ACCESS, _NO_ACCESS_DETAIL)


async def require_template_access(ctx: Context, subject: Subject, view: WorkspaceView, request: BuildRequest) -> None:
    """Check access to the template before the request's version is rendered; `enqueue_build` checks again.

    Raises NotFound, Forbidden.
    """
    template = await ctx.db.read(system_templates.get_template, view.workspace.template_id)
    if template is None:
        raise NotFound
    check_template_access(subject, template, request, view.latest.build.template_version_id)


async def select_version(
    tx: Tx, template: TemplateRow, request: BuildRequest, last: BuildRow | None
) -> tuple[VersionRow, JobRow]:
    """Return the requested, last or active version, and its import job. Raises Invalid, Failed."""
    version_id = request.version_id or (last.template_version_id if last else template.active_version_id)
    version = await system_template_versions.get_version(tx, version_id)
    if version is None or version.organization_id != template.organization_id:
        raise Invalid("template version does not exist", f"get template version {version_id}: no such version")
    if version.template_id != template.id:
        valid = _format_go_bool(version.template_id)
        raise Invalid(
            "template version doesn't match template",
            f"templateVersion.TemplateID = {{UUID:{version.template_id} Valid:{valid}}}, template.ID = {template.id}",
        )
    job = await system_jobs.get_job(tx, version.job_id)
    if job is None:
        raise Failed("The import job of the template version does not exist.")
    _check_import(version, job)
    return version, job


def _check_import(version: VersionRow, job: JobRow) -> None:
    if job.status == "succeeded":
        return
    if job.status == "failed":
        message = (
            f'The provided template version "{version.name}" has failed to import: "{job.error}". '
            "You cannot build workspaces with it!"
        )
    elif job.status == "canceled":
        message = (
            f'The provided template version "{version.name}" was canceled during import. '
            "You cannot build workspaces with it!"
        )
    else:
        message = f"The provided template version is {job.status}. Wait for it to complete importing!"
        raise NotAcceptable(message, message)
    raise Invalid(message, message)


def check_privileges(subject: Subject, template: TemplateRow, request: BuildRequest, rules: BuildRules) -> None:
    """Check custom state, orphan and log level. Raises Forbidden, Invalid."""
    is_manager = may(subject, "update", template_resource(template))
    if (request.state is not None or request.orphan) and not is_manager:
        raise Forbidden(_TEMPLATE_MANAGERS, _TEMPLATE_MANAGERS)
    if request.log_level and not may(subject, "read", Class("deployment_config")):
        raise Invalid(_DEBUG_ADMINS, _DEBUG_ADMINS)
    if request.log_level and not rules.terraform_debug_mode:
        raise Invalid(_DEBUG_OFF, _DEBUG_OFF)


async def check_required_version(
    tx: Tx,
    subject: Subject,
    workspace: WorkspaceRow,
    template: TemplateRow,
    version: VersionRow,
    request: BuildRequest,
    last: BuildRow | None,
) -> None:
    """Require the active version for starts, if the template does, or the one that a rollout offers. Raises Forbidden.

    Both are valid during a rollout: clients that do not know of rollouts request the active version.
    """
    is_free = not template.require_active_version or request.transition != "start"
    if is_free or version.id == template.active_version_id or may(subject, "update", template_resource(template)):
        return
    current = last.template_version_id if last is not None else None
    if current is not None and version.id == await find_offered_version(
        tx, template, workspace.id, workspace.owner_id, current
    ):
        return
    message = "Template version must be the active version: this template requires it."
    raise Forbidden(message, message)


def check_logins(version: VersionRow, request: BuildRequest) -> None:
    """Check that the owner has the required external logins. Raises StaleValuesError, Forbidden."""
    logins = request.logins
    if logins is None:
        return
    if logins.version_id != version.id:
        raise StaleValuesError
    if logins.providers:
        raise Forbidden(_NEEDS_LOGIN, "The owner of the workspace must log in at: " + ", ".join(logins.providers))


def _format_go_bool(value: UUID | None) -> str:
    """Format whether the id is set as Go prints it: the message is upstream's."""
    return "true" if value is not None else "false"
