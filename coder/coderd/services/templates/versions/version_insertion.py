"""Insertion of a new template version, with its file and the queued job that imports it."""

from __future__ import annotations

import hashlib
import io
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import NotFound
from coder.api.provisioning.jobs import MatchedProvisioners
from coder.base.ids import new_uuid
from coder.coderd.services.access.workspace_access import lock_template
from coder.coderd.services.provisioning.jobs import match_provisioners
from coder.coderd.services.provisioning.new_jobs import NewJob, enqueue_job
from coder.coderd.services.templates.examples import find_example
from coder.coderd.services.templates.versions.version_specs import VersionSpec, no_example, with_last_values
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.provisioning import system_jobs
from coder.coderd.store.provisioning.jobs import JobRow
from coder.coderd.store.templates import files as file_store
from coder.coderd.store.templates import system_files, system_template_versions
from coder.coderd.store.templates import template_versions as store
from coder.coderd.store.templates.template_versions import VersionRow, VersionView
from coder.domain.access.policy import Subject

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


async def insert_version(
    tx: Tx, subject: Subject, spec: VersionSpec, now: datetime, strict: bool
) -> tuple[VersionView, JobRow, MatchedProvisioners]:
    if spec.template is not None:
        spec = replace(spec, template=await lock_template(tx, subject, spec.template.id, "create"))
    version_id = new_uuid()
    file_id = await _file(tx, spec, now)
    values = await with_last_values(tx, spec)
    new = NewJob(
        organization_id=spec.organization_id,
        initiator_id=spec.user_id,
        provisioner=spec.provisioner,
        file_id=file_id,
        type="template_version_import",
        input={
            "template_version_id": str(version_id),
            "user_variable_values": [{"name": name, "value": value} for name, value in values.items()],
        },
        tags=spec.tags,
    )
    job = await enqueue_job(tx, new, now)
    if spec.failure:
        await job_store.update_job(tx, job.id, started_at=now, completed_at=now, updated_at=now, error=spec.failure)
        job = await system_jobs.get_job(tx, job.id) or job
    version = VersionRow(
        id=version_id,
        template_id=spec.template.id if spec.template else None,
        organization_id=spec.organization_id,
        name=spec.name,
        message=spec.message,
        readme="",
        job_id=job.id,
        created_by=spec.user_id,
        created_at=now,
        updated_at=now,
        archived=False,
        has_ai_task=False,
        has_external_agent=False,
        source_example_id=spec.example_id,
        external_auth_providers=[],
    )
    await store.insert_version(tx, version)
    view = await system_template_versions.get_view(tx, version_id)
    if view is None:
        raise NotFound
    return view, job, await match_provisioners(tx, job, now, strict=strict)


async def _file(tx: Tx, spec: VersionSpec, now: datetime) -> UUID:
    if spec.file_id is not None:
        file = await system_files.get_file_head(tx, spec.file_id)
        if file is None:
            raise NotFound("File not found.")
        return file.id
    example = find_example(spec.example_id)
    if example is None:
        raise no_example(spec.example_id)
    digest = hashlib.sha256(example.archive).hexdigest()
    row = file_store.FileRow(new_uuid(), digest, spec.user_id, now, "application/x-tar", b"")
    return await file_store.keep_file(tx, row, io.BytesIO(example.archive))
