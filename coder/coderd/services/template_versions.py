"""Template versions: making them from a file or an example, reading what their import found, archiving.

A version without a template is seen by those who may make templates; one with a template by those who may read that.
The import itself is a job: `jobs.py`, `import_work.py`. Dry runs are `dry_runs.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from msgspec import UNSET

from coder.api.builds import WorkspaceResource
from coder.api.external_auth import TemplateVersionExternalAuth
from coder.api.parameters import Preset, PresetParameter, TemplateVersionParameter, TemplateVersionParameterOption
from coder.api.provisioners import MatchedProvisioners
from coder.api.template_versions import (
    CreateTemplateVersionRequest,
    PatchTemplateVersionRequest,
    TemplateVersion,
    TemplateVersionVariable,
)
from coder.api.users import MinimalUser
from coder.base.ids import new_uuid, random_name
from coder.coderd.services.agent_view import AgentScene
from coder.coderd.services.authorization import may, require
from coder.coderd.services.errors import Conflict, Failed, Invalid, InvalidFields, NotFound, TooEarly
from coder.coderd.services.examples import find_example
from coder.coderd.services.jobs import NewJob, cancel_job, load_places, match_provisioners, post_job, present_job
from coder.coderd.services.provisioners import check_tags
from coder.coderd.services.resources import load_resources, present_resources
from coder.coderd.services.templates import check_name, load_template
from coder.coderd.services.workspace_access import template_resource
from coder.coderd.services.workspace_view import TROUBLESHOOTING_URL
from coder.coderd.store import files as file_store
from coder.coderd.store import jobs as job_store
from coder.coderd.store import template_versions as store
from coder.coderd.store import templates as template_store
from coder.coderd.store.errors import IntegrityError
from coder.coderd.store.jobs import JobRow
from coder.coderd.store.template_versions import ParameterRow, PresetRow, VariableRow, VersionRow, VersionView
from coder.coderd.store.templates import TemplateRow
from coder.domain.markdown import plain_text
from coder.domain.names import is_version_name
from coder.domain.policy import Resource, Subject
from coder.domain.provisioners import PROVISIONERS
from coder.domain.queue import NO_PLACE, Place
from coder.domain.tags import normalize_tags

if TYPE_CHECKING:
    from coder.coderd.services.context import Context
    from coder.coderd.store.database import Tx

_NIL = UUID(int=0)
_REDACTED = "*redacted*"
MAX_MESSAGE_LENGTH = 1_048_576


# ---- access


@dataclass(frozen=True, slots=True)
class Loaded:
    """A version with what decides who may see it."""

    version: VersionRow
    template: TemplateRow | None
    job: JobRow

    @property
    def resource(self) -> Resource:
        """What the policy is asked about."""
        if self.template is None:
            return Resource("template", organization_id=self.version.organization_id)
        return template_resource(self.template)


async def load_version(ctx: Context, subject: Subject, version_id: UUID, action: str = "read") -> Loaded:
    """Raises NotFound, Forbidden."""
    loaded = await ctx.db.read(_load, version_id)
    if loaded is None:
        raise NotFound
    require(subject, action, loaded.resource)
    return loaded


async def _load(tx: Tx, version_id: UUID) -> Loaded | None:
    version = await store.get_version(tx, version_id)
    if version is None:
        return None
    template = await template_store.get_template(tx, version.template_id) if version.template_id else None
    job = await job_store.get_job(tx, version.job_id)
    return Loaded(version, template, job) if job is not None else None


# ---- making


async def create_version(
    ctx: Context, subject: Subject, organization_id: UUID, body: CreateTemplateVersionRequest
) -> TemplateVersion:
    """Queues an import. Raises InvalidFields, NotFound (file, example, template), Conflict (name taken)."""
    _check_request(body)
    template = await _target(ctx, subject, organization_id, body)
    now = ctx.clock.now()
    tags = normalize_tags(str(subject.user_id), body.tags)
    check_tags(tags)
    wish = _Wish(
        organization_id=organization_id,
        template=template,
        user_id=subject.user_id,
        name=_text(body.name) or random_name("_"),
        message=_text(body.message),
        provisioner=body.provisioner,
        file_id=body.file_id if isinstance(body.file_id, UUID) and body.file_id.int else None,
        example_id=_text(body.example_id),
        tags=tags,
        values={item.name: item.value for item in (body.user_variable_values or ())},
    )
    try:
        view, job, matched = await ctx.db.run(_create, wish, now, ctx.config.provisioner_strict_tags)
    except IntegrityError as error:
        raise _explain_taken(error, wish.name) from error
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
        require(subject, "create", Resource("template", organization_id=organization_id))
        return None
    row = await ctx.db.read(template_store.get_template, body.template_id)
    if row is None or row.deleted or row.organization_id != organization_id:
        raise NotFound("Template does not exist.")
    require(subject, "update", template_resource(row))
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


# ---- reading


async def get_version(ctx: Context, subject: Subject, version_id: UUID) -> TemplateVersion:
    loaded = await load_version(ctx, subject, version_id)
    return await _show(ctx, loaded.version.id)


async def _show(ctx: Context, version_id: UUID) -> TemplateVersion:
    shown = await ctx.db.read(_read_shown, version_id, ctx.clock.now(), ctx.config.provisioner_strict_tags)
    if not shown:
        raise NotFound
    return shown


async def _read_shown(tx: Tx, version_id: UUID, now: datetime, strict: bool) -> TemplateVersion | None:
    view = await store.get_view(tx, version_id)
    return (await _present_all(tx, [view], now, strict))[0] if view is not None else None


async def _present_all(tx: Tx, views: Sequence[VersionView], now: datetime, strict: bool) -> list[TemplateVersion]:
    jobs = await job_store.get_jobs(tx, [view.version.job_id for view in views])
    places = await load_places(tx, list(jobs.values()), now, strict=strict)
    shown = []
    for view in views:
        job = jobs[view.version.job_id]
        waits = job.status == "pending"
        matched = await match_provisioners(tx, job, now, strict=strict) if waits else None
        shown.append(present_version(view, job, places.get(job.id, NO_PLACE), matched=matched))
    return shown


@dataclass(frozen=True, slots=True)
class VersionPage:
    """Which versions of a template to list."""

    include_archived: bool = False
    after_id: UUID | None = None
    limit: int = 0
    offset: int = 0


async def list_versions(ctx: Context, subject: Subject, template_id: UUID, page: VersionPage) -> list[TemplateVersion]:
    """Oldest first. Raises Invalid for an unknown `after_id`."""
    template = await load_template(ctx, subject, template_id)
    return await ctx.db.read(_list, template.id, page, ctx.clock.now(), ctx.config.provisioner_strict_tags)


async def _list(tx: Tx, template_id: UUID, page: VersionPage, now: datetime, strict: bool) -> list[TemplateVersion]:
    after = None
    if page.after_id is not None:
        after = await store.get_version(tx, page.after_id)
        if after is None:
            raise Invalid(f'Record at "after_id" ("{page.after_id}") does not exists.')
    views = await store.list_views(
        tx,
        template_id,
        include_archived=page.include_archived,
        after=after,
        limit=page.limit,
        offset=page.offset,
    )
    return await _present_all(tx, views, now, strict)


async def get_version_by_name(ctx: Context, subject: Subject, template: TemplateRow, name: str) -> TemplateVersion:
    """Raises NotFound with the name in it."""
    require(subject, "read", template_resource(template))
    view = await ctx.db.read(store.get_view_by_name, template.id, name)
    if view is None:
        raise NotFound(f'No template version found by name "{name}".')
    return await _show(ctx, view.version.id)


async def get_previous_version(
    ctx: Context, subject: Subject, template: TemplateRow, name: str
) -> TemplateVersion | None:
    """The version before the one of that name; None for the first."""
    require(subject, "read", template_resource(template))
    view = await ctx.db.read(store.get_view_by_name, template.id, name)
    if view is None:
        raise NotFound(f'No template version found by name "{name}".')
    previous = await ctx.db.read(store.get_previous_view, view.version)
    return await _show(ctx, previous.version.id) if previous is not None else None


async def find_template(ctx: Context, subject: Subject, organization_id: UUID, name: str) -> TemplateRow:
    """A template by its name. Raises NotFound."""
    row = await ctx.db.read(template_store.get_template_by_name, organization_id, name)
    if row is None or not may(subject, "read", template_resource(row)):
        raise NotFound
    return row


async def list_parameters(ctx: Context, subject: Subject, version_id: UUID) -> list[TemplateVersionParameter]:
    """Raises TooEarly while the import runs."""
    loaded = await load_version(ctx, subject, version_id)
    if loaded.job.completed_at is None:
        raise TooEarly("Template version job has not finished")
    return [present_parameter(row) for row in await ctx.db.read(store.list_parameters, version_id)]


async def list_variables(ctx: Context, subject: Subject, version_id: UUID) -> list[TemplateVersionVariable]:
    """Values of sensitive ones are not shown."""
    await load_version(ctx, subject, version_id)
    return [_present_variable(row) for row in await ctx.db.read(store.list_variables, version_id)]


async def list_presets(ctx: Context, subject: Subject, version_id: UUID) -> list[Preset]:
    await load_version(ctx, subject, version_id)
    return [_present_preset(row) for row in await ctx.db.read(store.list_presets, version_id)]


async def list_external_auth(ctx: Context, subject: Subject, version_id: UUID) -> list[TemplateVersionExternalAuth]:
    """Providers the template wants its users to be signed in to. None can be configured yet."""
    await load_version(ctx, subject, version_id)
    return []


async def list_resources(ctx: Context, subject: Subject, version_id: UUID) -> list[WorkspaceResource]:
    """Raises Invalid while the import runs."""
    loaded = await load_version(ctx, subject, version_id)
    return await show_resources(ctx, loaded.job)


async def show_resources(ctx: Context, job: JobRow) -> list[WorkspaceResource]:
    """What a finished import or dry run found. Raises Invalid before its end."""
    if job.completed_at is None:
        raise Invalid("Job hasn't completed!")
    loaded = await ctx.db.read(load_resources, [job.id])
    url = ctx.config.agent_fallback_troubleshooting_url or TROUBLESHOOTING_URL
    return present_resources(loaded, job.id, AgentScene(now=ctx.clock.now(), troubleshooting_url=url))


# ---- changing


async def update_version(
    ctx: Context, subject: Subject, version_id: UUID, body: PatchTemplateVersionRequest
) -> TemplateVersion:
    """Renames it or changes its message. Raises InvalidFields, Conflict."""
    fault = check_name(
        "name", body.name, valid=not body.name or is_version_name(body.name), tag="template_version_name"
    )
    if fault is not None:
        raise InvalidFields(fault)
    loaded = await load_version(ctx, subject, version_id, "update")
    changes: dict[str, Any] = {"updated_at": ctx.clock.now()}
    if body.name:
        changes["name"] = body.name
    if isinstance(body.message, str):
        changes["message"] = body.message
    try:
        await ctx.db.run(_write, loaded.version.id, changes)
    except IntegrityError as error:
        raise _explain_taken(error, body.name) from error
    return await _show(ctx, loaded.version.id)


async def _write(tx: Tx, version_id: UUID, changes: dict[str, Any]) -> None:
    await store.update_version(tx, version_id, **changes)


async def cancel_import(ctx: Context, subject: Subject, version_id: UUID) -> None:
    """Raises Invalid when the import ended or was canceled before."""
    loaded = await load_version(ctx, subject, version_id, "update")
    await ctx.db.run(cancel_job, loaded.job.id, ctx.clock.now())


async def archive_version(ctx: Context, subject: Subject, version_id: UUID, *, archived: bool) -> None:
    """Raises Invalid when it is so already, Failed when it is in use."""
    loaded = await _load_for_archive(ctx, subject, version_id)
    await ctx.db.run(_archive, loaded.version.id, archived, ctx.clock.now())


async def _load_for_archive(ctx: Context, subject: Subject, version_id: UUID) -> Loaded:
    # Upstream tells readers who may not archive that there is nothing.
    loaded = await ctx.db.read(_load, version_id)
    if loaded is None or not may(subject, "update", loaded.resource):
        raise NotFound("Template or template versions not found.")
    return loaded


async def _archive(tx: Tx, version_id: UUID, archived: bool, now: datetime) -> None:
    version = await store.get_version(tx, version_id, lock=True)
    if version is None:
        raise NotFound
    if version.archived == archived:
        raise Invalid(f"Template version already {'archived' if archived else 'unarchived'}")
    if archived and await template_store.uses_version(tx, version_id):
        raise Failed(
            "Internal error fetching template version.",
            "Unable to archive specified version, the version is likely in use by a workspace or currently set "
            "to the active version",
        )
    await store.update_version(tx, version_id, archived=archived, updated_at=now)


async def archive_unused(ctx: Context, subject: Subject, template_id: UUID, *, everything: bool) -> list[UUID]:
    """Archives what nobody needs: failed versions, or all that are not in use."""
    template = await ctx.db.read(template_store.get_template, template_id)
    if template is None or template.deleted or not may(subject, "read", template_resource(template)):
        raise NotFound
    if not may(subject, "update", template_resource(template)):
        raise NotFound("Template or template versions not found.")
    return await ctx.db.run(_archive_unused, template_id, not everything, ctx.clock.now())


async def _archive_unused(tx: Tx, template_id: UUID, only_failed: bool, now: datetime) -> list[UUID]:
    return await store.archive_unused(tx, template_id, only_failed=only_failed, now=now)


def _explain_taken(error: IntegrityError, name: str) -> Exception:
    if "uq_template_versions_template_id_name" not in str(error.orig):
        return error
    return Conflict(
        f'A template version with name "{name}" already exists for this template.',
        validations=[("name", "This value is already in use and should be unique.")],
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


# ---- JSON


def present_version(
    view: VersionView, job: JobRow, place: Place = NO_PLACE, *, matched: MatchedProvisioners | None = None
) -> TemplateVersion:
    """`matched` is shown while the import waits for a daemon."""
    version = view.version
    return TemplateVersion(
        id=version.id,
        template_id=version.template_id or _NIL,
        organization_id=version.organization_id,
        created_at=version.created_at,
        updated_at=version.updated_at,
        name=version.name,
        message=version.message,
        job=present_job(job, place),
        readme=version.readme,
        created_by=MinimalUser(
            id=version.created_by,
            username=view.username,
            name=view.name or UNSET,
            avatar_url=view.avatar_url or UNSET,
        ),
        archived=version.archived,
        has_external_agent=version.has_external_agent,
        matched_provisioners=matched if matched is not None else UNSET,
    )


def present_parameter(row: ParameterRow) -> TemplateVersionParameter:
    return TemplateVersionParameter(
        name=row.name,
        display_name=row.display_name or UNSET,
        description=row.description,
        description_plaintext=plain_text(row.description),
        type=row.type,
        form_type=row.form_type,
        mutable=row.mutable,
        default_value=row.default_value,
        icon=row.icon,
        options=[TemplateVersionParameterOption(**option) for option in row.options],
        validation_error=row.validation_error or UNSET,
        validation_regex=row.validation_regex or UNSET,
        validation_min=row.validation_min if row.validation_min is not None else UNSET,
        validation_max=row.validation_max if row.validation_max is not None else UNSET,
        validation_monotonic=cast("Any", row.validation_monotonic) or UNSET,
        required=row.required,
        ephemeral=row.ephemeral,
    )


def _present_variable(row: VariableRow) -> TemplateVersionVariable:
    hidden = row.sensitive
    return TemplateVersionVariable(
        name=row.name,
        description=row.description,
        type=row.type,
        value=_REDACTED if hidden else row.value,
        default_value=_REDACTED if hidden else row.default_value,
        required=row.required,
        sensitive=row.sensitive,
    )


def _present_preset(row: PresetRow) -> Preset:
    parameters = sorted(row.parameters, key=lambda item: item["name"])
    return Preset(
        ID=str(row.id),
        Name=row.name,
        Parameters=[PresetParameter(Name=item["name"], Value=item["value"]) for item in parameters],
        Default=row.is_default,
        DesiredPrebuildInstances=row.desired_instances,
        Description=row.description,
        Icon=row.icon,
    )
