"""New template versions: from an uploaded file or a bundled example to a queued import.

The import itself is `services/templates/imports/import_messages.py`; its results are read in `version_contents.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from msgspec import UnsetType

from coder.api.base.refusals import Conflict, Invalid, NotFound, Refusal
from coder.api.templates.template_versions import CreateTemplateVersionRequest, TemplateVersion
from coder.base.ids import random_name
from coder.coderd.services.access.authorization import may
from coder.coderd.services.access.workspace_access import template_resource
from coder.coderd.services.foundation.uniqueness import constraint_refusals
from coder.coderd.services.provisioning.provisioners import check_tags
from coder.coderd.services.templates.examples import find_example
from coder.coderd.services.templates.files import require_file
from coder.coderd.services.templates.versions.template_version_view import present_version
from coder.coderd.services.templates.versions.version_insertion import insert_version
from coder.coderd.services.templates.versions.version_specs import VersionSpec, no_example, with_all_tags
from coder.coderd.store.templates import system_templates
from coder.coderd.store.templates.templates import TemplateRow
from coder.domain.access.policy import Class, Subject
from coder.domain.provisioning.tags import normalize_tags

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


_NIL = UUID(int=0)


async def create_version(
    ctx: Context, subject: Subject, organization_id: UUID, body: CreateTemplateVersionRequest
) -> TemplateVersion:
    """Queue the import of a new version. Raises InvalidFields, NotFound (file, example, template), Conflict (name)."""
    template = await _target(ctx, subject, organization_id, body)
    await _check_source(ctx, subject, body)
    _require_create(subject, organization_id, template)
    now = ctx.clock.now()
    check_tags(normalize_tags(str(subject.user_id), body.tags))
    spec = VersionSpec(
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
    spec = await with_all_tags(ctx, subject, spec)
    with constraint_refusals(name_taken(spec.name)):
        view, job, matched = await ctx.db.run(insert_version, subject, spec, now, ctx.config.provisioner_strict_tags)
    return present_version(view, job, matched=matched)


async def _check_source(ctx: Context, subject: Subject, body: CreateTemplateVersionRequest) -> None:
    """Require one source, which exists and which the caller may read. Raises Invalid, NotFound.

    The original looks for the source before it asks for the permission to create a version.
    """
    file_id, example_id = body.file_id, _text(body.example_id)
    if isinstance(file_id, UUID) and file_id.int:
        if example_id:
            raise Invalid("You cannot specify both an example_id and a file_id.")
        await require_file(ctx, subject, file_id)
    elif find_example(example_id) is None:
        raise no_example(example_id)


async def _target(
    ctx: Context, subject: Subject, organization_id: UUID, body: CreateTemplateVersionRequest
) -> TemplateRow | None:
    """Return the template of the version, None without one. Raises NotFound, also for a hidden one."""
    if not isinstance(body.template_id, UUID) or not body.template_id.int:
        return None
    row = await ctx.db.read(system_templates.get_template, body.template_id)
    if row is None or row.deleted or row.organization_id != organization_id:
        raise NotFound("Template does not exist.")
    if not may(subject, "read", template_resource(row)):
        raise NotFound("Template does not exist.")
    return row


def _require_create(subject: Subject, organization_id: UUID, template: TemplateRow | None) -> None:
    """Require the permission to create a version. Raises NotFound, as to others who cannot read it (recorded).

    The caller needs `create`: a version is a program that runs on the provisioner, not a setting that `update` covers.
    """
    target = Class("template", organization_id=organization_id) if template is None else template_resource(template)
    if not may(subject, "create", target):
        raise NotFound


def name_taken(name: str) -> dict[str, Refusal]:
    """Return the refusal for a taken name, by index."""
    return {"uq_template_versions_template_id_name": name_conflict(name)}


def name_conflict(name: str) -> Conflict:
    return Conflict(
        f'A template version with name "{name}" already exists for this template.',
        validations=[("name", "This value is already in use and should be unique.")],
    )


def _text(value: str | UnsetType | None) -> str:
    return value if isinstance(value, str) else ""
