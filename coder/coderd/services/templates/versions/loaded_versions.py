"""Template versions of requests: loaded with template and import job, and checked for permission."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import NotFound
from coder.coderd.services.access.authorization import require
from coder.coderd.services.access.workspace_access import template_resource
from coder.coderd.store.provisioning import system_jobs
from coder.coderd.store.provisioning.jobs import JobRow
from coder.coderd.store.templates import system_template_versions, system_templates
from coder.coderd.store.templates.template_versions import VersionRow
from coder.coderd.store.templates.templates import TemplateRow
from coder.domain.access.policy import Class, Subject, Target

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class LoadedVersion:
    """A version with the template and job that its permissions depend on."""

    version: VersionRow
    template: TemplateRow | None
    job: JobRow

    @property
    def resource(self) -> Target:
        """Resource of the policy for the version."""
        if self.template is None:
            return Class("template", organization_id=self.version.organization_id)
        return template_resource(self.template)


async def load_version(ctx: Context, subject: Subject, version_id: UUID, action: str = "read") -> LoadedVersion:
    """Load a version and require `action`. Raises NotFound, Forbidden."""
    return _required(subject, await ctx.db.read(find_version, version_id), action)


async def lock_version(tx: Tx, subject: Subject, version_id: UUID, action: str = "update") -> LoadedVersion:
    """Load a version with its template locked, which decides the permission. Raises as `load_version`.

    The version's own row is not locked here: an import locks its job first, and the caller locks the row to write it.
    """
    seen = await system_template_versions.get_version(tx, version_id)
    if seen is not None and seen.template_id is not None:
        await system_templates.get_template(tx, seen.template_id, lock=True)
    return _required(subject, await find_version(tx, version_id), action)


def _required(subject: Subject, loaded: LoadedVersion | None, action: str) -> LoadedVersion:
    if loaded is None:
        raise NotFound
    require(subject, action, loaded.resource)
    return loaded


async def find_version(tx: Tx, version_id: UUID) -> LoadedVersion | None:
    """Return a version with its template and job, without a check."""
    version = await system_template_versions.get_version(tx, version_id)
    if version is None:
        return None
    template = await system_templates.get_template(tx, version.template_id) if version.template_id else None
    job = await system_jobs.get_job(tx, version.job_id)
    return LoadedVersion(version, template, job) if job is not None else None
