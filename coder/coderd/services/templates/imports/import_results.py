"""Results of a completed template import: resources, parameters, presets, external authentication, modules."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import TYPE_CHECKING, BinaryIO
from uuid import UUID

from coder.base.ids import new_uuid
from coder.base.json_types import JsonObject
from coder.coderd.services.provisioning.resources import BadResultError, insert_resources
from coder.coderd.services.templates.imports.import_messages import require_version
from coder.coderd.services.templates.imports.module_files import keep_modules
from coder.coderd.store.engine.turns import Turns
from coder.coderd.store.provisioning.jobs import JobRow
from coder.coderd.store.templates import template_versions as store
from coder.coderd.store.templates.template_versions import ParameterRow, PresetRow
from coder.domain.provisioning.jobs import clean_text
from coder.rpc.proto import provisioner_pb2, provisionerd_pb2

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


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


async def complete_import(
    tx: Tx,
    job: JobRow,
    completed: provisionerd_pb2.CompletedJob.TemplateImport,
    module_files: BinaryIO | None,
    now: datetime,
    configured: Collection[str] = (),
) -> str:
    """Store the results of an import; return the error that the job completes with, usually none."""
    version = await require_version(tx, job)
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
    await keep_modules(tx, job, version.id, completed.plan, module_files, now)
    unknown = [item["id"] for item in providers if item["id"] not in configured]
    return f'external auth provider "{unknown[0]}" is not configured' if unknown else ""


def _external_auth(completed: provisionerd_pb2.CompletedJob.TemplateImport) -> list[JsonObject]:
    providers = {item.id: item.optional for item in completed.external_auth_providers}
    for name in completed.external_auth_providers_names:
        providers.setdefault(name, False)
    return [{"id": name, "optional": optional} for name, optional in providers.items()]


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
