"""What a daemon gets of a template version, and reports: variables and tags when it parsed, the rest at the end.

Dry runs are here too, since they ask for the same things. Which messages arrive when:
docs/protocol/provisioners.md#jobs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, BinaryIO
from uuid import UUID

from coder.api.base.refusals import Invalid
from coder.base.ids import new_uuid
from coder.coderd.services.provisioning.job_handlers import JobUpdate
from coder.coderd.services.provisioning.resources import BadResultError, insert_resources
from coder.coderd.store.engine.turns import Turns
from coder.coderd.store.provisioning.jobs import JobRow
from coder.coderd.store.templates import files as file_store
from coder.coderd.store.templates import template_versions as store
from coder.coderd.store.templates.template_versions import ParameterRow, PresetRow, VariableRow
from coder.domain.provisioning.jobs import clean_text
from coder.rpc.proto import provisioner_pb2, provisionerd_pb2

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

is_module_file_of_worker = store.is_module_file_of_worker

FORM_TYPES = {
    provisioner_pb2.DEFAULT: "",
    provisioner_pb2.FORM_ERROR: "error",
    provisioner_pb2.RADIO: "radio",
    provisioner_pb2.DROPDOWN: "dropdown",
    provisioner_pb2.INPUT: "input",
    provisioner_pb2.TEXTAREA: "textarea",
    provisioner_pb2.SLIDER: "slider",
    provisioner_pb2.CHECKBOX: "checkbox",
    provisioner_pb2.SWITCH: "switch",
    provisioner_pb2.TAGSELECT: "tag-select",
    provisioner_pb2.MULTISELECT: "multi-select",
}

_EVERYONE = "Everyone"


async def describe_import(tx: Tx, job: JobRow, access_url: str) -> provisionerd_pb2.AcquiredJob.TemplateImport:
    """An import as a daemon gets it."""
    version = await _version(tx, job)
    return provisionerd_pb2.AcquiredJob.TemplateImport(
        metadata=provisioner_pb2.Metadata(
            coder_url=access_url,
            workspace_owner_groups=[_EVERYONE],
            template_id=str(version.template_id) if version.template_id else "",
            template_version_id=str(version.id),
        ),
        user_variable_values=[
            provisioner_pb2.VariableValue(name=name, value=value, sensitive=True)
            for name, value in _user_values(job).items()
        ],
    )


async def describe_dry_run(tx: Tx, job: JobRow, access_url: str) -> provisionerd_pb2.AcquiredJob.TemplateDryRun:
    """A dry run as a daemon gets it."""
    version = await _version(tx, job)
    given = job.input.get("rich_parameter_values") or []
    overrides = _user_values(job)
    return provisionerd_pb2.AcquiredJob.TemplateDryRun(
        rich_parameter_values=[
            provisioner_pb2.RichParameterValue(name=item["name"], value=item["value"]) for item in given
        ],
        variable_values=await variable_values(tx, version.id, overrides),
        metadata=provisioner_pb2.Metadata(
            coder_url=access_url,
            workspace_name=job.input.get("workspace_name", ""),
            workspace_owner_groups=[_EVERYONE],
        ),
    )


async def variable_values(
    tx: Tx, version_id: UUID, overrides: Mapping[str, str] | None = None
) -> list[provisioner_pb2.VariableValue]:
    """The values stored with a version, as every job that plans with it gets them."""
    return [
        provisioner_pb2.VariableValue(
            name=row.name, value=(overrides or {}).get(row.name, row.value), sensitive=row.sensitive
        )
        for row in await store.list_variables(tx, version_id)
    ]


async def record_parse(tx: Tx, job: JobRow, request: provisionerd_pb2.UpdateJobRequest, now: datetime) -> JobUpdate:
    """Stores what an update says about the template; absent parts leave what is there."""
    version = await _version(tx, job)
    if request.readme:
        readme = clean_text(request.readme.decode("utf-8", "replace"))
        await store.update_version(tx, version.id, readme=readme, updated_at=now)
    if request.workspace_tags:
        await store.replace_workspace_tags(tx, version.id, dict(request.workspace_tags))
    if not request.template_variables:
        return JobUpdate()
    given = _user_values(job) | {item.name: item.value for item in request.user_variable_values}
    rows = [
        VariableRow(
            template_version_id=version.id,
            name=variable.name,
            description=clean_text(variable.description),
            type=variable.type,
            value=given.get(variable.name, variable.default_value),
            default_value=variable.default_value,
            required=variable.required,
            sensitive=variable.sensitive,
        )
        for variable in {variable.name: variable for variable in request.template_variables}.values()
    ]
    await store.replace_variables(tx, version.id, rows)
    values = [provisioner_pb2.VariableValue(name=row.name, value=row.value, sensitive=row.sensitive) for row in rows]
    return JobUpdate(values, [row.name for row in rows if row.required and not row.value])


async def complete_import(
    tx: Tx,
    job: JobRow,
    completed: provisionerd_pb2.CompletedJob.TemplateImport,
    module_files: BinaryIO | None,
    now: datetime,
    configured: Collection[str] = (),
) -> str:
    """Stores everything an import found; returns the error the job completes with, usually none."""
    version = await _version(tx, job)
    await insert_resources(tx, job.id, "start", completed.start_resources, now)
    await insert_resources(tx, job.id, "stop", completed.stop_resources, now)
    turns = Turns()
    await store.replace_parameters(tx, version.id, await _parameter_rows(version.id, completed, turns))
    presets = []
    for preset in completed.presets:
        presets.append(_preset_row(version.id, preset, now))
        await turns.rest()
    await store.replace_presets(tx, version.id, presets)
    providers = _external_auth(completed)
    await store.update_version(
        tx,
        version.id,
        external_auth_providers=providers,
        has_ai_task=completed.has_ai_tasks,
        has_external_agent=completed.has_external_agents,
        updated_at=now,
    )
    await _keep_modules(tx, job, version.id, completed.plan, module_files, now)
    unknown = [item["id"] for item in providers if item["id"] not in configured]
    return f'external auth provider "{unknown[0]}" is not configured' if unknown else ""


def _external_auth(completed: provisionerd_pb2.CompletedJob.TemplateImport) -> list[dict[str, Any]]:
    found = {item.id: item.optional for item in completed.external_auth_providers}
    for name in completed.external_auth_providers_names:
        found.setdefault(name, False)
    return [{"id": name, "optional": optional} for name, optional in found.items()]


async def _keep_modules(
    tx: Tx, job: JobRow, version_id: UUID, plan: bytes, module_files: BinaryIO | None, now: datetime
) -> None:
    if not plan and module_files is None:
        return
    file_id = await _put_file(tx, module_files, job.initiator_id, now) if module_files is not None else None
    await store.put_terraform(tx, version_id, cached_plan=plan or b"{}", module_files_id=file_id, now=now)


async def _put_file(tx: Tx, content: BinaryIO, created_by: UUID, now: datetime) -> UUID:
    content.seek(0)
    hashed = hashlib.sha256()
    while piece := content.read(file_store.PIECE):
        hashed.update(piece)
    digest = hashed.hexdigest()
    row = file_store.FileRow(new_uuid(), digest, created_by, now, "application/x-tar", b"")
    return await file_store.keep_file(tx, row, content)


async def _parameter_rows(
    version_id: UUID, completed: provisionerd_pb2.CompletedJob.TemplateImport, turns: Turns
) -> list[ParameterRow]:
    seen: set[str] = set()
    rows = []
    for parameter in completed.rich_parameters:
        if parameter.name in seen:
            raise BadResultError(f'the parameter "{parameter.name}" is defined more than once')
        if parameter.form_type not in FORM_TYPES:
            raise BadResultError(f'the form type of parameter "{parameter.name}" is not known')
        seen.add(parameter.name)
        rows.append(_parameter_row(version_id, parameter))
        await turns.rest()
    return rows


def _parameter_row(version_id: UUID, parameter: provisioner_pb2.RichParameter) -> ParameterRow:
    return ParameterRow(
        template_version_id=version_id,
        name=parameter.name,
        display_name=parameter.display_name,
        description=clean_text(parameter.description),
        type=parameter.type,
        form_type=FORM_TYPES[parameter.form_type],
        mutable=parameter.mutable,
        default_value=parameter.default_value,
        icon=parameter.icon,
        options=[
            {"name": option.name, "description": option.description, "value": option.value, "icon": option.icon}
            for option in parameter.options
        ],
        validation_regex=parameter.validation_regex,
        validation_error=parameter.validation_error,
        validation_min=parameter.validation_min if parameter.HasField("validation_min") else None,
        validation_max=parameter.validation_max if parameter.HasField("validation_max") else None,
        validation_monotonic=parameter.validation_monotonic,
        required=parameter.required,
        ephemeral=parameter.ephemeral,
        display_order=parameter.order,
    )


def _preset_row(version_id: UUID, preset: provisioner_pb2.Preset, now: datetime) -> PresetRow:
    prebuild = preset.prebuild if preset.HasField("prebuild") else None
    return PresetRow(
        id=new_uuid(),
        template_version_id=version_id,
        name=preset.name,
        description=preset.description,
        icon=preset.icon,
        is_default=preset.default,
        parameters=[{"name": item.name, "value": item.value} for item in preset.parameters],
        desired_instances=prebuild.instances if prebuild is not None else None,
        expire_after_seconds=prebuild.expiration_policy.ttl if prebuild is not None else 0,
        scheduling_timezone=prebuild.scheduling.timezone if prebuild is not None else "",
        schedules=[
            {"cron": item.cron, "instances": item.instances}
            for item in (prebuild.scheduling.schedule if prebuild is not None else ())
        ],
        created_at=now,
    )


def _user_values(job: JobRow) -> dict[str, str]:
    return {item["name"]: item["value"] for item in job.input.get("user_variable_values") or []}


async def _version(tx: Tx, job: JobRow) -> store.VersionRow:
    version = await store.get_version(tx, job.version_id) if job.version_id else None
    if version is None:
        raise Invalid("the template version of the job is gone")
    return version
