"""Parameter values and provisioner tags of a build, resolved inside the transaction that queues it.

They come from a rendering (`build_parameters.py`) where there is one, otherwise from what the version's import
recorded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Invalid
from coder.coderd.services.workspaces.builds.build_requests import BuildRequest, FormNeededError, StaleValuesError
from coder.coderd.store.provisioning import system_jobs
from coder.coderd.store.provisioning.jobs import JobRow
from coder.coderd.store.templates import system_template_versions
from coder.coderd.store.templates import template_versions as version_store
from coder.coderd.store.templates.template_versions import VersionRow
from coder.coderd.store.templates.templates import TemplateRow
from coder.coderd.store.workspaces import builds as build_store
from coder.coderd.store.workspaces.builds import BuildRow
from coder.coderd.store.workspaces.workspaces import WorkspaceRow
from coder.domain.provisioning.tags import normalize_tags
from coder.domain.templates.parameters import keep_parameters, resolve_parameters

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

_NULL = re.compile(r"""\s*(null|"\$\{\s*null\s*\}")\s*""")
"A tag whose value is null is not set, also when Terraform's JSON quotes it."
_PARAMETER_REFERENCE = re.compile(r"data\.coder_parameter\.([A-Za-z0-9_-]+)\.value")


async def resolve_values(
    tx: Tx, template: TemplateRow, version: VersionRow, request: BuildRequest, last: BuildRow | None
) -> dict[str, str]:
    """Return the values of the build's parameters. Raises Invalid, StaleValuesError, FormNeededError."""
    preset = await _preset_values(tx, version, request.preset_id)
    prepared = request.prepared
    if prepared is not None:
        if (prepared.version_id, prepared.last_build_id) != (version.id, last.id if last else None):
            raise StaleValuesError
        if prepared.refusal is not None:
            raise prepared.refusal
        return dict(prepared.values)
    definitions = await version_store.list_parameters(tx, version.id)
    previous = await build_store.list_parameters(tx, last.id) if last else {}
    # A form may have parameters that the import did not record: they depend on the values of others.
    same_form = last is not None and last.template_version_id == version.id and not template.use_classic_parameter_flow
    ephemeral = {definition.name for definition in definitions if definition.ephemeral}
    carried = {name: value for name, value in previous.items() if name not in ephemeral} if same_form else {}
    if request.transition != "start":
        if request.ephemeral is None and carried.keys() - {definition.name for definition in definitions}:
            raise FormNeededError
        kept = carried | keep_parameters(definitions, previous)
        return {name: value for name, value in kept.items() if name not in (request.ephemeral or ())}
    resolution = resolve_parameters(
        definitions, previous=previous, given=request.parameters, preset=preset, first_build=last is None
    )
    if resolution.refusals:
        raise Invalid(
            "Unable to validate parameters",
            validations=[(refusal.field, refusal.detail) for refusal in resolution.refusals],
        )
    return carried | resolution.values


async def _preset_values(tx: Tx, version: VersionRow, preset_id: UUID | None) -> dict[str, str]:
    if preset_id is None:
        return {}
    preset = await system_template_versions.get_preset(tx, preset_id)
    if preset is None or preset.template_version_id != version.id:
        raise Invalid("failed to fetch preset parameter values", "failed to get preset parameters: no such preset")
    return {item["name"]: item["value"] for item in preset.parameters}


async def resolve_tags(
    tx: Tx,
    workspace: WorkspaceRow,
    template: TemplateRow,
    version_job: JobRow,
    parameters: Mapping[str, str],
    request: BuildRequest,
    last: BuildRow | None,
) -> dict[str, str]:
    """Return the import's tags, then the template's own workspace tags with parameter values filled in."""
    owner = str(workspace.owner_id)
    if request.prepared is not None:
        return normalize_tags(owner, version_job.tags, request.prepared.tags)
    version_id = version_job.version_id
    workspace_tags: dict[str, str] = {}
    for key, expression in (await version_store.list_workspace_tags(tx, version_id) if version_id else {}).items():
        if _NULL.fullmatch(expression):
            continue
        value = evaluate_tag(expression, parameters)
        if value is not None:
            workspace_tags[key] = value
        elif template.use_classic_parameter_flow:
            raise Invalid(f'workspace tag "{key}" cannot be evaluated', f"unsupported expression: {expression}")
        elif last is not None and last.template_version_id == version_id:
            # Only a rendering knows the value. The last build rendered the same version with mostly the same values.
            job = await system_jobs.get_job(tx, last.job_id)
            workspace_tags |= {key: job.tags[key]} if job is not None and key in job.tags else {}
    return normalize_tags(owner, version_job.tags, workspace_tags)


def evaluate_tag(expression: str, parameters: Mapping[str, str]) -> str | None:
    """Return the value of a workspace tag: a literal or a parameter's value. None for any other expression."""
    text = expression.strip()
    reference = _PARAMETER_REFERENCE.fullmatch(text)
    if reference:
        return parameters.get(reference.group(1))
    if len(text) >= 2 and text[0] == text[-1] == '"':
        body = text[1:-1]
        inner = re.fullmatch(r"\$\{(.*)\}", body)
        if inner:
            return evaluate_tag(inner.group(1), parameters)
        return None if "${" in body else body
    return text if re.fullmatch(r"[A-Za-z0-9_.-]+", text) else None
