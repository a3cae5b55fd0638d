"""Placing a build: from what somebody asked for to a job in the queue, in one transaction.

Whoever changes a workspace comes through here: people (`builds.py`, `workspaces.py` for the first build, tasks) and the
server itself (`autobuilds.py`, `prebuilds.py`, `orphaning.py`). The order of the checks and their words are upstream's.
The job is put into the queue by `enqueue_job` (coder/coderd/services/provisioning/new_jobs.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Conflict, Failed, Forbidden, Invalid
from coder.base.ids import new_uuid
from coder.coderd.services.access.authorization import may
from coder.coderd.services.access.workspace_access import template_resource
from coder.coderd.services.login.required_logins import MissingLogins
from coder.coderd.services.provisioning.new_jobs import NewJob, enqueue_job
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.provisioning.jobs import JobRow
from coder.coderd.store.templates import template_versions as version_store
from coder.coderd.store.templates.template_versions import VersionRow
from coder.coderd.store.templates.templates import TemplateRow
from coder.coderd.store.workspaces import builds as build_store
from coder.coderd.store.workspaces import workspaces as workspace_store
from coder.coderd.store.workspaces.builds import BuildRow
from coder.coderd.store.workspaces.change_feed import notify_change
from coder.coderd.store.workspaces.workspaces import WorkspaceRow
from coder.domain.access.policy import Resource, Subject
from coder.domain.provisioning.tags import normalize_tags
from coder.domain.templates.parameters import keep_parameters, resolve_parameters
from coder.domain.workspaces.builds import is_active

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

ACTIVE = "A workspace build is already active."
_TEMPLATE_MANAGERS = "Only template managers may provide custom state"
_DEBUG_OFF = "Terraform debug mode is disabled in the deployment configuration."
_DEBUG_ADMINS = "Workspace builds with a custom log level are restricted to administrators only."
_NEEDS_LOGIN = "The template needs an external login that the owner of the workspace does not have."
_NULL = re.compile(r"""\s*(null|"\$\{\s*null\s*\}")\s*""")
"A tag without a value is no tag, also in the quotes of Terraform's JSON."
_PARAMETER_REFERENCE = re.compile(r"data\.coder_parameter\.([A-Za-z0-9_-]+)\.value")


class StaleValuesError(Exception):
    """Values were rendered for a version or after a build that is no longer the one in question."""


class FormNeededError(Exception):
    """A stop or delete build has values of parameters the import never saw: only the form tells which are ephemeral."""


@dataclass(frozen=True, slots=True)
class PreparedBuild:
    """What rendering the template gave for a start build, and what it was rendered from."""

    version_id: UUID
    last_build_id: UUID | None
    values: Mapping[str, str]
    tags: Mapping[str, str]
    refusal: Invalid | None
    "Why there can be no such build; said after everything that is more basic was found in order."


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """What is asked for."""

    transition: str
    initiator_id: UUID
    version_id: UUID | None = None
    "None keeps the last build's version; the first build takes the template's active one."
    given: Mapping[str, str] = field(default_factory=dict)
    preset_id: UUID | None = None
    state: bytes | None = None
    "Terraform state to use instead of the last build's."
    orphan: bool = False
    "Forget the resources instead of destroying them."
    log_level: str = ""
    reason: str = "initiator"
    priority: int = 0
    "0 somebody waits for it, 1 made ahead."
    prepared: PreparedBuild | None = None
    "None: values follow from what the version's import recorded."
    ephemeral: frozenset[str] | None = None
    "Of a stop or delete build: what the form says counts for one build only. None: nobody has asked the form yet."
    logins: MissingLogins | None = None
    "None: the version needs no external login, or nothing is started."


@dataclass(frozen=True, slots=True)
class BuildRules:
    """Settings of the deployment that builds depend on."""

    terraform_debug_mode: bool = False
    strict_tags: bool = False
    "Only counted by: the queue asks the setting itself."


async def enqueue_build(
    tx: Tx,
    subject: Subject,
    workspace: WorkspaceRow,
    template: TemplateRow,
    request: BuildRequest,
    rules: BuildRules,
    now: datetime,
) -> BuildRow:
    """Queues the build. `workspace` must be locked by `tx`; who may do the transition was asked before.

    Raises Conflict (a build is active), Forbidden, InvalidFields (parameters), Invalid, StaleValuesError,
    FormNeededError.
    """
    last = await build_store.get_latest_build(tx, workspace.id)
    if last is not None:
        await _check_idle(tx, last)
    version, version_job = await _version(tx, template, request, last)
    _check_privileges(subject, template, version, request, rules)
    _check_logins(version, request)
    parameters = await _parameters(tx, template, version, request, last)
    build_id = new_uuid()
    job = await enqueue_job(
        tx,
        NewJob(
            organization_id=workspace.organization_id,
            initiator_id=request.initiator_id,
            provisioner=template.provisioner,
            file_id=version_job.file_id,
            type="workspace_build",
            input={"workspace_build_id": str(build_id)},
            tags=await _tags(tx, workspace, template, version_job, parameters, request, last),
            priority=request.priority,
        ),
        now,
    )
    build = BuildRow(
        id=build_id,
        created_at=now,
        updated_at=now,
        workspace_id=workspace.id,
        template_version_id=version.id,
        build_number=last.build_number + 1 if last else 1,
        transition=request.transition,
        initiator_id=request.initiator_id,
        job_id=job.id,
        reason=request.reason,
        log_level=request.log_level,
        deadline=None,
        max_deadline=None,
        daily_cost=last.daily_cost if last else 0,  # see services/people/quotas.py
        template_version_preset_id=request.preset_id,
        has_ai_task=None,
        has_external_agent=None,
    )
    await build_store.insert_build(tx, build, state=await _state(tx, request, last), parameters=parameters)
    if request.transition == "start" and workspace.dormant_at is not None:
        await workspace_store.update_workspace(tx, workspace.id, dormant_at=None, deleting_at=None, last_used_at=now)
    await notify_change(tx, "state", owner_id=workspace.owner_id, workspace_id=workspace.id)
    return build


async def _check_idle(tx: Tx, last: BuildRow) -> None:
    job = await job_store.get_job(tx, last.job_id)
    if job is not None and is_active(job.status):
        raise Conflict(ACTIVE, ACTIVE)


async def _version(
    tx: Tx, template: TemplateRow, request: BuildRequest, last: BuildRow | None
) -> tuple[VersionRow, JobRow]:
    wanted = request.version_id or (last.template_version_id if last else template.active_version_id)
    version = await version_store.get_version(tx, wanted)
    if version is None or version.organization_id != template.organization_id:
        raise Invalid("template version does not exist", f"get template version {wanted}: no such version")
    if version.template_id != template.id:
        raise Invalid(
            "template version doesn't match template",
            f"templateVersion.TemplateID = {{UUID:{version.template_id} Valid:{_as_go(version.template_id)}}}, "
            f"template.ID = {template.id}",
        )
    job = await job_store.get_job(tx, version.job_id)
    if job is None:
        raise Failed("the import job of the template version is gone")
    _check_import(version, job)
    return version, job


def _check_import(version: VersionRow, job: JobRow) -> None:
    if job.status == "succeeded":
        return
    if job.status == "failed":
        said = (
            f'The provided template version "{version.name}" has failed to import: "{job.error}". '
            "You cannot build workspaces with it!"
        )
    elif job.status == "canceled":
        said = (
            f'The provided template version "{version.name}" was canceled during import. '
            "You cannot build workspaces with it!"
        )
    else:
        said = f"The provided template version is {job.status}. Wait for it to complete importing!"
    raise Invalid(said, said)


def _check_privileges(
    subject: Subject, template: TemplateRow, version: VersionRow, request: BuildRequest, rules: BuildRules
) -> None:
    manages = may(subject, "update", template_resource(template))
    if (request.state is not None or request.orphan) and not manages:
        raise Forbidden(_TEMPLATE_MANAGERS, _TEMPLATE_MANAGERS)
    if request.log_level and not may(subject, "read", Resource("deployment_config")):
        raise Invalid(_DEBUG_ADMINS, _DEBUG_ADMINS)
    if request.log_level and not rules.terraform_debug_mode:
        raise Invalid(_DEBUG_OFF, _DEBUG_OFF)
    stale = version.id != template.active_version_id
    if template.require_active_version and stale and request.transition == "start" and not manages:
        said = "Template version must be the active version: this template requires it."
        raise Forbidden(said, said)


def _check_logins(version: VersionRow, request: BuildRequest) -> None:
    logins = request.logins
    if logins is None:
        return
    if logins.version_id != version.id:
        raise StaleValuesError
    if logins.providers:
        raise Forbidden(_NEEDS_LOGIN, "The owner of the workspace must log in at: " + ", ".join(logins.providers))


async def _parameters(
    tx: Tx, template: TemplateRow, version: VersionRow, request: BuildRequest, last: BuildRow | None
) -> dict[str, str]:
    preset = await _preset(tx, version, request.preset_id)
    prepared = request.prepared
    if prepared is not None:
        if (prepared.version_id, prepared.last_build_id) != (version.id, last.id if last else None):
            raise StaleValuesError
        if prepared.refusal is not None:
            raise prepared.refusal
        return dict(prepared.values)
    definitions = await version_store.list_parameters(tx, version.id)
    previous = await build_store.list_parameters(tx, last.id) if last else {}
    # A form may have parameters the import never saw: they depend on others' values.
    same_form = last is not None and last.template_version_id == version.id and not template.use_classic_parameter_flow
    ephemeral = {definition.name for definition in definitions if definition.ephemeral}
    carried = {name: value for name, value in previous.items() if name not in ephemeral} if same_form else {}
    if request.transition != "start":
        if request.ephemeral is None and carried.keys() - {definition.name for definition in definitions}:
            raise FormNeededError
        kept = carried | keep_parameters(definitions, previous)
        return {name: value for name, value in kept.items() if name not in (request.ephemeral or ())}
    found = resolve_parameters(
        definitions, previous=previous, given=request.given, preset=preset, first_build=last is None
    )
    if found.refusals:
        raise Invalid(
            "Unable to validate parameters",
            validations=[(refusal.field, refusal.detail) for refusal in found.refusals],
        )
    return carried | found.values


async def _preset(tx: Tx, version: VersionRow, preset_id: UUID | None) -> dict[str, str]:
    if preset_id is None:
        return {}
    preset = await version_store.get_preset(tx, preset_id)
    if preset is None or preset.template_version_id != version.id:
        raise Invalid("failed to fetch preset parameter values", "failed to get preset parameters: no such preset")
    return {item["name"]: item["value"] for item in preset.parameters}


async def _state(tx: Tx, request: BuildRequest, last: BuildRow | None) -> bytes | None:
    if request.orphan:
        return None
    if request.state is not None:
        return request.state
    return await build_store.get_state(tx, last.id) if last else None


async def _tags(
    tx: Tx,
    workspace: WorkspaceRow,
    template: TemplateRow,
    version_job: JobRow,
    parameters: Mapping[str, str],
    request: BuildRequest,
    last: BuildRow | None,
) -> dict[str, str]:
    """The import's tags, then the template's own workspace tags with parameter values filled in."""
    owner = str(workspace.owner_id)
    if request.prepared is not None:
        return normalize_tags(owner, version_job.tags, request.prepared.tags)
    version_id = version_job.version_id
    own: dict[str, str] = {}
    for key, expression in (await version_store.list_workspace_tags(tx, version_id) if version_id else {}).items():
        if _NULL.fullmatch(expression):
            continue
        value = evaluate_tag(expression, parameters)
        if value is not None:
            own[key] = value
        elif template.use_classic_parameter_flow:
            raise Invalid(f'workspace tag "{key}" cannot be evaluated', f"unsupported expression: {expression}")
        elif last is not None and last.template_version_id == version_id:
            # Only a rendering can tell; the last build's was made from the same version and mostly the same values.
            job = await job_store.get_job(tx, last.job_id)
            own |= {key: job.tags[key]} if job is not None and key in job.tags else {}
    return normalize_tags(owner, version_job.tags, own)


def evaluate_tag(expression: str, parameters: Mapping[str, str]) -> str | None:
    """The value of a workspace tag: a literal, or the value of a parameter. None for anything else."""
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


def _as_go(value: UUID | None) -> str:
    """Whether there is one, as Go prints it: the sentence above is upstream's."""
    return "true" if value is not None else "false"
