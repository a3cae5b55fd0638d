"""New template versions: from an uploaded file or a bundled example to a queued import.

What the import found is read in `template_versions.py`; the import itself is `import_work.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from coder.api.provisioners import MatchedProvisioners
from coder.api.template_versions import CreateTemplateVersionRequest, TemplateVersion
from coder.base.ids import new_uuid, random_name
from coder.coderd.services.authorization import may
from coder.coderd.services.dynamic_parameters import compute, fresh_id, read_owner, refusal_of
from coder.coderd.services.errors import Conflict, Invalid, InvalidFields, NotFound
from coder.coderd.services.examples import find_example
from coder.coderd.services.jobs import NewJob, match_provisioners, post_job
from coder.coderd.services.provisioners import check_tags
from coder.coderd.services.template_files import TemplateFiles, unpack_untrusted
from coder.coderd.services.template_version_view import present_version
from coder.coderd.services.templates import check_name
from coder.coderd.services.workspace_access import template_resource
from coder.coderd.store import files as file_store
from coder.coderd.store import template_versions as store
from coder.coderd.store import templates as template_store
from coder.coderd.store.errors import IntegrityError
from coder.coderd.store.jobs import JobRow
from coder.coderd.store.template_versions import VersionRow, VersionView
from coder.coderd.store.templates import TemplateRow
from coder.domain.names import is_version_name
from coder.domain.policy import Resource, Subject
from coder.domain.provisioners import PROVISIONERS
from coder.domain.rendering.parameters import render
from coder.domain.rendering.presets import check_presets, render_presets
from coder.domain.rendering.sources import ParsedFiles
from coder.domain.rendering.tags import render_tags
from coder.domain.rendering.world import Request
from coder.domain.tags import normalize_tags

if TYPE_CHECKING:
    from coder.coderd.services.context import Context
    from coder.coderd.store.database import Tx

_NIL = UUID(int=0)
MAX_MESSAGE_LENGTH = 1_048_576


async def create_version(
    ctx: Context, subject: Subject, organization_id: UUID, body: CreateTemplateVersionRequest
) -> TemplateVersion:
    """Queues an import. Raises InvalidFields, NotFound (file, example, template), Conflict (name taken)."""
    _check_request(body)
    template = await _target(ctx, subject, organization_id, body)
    now = ctx.clock.now()
    check_tags(normalize_tags(str(subject.user_id), body.tags))
    wish = _Wish(
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
    wish = replace(wish, tags=await _all_tags(ctx, subject, wish))
    try:
        view, job, matched = await ctx.db.run(_create, wish, now, ctx.config.provisioner_strict_tags)
    except IntegrityError as error:
        raise explain_taken(error, wish.name) from error
    ctx.wake_provisioners()
    return present_version(view, job, matched=matched)


@dataclass(frozen=True, slots=True)
class _Wish:
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


async def _all_tags(ctx: Context, subject: Subject, wish: _Wish) -> dict[str, str]:
    """The template's own workspace tags below those asked for. Raises Invalid for tags or presets that cannot be."""
    files = await _files(ctx, wish)
    owner = await read_owner(ctx, subject, wish.organization_id, wish.user_id)
    variables = {name: value for name, value in (await ctx.db.read(_with_last_values, wish)).items() if value}
    request = Request({}, owner or {}, variables, fresh_id)
    tags, refusal = await compute(ctx, lambda: _render(files, request))
    if refusal is not None:
        raise refusal
    return normalize_tags(str(wish.user_id), tags, wish.tags)


async def _files(ctx: Context, wish: _Wish) -> ParsedFiles:
    if wish.file_id is not None:
        kept: TemplateFiles = ctx.part(TemplateFiles)
        return await kept.load(wish.file_id, None)
    example = find_example(wish.example_id)
    if example is None:
        raise NotFound("Example not found.")
    return ParsedFiles(unpack_untrusted(example.archive))


def _render(files: ParsedFiles, request: Request) -> tuple[dict[str, str], Invalid | None]:
    rendered = render(files, request)
    tags, refusal = render_tags(rendered)
    return tags, refusal_of(refusal or check_presets(render_presets(files, request, rendered)))


def _check_request(body: CreateTemplateVersionRequest) -> None:
    faults: list[tuple[str, str]] = []
    name = _text(body.name)
    fault = check_name("name", name, valid=not name or is_version_name(name), tag="template_version_name")
    faults += [fault] if fault else []
    faults += _one_of("storage_method", body.storage_method, ("file",))
    has_file = isinstance(body.file_id, UUID) and body.file_id.int != 0
    if not has_file and not _text(body.example_id):
        detail = 'Validation failed for tag "required_without" with value: "{}"'
        faults += [("file_id", detail.format(_NIL)), ("example_id", detail.format(""))]
    faults += _one_of("provisioner", body.provisioner, PROVISIONERS)
    if len(_text(body.message)) > MAX_MESSAGE_LENGTH:
        faults.append(("message", 'Validation failed for tag "lt" with value: "<too long>"'))
    if faults:
        raise InvalidFields(*faults)
    if has_file and _text(body.example_id):
        raise Invalid("You cannot specify both an example_id and a file_id.")


def _one_of(field: str, value: str, allowed: Sequence[str]) -> list[tuple[str, str]]:
    if value in allowed:
        return []
    tag = "oneof" if value else "required"
    return [(field, f'Validation failed for tag "{tag}" with value: "{value}"')]


async def _target(
    ctx: Context, subject: Subject, organization_id: UUID, body: CreateTemplateVersionRequest
) -> TemplateRow | None:
    """The template the version is for, once the caller may write there."""
    if not isinstance(body.template_id, UUID) or not body.template_id.int:
        if not may(subject, "create", Resource("template", organization_id=organization_id)):
            raise NotFound  # readers are told no more than others (recorded)
        return None
    row = await ctx.db.read(template_store.get_template, body.template_id)
    if row is None or row.deleted or row.organization_id != organization_id:
        raise NotFound("Template does not exist.")
    if not may(subject, "update", template_resource(row)):
        raise NotFound
    return row


async def _create(tx: Tx, wish: _Wish, now: datetime, strict: bool) -> tuple[VersionView, JobRow, MatchedProvisioners]:
    version_id = new_uuid()
    file_id = await _file(tx, wish, now)
    values = await _with_last_values(tx, wish)
    new = NewJob(
        organization_id=wish.organization_id,
        initiator_id=wish.user_id,
        provisioner=wish.provisioner,
        file_id=file_id,
        type="template_version_import",
        input={
            "template_version_id": str(version_id),
            "user_variable_values": [{"name": name, "value": value} for name, value in values.items()],
        },
        tags=wish.tags,
    )
    job = await post_job(tx, new, now)
    version = VersionRow(
        id=version_id,
        template_id=wish.template.id if wish.template else None,
        organization_id=wish.organization_id,
        name=wish.name,
        message=wish.message,
        readme="",
        job_id=job.id,
        created_by=wish.user_id,
        created_at=now,
        updated_at=now,
        archived=False,
        has_ai_task=False,
        has_external_agent=False,
        source_example_id=wish.example_id,
        external_auth_providers=[],
    )
    await store.insert_version(tx, version)
    view = await store.get_view(tx, version_id)
    if view is None:
        raise NotFound
    return view, job, await match_provisioners(tx, job, now, strict=strict)


async def _file(tx: Tx, wish: _Wish, now: datetime) -> UUID:
    if wish.file_id is not None:
        file = await file_store.get_file(tx, wish.file_id)
        if file is None:
            raise NotFound("File not found.")
        return file.id
    example = find_example(wish.example_id)
    if example is None:
        raise NotFound("Example not found.")
    digest = hashlib.sha256(example.archive).hexdigest()
    found = await file_store.find_file(tx, digest, wish.user_id)
    if found is not None:
        return found
    row = file_store.FileRow(new_uuid(), digest, wish.user_id, now, "application/x-tar", example.archive)
    await file_store.insert_file(tx, row)
    return row.id


async def _with_last_values(tx: Tx, wish: _Wish) -> dict[str, str]:
    """What was given, over what the active version was given; defaults are left to the new source."""
    values: dict[str, str] = {}
    if wish.template is not None:
        for row in await store.list_variables(tx, wish.template.active_version_id):
            if row.value != row.default_value:
                values[row.name] = row.value
    return values | dict(wish.values)


def explain_taken(error: IntegrityError, name: str) -> Exception:
    """A taken name as its refusal; anything else as it was."""
    if "uq_template_versions_template_id_name" not in str(error.orig):
        return error
    return Conflict(
        f'A template version with name "{name}" already exists for this template.',
        validations=[("name", "This value is already in use and should be unique.")],
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
