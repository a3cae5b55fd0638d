"""Messages of template imports and dry runs: their description for a daemon, and the report of an import's parse.

Dry runs are included because they need the same values. The result is `import_results.py`; the order of messages is
docs/protocol/provisioners.md#jobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Invalid
from coder.base.json_types import as_list, as_object, as_text
from coder.coderd.services.provisioning.job_handlers import JobUpdate
from coder.coderd.store.provisioning.jobs import JobRow
from coder.coderd.store.templates import system_template_versions
from coder.coderd.store.templates import template_versions as store
from coder.coderd.store.templates.template_versions import VariableRow
from coder.domain.provisioning.jobs import clean_text
from coder.rpc.proto import provisioner_pb2, provisionerd_pb2

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


_EVERYONE = "Everyone"


async def describe_import(tx: Tx, job: JobRow, access_url: str) -> provisionerd_pb2.AcquiredJob.TemplateImport:
    """Return an import as a daemon receives it."""
    version = await require_version(tx, job)
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
    """Return a dry run as a daemon receives it."""
    version = await require_version(tx, job)
    parameters = map(as_object, as_list(job.input.get("rich_parameter_values")))
    overrides = _user_values(job)
    return provisionerd_pb2.AcquiredJob.TemplateDryRun(
        rich_parameter_values=[
            provisioner_pb2.RichParameterValue(name=as_text(item["name"]), value=as_text(item["value"]))
            for item in parameters
        ],
        variable_values=await variable_values(tx, version.id, overrides),
        metadata=provisioner_pb2.Metadata(
            coder_url=access_url,
            workspace_name=as_text(job.input.get("workspace_name")),
            workspace_owner_groups=[_EVERYONE],
        ),
    )


async def variable_values(
    tx: Tx, version_id: UUID, overrides: Mapping[str, str] | None = None
) -> list[provisioner_pb2.VariableValue]:
    """Return the values of a version's variables, as every job that plans with it receives them."""
    return [
        provisioner_pb2.VariableValue(
            name=row.name, value=(overrides or {}).get(row.name, row.value), sensitive=row.sensitive
        )
        for row in await store.list_variables(tx, version_id)
    ]


async def record_parse(tx: Tx, job: JobRow, request: provisionerd_pb2.UpdateJobRequest, now: datetime) -> JobUpdate:
    """Store the parts of the template that an update has; absent parts stay as stored."""
    version = await require_version(tx, job)
    if request.readme:
        readme = clean_text(request.readme.decode("utf-8", "replace"))
        await store.update_version(tx, version.id, readme=readme, updated_at=now)
    if request.workspace_tags:
        await store.replace_workspace_tags(tx, version.id, dict(request.workspace_tags))
    if not request.template_variables:
        return JobUpdate()
    values_by_name = _user_values(job) | {item.name: item.value for item in request.user_variable_values}
    rows = [
        VariableRow(
            template_version_id=version.id,
            name=variable.name,
            description=clean_text(variable.description),
            type=variable.type,
            value=values_by_name.get(variable.name, variable.default_value),
            default_value=variable.default_value,
            required=variable.required,
            sensitive=variable.sensitive,
        )
        for variable in {variable.name: variable for variable in request.template_variables}.values()
    ]
    await store.replace_variables(tx, version.id, rows)
    values = [provisioner_pb2.VariableValue(name=row.name, value=row.value, sensitive=row.sensitive) for row in rows]
    return JobUpdate(values, [row.name for row in rows if row.required and not row.value])


def _user_values(job: JobRow) -> dict[str, str]:
    values = map(as_object, as_list(job.input.get("user_variable_values")))
    return {as_text(item["name"]): as_text(item["value"]) for item in values}


async def require_version(tx: Tx, job: JobRow) -> store.VersionRow:
    version = await system_template_versions.get_version(tx, job.version_id) if job.version_id else None
    if version is None:
        raise Invalid("the template version of the job was deleted")
    return version
