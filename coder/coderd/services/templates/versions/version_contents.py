"""Contents of template versions, as their import found them: parameters, variables, presets, logins, resources."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Invalid, NotFound, TooEarly
from coder.api.login.external_auth import TemplateVersionExternalAuth
from coder.api.templates.parameters import Preset, TemplateVersionParameter
from coder.api.templates.template_versions import (
    TemplateVersionVariable,
)
from coder.api.workspaces.builds import WorkspaceResource
from coder.coderd.services.access import owner_identity
from coder.coderd.services.access.authorization import knows_user, may, require
from coder.coderd.services.agents.agent_view import planned_context
from coder.coderd.services.agents.resource_view import load_resources, present_resources
from coder.coderd.services.login import external_auth
from coder.coderd.services.login.required_logins import required_providers
from coder.coderd.services.templates.versions.loaded_versions import LoadedVersion, load_version
from coder.coderd.services.templates.versions.template_version_view import (
    present_parameter,
    present_preset,
    present_variable,
)
from coder.coderd.store.provisioning.jobs import JobRow
from coder.coderd.store.templates import template_versions as store
from coder.domain.access.policy import Class, Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


async def list_parameters(ctx: Context, subject: Subject, version_id: UUID) -> list[TemplateVersionParameter]:
    """Return a version's parameters. Raises TooEarly while the import runs."""
    _check_imported(await load_version(ctx, subject, version_id))
    return [present_parameter(row) for row in await ctx.db.read(store.list_parameters, version_id)]


async def list_variables(ctx: Context, subject: Subject, version_id: UUID) -> list[TemplateVersionVariable]:
    """Return a version's variables; values of sensitive ones are redacted. Raises TooEarly while the import runs."""
    _check_imported(await load_version(ctx, subject, version_id))
    return [present_variable(row) for row in await ctx.db.read(store.list_variables, version_id)]


def _check_imported(loaded: LoadedVersion) -> None:
    if loaded.job.completed_at is None:
        raise TooEarly("Template version job has not finished")


async def list_presets(ctx: Context, subject: Subject, version_id: UUID) -> list[Preset]:
    await load_version(ctx, subject, version_id)
    return [present_preset(row) for row in await ctx.db.read(store.list_presets, version_id)]


async def list_external_auth(
    ctx: Context, subject: Subject, version_id: UUID, user_id: UUID | None = None
) -> list[TemplateVersionExternalAuth]:
    """Return the template's required logins, and whether the user (the caller for None) is linked to each.

    For another user, the caller needs permission to create workspaces for that user.
    """
    loaded = await load_version(ctx, subject, version_id)
    if user_id is not None and user_id != subject.user_id:
        resource = Class("workspace", owner_id=user_id, organization_id=loaded.version.organization_id)
        require(subject, "create", resource)
        if not knows_user(subject, user_id, [loaded.version.organization_id]):
            raise NotFound
        await ctx.db.read(owner_identity.require_member, subject, user_id, loaded.version.organization_id)
    return await external_auth.required_of(ctx, user_id or subject.user_id, required_providers(loaded.version))


async def list_resources(ctx: Context, subject: Subject, version_id: UUID) -> list[WorkspaceResource]:
    """Return the resources that a version's import found. Raises Invalid while the import runs."""
    loaded = await load_version(ctx, subject, version_id)
    # No workspace exists yet that other readers of the template could connect to.
    return await show_resources(ctx, loaded.job, reveals=may(subject, "update", loaded.resource))


async def show_resources(ctx: Context, job: JobRow, *, reveals: bool) -> list[WorkspaceResource]:
    """Return the resources that an import or dry run found. Raises Invalid before its end.

    `reveals`: whether the reader may see the values of environment variables.
    """
    if job.completed_at is None:
        raise Invalid("Job hasn't completed!")
    loaded = await ctx.db.read(load_resources, [job.id])
    return present_resources(loaded, job.id, planned_context(ctx, reveals=reveals))
