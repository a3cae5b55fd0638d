"""New template versions: from an uploaded file or a bundled example to a queued import.

What the import found is read in `template_versions.py`; the import itself is `services/templates/import_messages.py`.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from coder.api.base.refusals import Conflict, Invalid, NotFound, Refusal
from coder.api.provisioning.jobs import MatchedProvisioners
from coder.api.templates.template_versions import CreateTemplateVersionRequest, TemplateVersion
from coder.base.ids import new_uuid, random_name
from coder.coderd.services.access.authorization import may
from coder.coderd.services.access.workspace_access import lock_template, template_resource
from coder.coderd.services.foundation.sandbox import Documents, SandboxEvaluationError
from coder.coderd.services.foundation.uniqueness import told_as
from coder.coderd.services.provisioning.jobs import match_provisioners
from coder.coderd.services.provisioning.new_jobs import NewJob, enqueue_job
from coder.coderd.services.provisioning.provisioners import check_tags
from coder.coderd.services.templates.dynamic_parameters import read_owner, refusal_of, render_in_sandbox
from coder.coderd.services.templates.examples import find_example
from coder.coderd.services.templates.files import require_file
from coder.coderd.services.templates.template_files import bundled_template, stored_template
from coder.coderd.services.templates.template_version_view import present_version
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.provisioning.jobs import JobRow
from coder.coderd.store.templates import files as file_store
from coder.coderd.store.templates import template_versions as store
from coder.coderd.store.templates import templates as template_store
from coder.coderd.store.templates.template_versions import VersionRow, VersionView
from coder.coderd.store.templates.templates import TemplateRow
from coder.domain.access.policy import Resource, Subject
from coder.domain.provisioning.tags import normalize_tags
from coder.domain.rendering.module_scope import RenderRequest

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_NIL = UUID(int=0)


async def create_version(
    ctx: Context, subject: Subject, organization_id: UUID, body: CreateTemplateVersionRequest
) -> TemplateVersion:
    """Queues an import. Raises InvalidFields, NotFound (file, example, template), Conflict (name taken)."""
    _check_request(body)
    template = await _target(ctx, subject, organization_id, body)
    now = ctx.clock.now()
    check_tags(normalize_tags(str(subject.user_id), body.tags))
    spec = _VersionSpec(
        organization_id=organization_id,
        template=template,
        user_id=subject.user_id,
        name=_text(body.name) or random_name("_"),
        message=_text(body.message),
        provisioner=body.provisioner,
        file_id=body.file_id if isinstance(body.file_id, UUID) and body.file_id.int else None,
        example_id=_text(body.example_id),
        tags=body.tags or {},
        values={item.name: item.value for item in (body.user_variable_values or ())},
    )
    if spec.file_id is not None:
        await require_file(ctx, subject, spec.file_id)
    spec = await _with_all_tags(ctx, subject, spec)
    with told_as(name_taken(spec.name)):
        view, job, matched = await ctx.db.run(_create, subject, spec, now, ctx.config.provisioner_strict_tags)
    return present_version(view, job, matched=matched)


@dataclass(frozen=True, slots=True)
class _VersionSpec:
    organization_id: UUID
    template: TemplateRow | None
    user_id: UUID
    name: str
    message: str
    provisioner: str
    file_id: UUID | None
    example_id: str
    tags: Mapping[str, str]
    values: Mapping[str, str]
    failure: str = ""
    "Why the import has failed before it began."


async def _with_all_tags(ctx: Context, subject: Subject, spec: _VersionSpec) -> _VersionSpec:
    """The template's own workspace tags below those asked for. Raises Invalid for tags or presets that cannot be."""
    files = await _files(ctx, spec)
    owner = await read_owner(ctx, subject, spec.organization_id, spec.user_id)
    variables = {name: value for name, value in (await ctx.db.read(_with_last_values, spec)).items() if value}
    request = RenderRequest({}, owner or {}, variables)
    try:
        tags, refusal = await render_in_sandbox(ctx, "version", request, files, subject.user_id)
    except SandboxEvaluationError as error:
        # The version is made, so that its author sees in its import what is wrong with it.
        return replace(spec, tags=normalize_tags(str(spec.user_id), spec.tags), failure=f"{error.message} {error.hint}")
    told = refusal_of(refusal)
    if told is not None:
        raise told
    return replace(spec, tags=normalize_tags(str(spec.user_id), tags, spec.tags))


async def _files(ctx: Context, spec: _VersionSpec) -> Documents:
    if spec.file_id is not None:
        return stored_template(ctx, spec.file_id, None)
    example = find_example(spec.example_id)
    if example is None:
        raise _no_example(spec)
    return bundled_template(spec.example_id, example.archive)


def _no_example(spec: _VersionSpec) -> NotFound:
    return NotFound("Example not found.", f'example with id "{spec.example_id}" not found: example not found')


def _check_request(body: CreateTemplateVersionRequest) -> None:
    """Beyond the table of field rules."""
    if isinstance(body.file_id, UUID) and body.file_id.int and _text(body.example_id):
        raise Invalid("You cannot specify both an example_id and a file_id.")


async def _target(
    ctx: Context, subject: Subject, organization_id: UUID, body: CreateTemplateVersionRequest
) -> TemplateRow | None:
    """The template the version is for, once the caller may create it: a version is a program on the provisioner, not a
    setting that `update` would cover."""
    if not isinstance(body.template_id, UUID) or not body.template_id.int:
        if not may(subject, "create", Resource("template", organization_id=organization_id)):
            raise NotFound  # readers are told no more than others (recorded)
        return None
    row = await ctx.db.read(template_store.get_template, body.template_id)
    if row is None or row.deleted or row.organization_id != organization_id:
        raise NotFound("Template does not exist.")
    if not may(subject, "create", template_resource(row)):
        raise NotFound
    return row


async def _create(
    tx: Tx, subject: Subject, spec: _VersionSpec, now: datetime, strict: bool
) -> tuple[VersionView, JobRow, MatchedProvisioners]:
    if spec.template is not None:
        spec = replace(spec, template=await lock_template(tx, subject, spec.template.id, "create"))
    version_id = new_uuid()
    file_id = await _file(tx, spec, now)
    values = await _with_last_values(tx, spec)
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
        job = await job_store.get_job(tx, job.id) or job
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
    view = await store.get_view(tx, version_id)
    if view is None:
        raise NotFound
    return view, job, await match_provisioners(tx, job, now, strict=strict)


async def _file(tx: Tx, spec: _VersionSpec, now: datetime) -> UUID:
    if spec.file_id is not None:
        file = await file_store.get_file_head(tx, spec.file_id)
        if file is None:
            raise NotFound("File not found.")
        return file.id
    example = find_example(spec.example_id)
    if example is None:
        raise _no_example(spec)
    digest = hashlib.sha256(example.archive).hexdigest()
    row = file_store.FileRow(new_uuid(), digest, spec.user_id, now, "application/x-tar", b"")
    return await file_store.keep_file(tx, row, io.BytesIO(example.archive))


async def _with_last_values(tx: Tx, spec: _VersionSpec) -> dict[str, str]:
    """What was given, over what the active version was given; defaults are left to the new source."""
    values: dict[str, str] = {}
    if spec.template is not None:
        for row in await store.list_variables(tx, spec.template.active_version_id):
            if row.value != row.default_value:
                values[row.name] = row.value
    return values | dict(spec.values)


def name_taken(name: str) -> dict[str, Refusal]:
    """For `told_as`."""
    taken = Conflict(
        f'A template version with name "{name}" already exists for this template.',
        validations=[("name", "This value is already in use and should be unique.")],
    )
    return {"uq_template_versions_template_id_name": taken}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
