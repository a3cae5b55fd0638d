"""Template versions, their imports, and dry runs."""

from __future__ import annotations

import uuid
from uuid import UUID

import msgspec
import trio
from quart import Blueprint, Response, websocket

from coder.api import codec
from coder.api.parameters import DynamicParametersRequest
from coder.api.template_versions import (
    CreateTemplateVersionDryRunRequest,
    CreateTemplateVersionRequest,
    PatchTemplateVersionRequest,
)
from coder.coderd.http.auth import authenticated, context, subject
from coder.coderd.http.job_logs import send_job_logs, stream_job_logs
from coder.coderd.http.json import message, read_body, reply
from coder.coderd.http.query import path_uuid
from coder.coderd.http.streams import needs_upgrade
from coder.coderd.services import dry_runs, new_template_versions, template_versions
from coder.coderd.services.dynamic_parameters import Form, open_form
from coder.coderd.services.errors import Invalid
from coder.coderd.services.organizations import resolve_organization

blueprint = Blueprint("template_versions", __name__, url_prefix="/api/v2")

_VERSION = "/templateversions/<version>"
_DRY_RUN = f"{_VERSION}/dry-run/<job>"


@blueprint.post("/organizations/<organization>/templateversions")
@authenticated
async def post_version(organization: str) -> Response:
    row = await resolve_organization(context(), subject(), organization)
    body = await read_body(CreateTemplateVersionRequest)
    return reply(await new_template_versions.create_version(context(), subject(), row.id, body), 201)


@blueprint.get(_VERSION)
@authenticated
async def get_version(version: str) -> Response:
    return reply(await template_versions.get_version(context(), subject(), path_uuid(version)))


@blueprint.patch(_VERSION)
@authenticated
async def patch_version(version: str) -> Response:
    body = await read_body(PatchTemplateVersionRequest)
    return reply(await template_versions.update_version(context(), subject(), path_uuid(version), body))


@blueprint.patch(f"{_VERSION}/cancel")
@authenticated
async def patch_cancel(version: str) -> Response:
    await template_versions.cancel_import(context(), subject(), path_uuid(version))
    return message("Job has been marked as canceled...")


@blueprint.post(f"{_VERSION}/archive")
@authenticated
async def post_archive(version: str) -> Response:
    version_id = path_uuid(version)
    await template_versions.archive_version(context(), subject(), version_id, archived=True)
    return reply(f'template version "{version_id}" archived')


@blueprint.post(f"{_VERSION}/unarchive")
@authenticated
async def post_unarchive(version: str) -> Response:
    version_id = path_uuid(version)
    await template_versions.archive_version(context(), subject(), version_id, archived=False)
    return reply(f'template version "{version_id}" unarchived')


@blueprint.get(f"{_VERSION}/logs")
@authenticated
async def get_logs(version: str) -> Response:
    loaded = await template_versions.load_version(context(), subject(), path_uuid(version))
    return await send_job_logs(loaded.job.id)


@blueprint.websocket(f"{_VERSION}/logs")
@authenticated
async def follow_logs(version: str) -> None:
    loaded = await template_versions.load_version(context(), subject(), path_uuid(version))
    await stream_job_logs(loaded.job.id)


@blueprint.get(f"{_VERSION}/rich-parameters")
@authenticated
async def get_rich_parameters(version: str) -> Response:
    return reply(await template_versions.list_parameters(context(), subject(), path_uuid(version)))


@blueprint.get(f"{_VERSION}/variables")
@authenticated
async def get_variables(version: str) -> Response:
    return reply(await template_versions.list_variables(context(), subject(), path_uuid(version)))


@blueprint.get(f"{_VERSION}/presets")
@authenticated
async def get_presets(version: str) -> Response:
    return reply(await template_versions.list_presets(context(), subject(), path_uuid(version)))


@blueprint.get(f"{_VERSION}/external-auth")
@authenticated
async def get_external_auth(version: str) -> Response:
    return reply(await template_versions.list_external_auth(context(), subject(), path_uuid(version)))


@blueprint.get(f"{_VERSION}/resources")
@authenticated
async def get_resources(version: str) -> Response:
    return reply(await template_versions.list_resources(context(), subject(), path_uuid(version)))


@blueprint.get(f"{_VERSION}/schema")
@blueprint.get(f"{_VERSION}/parameters")
@authenticated
async def get_withdrawn_list(version: str) -> Response:
    """Lists of a kind of parameters that is no more; old clients still ask."""
    await template_versions.load_version(context(), subject(), path_uuid(version))
    return reply([])


# ---- dynamic parameters


@blueprint.post(f"{_VERSION}/dynamic-parameters/evaluate")
@authenticated
async def post_evaluate(version: str) -> Response:
    """One rendering. Its number is always 0, and whoever names no owner has none (recorded)."""
    body = await read_body(DynamicParametersRequest)
    form = await _form(version)
    return reply(await form.answer(0, _owner_of(body, UUID(int=0)), _texts(body.inputs)))


@blueprint.get(f"{_VERSION}/dynamic-parameters")
@authenticated
async def get_dynamic_parameters(version: str) -> Response:
    await _form(version)
    return needs_upgrade()


@blueprint.websocket(f"{_VERSION}/dynamic-parameters")
@authenticated
async def follow_dynamic_parameters(version: str) -> None:
    """The form as it is, then its answer to every change, in their order. What is no request ends it with 1001."""
    owner_id = _asked_owner(subject().user_id)
    form = await _form(version)
    await websocket.accept()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_leave_on_stop, nursery.cancel_scope)
        await _converse(form, owner_id)
        nursery.cancel_scope.cancel()
    await websocket.close(1001, "")


async def _converse(form: Form, owner_id: UUID) -> None:
    await _send(await form.answer(-1, owner_id, {}))
    while True:
        try:
            asked = codec.decode(await websocket.receive(), DynamicParametersRequest)
            inputs = _texts(asked.inputs)
        except (msgspec.MsgspecError, Invalid, UnicodeDecodeError, RecursionError):
            return
        owner_id = _owner_of(asked, owner_id)
        await _send(await form.answer(asked.id, owner_id, inputs))


async def _send(answer: dict[str, object]) -> None:
    await websocket.send(codec.encode(answer).decode())


async def _leave_on_stop(scope: trio.CancelScope) -> None:
    await context().stopping.wait()
    scope.cancel()


async def _form(version: str) -> Form:
    loaded = await template_versions.load_version(context(), subject(), path_uuid(version))
    return await open_form(context(), subject(), loaded)


def _asked_owner(default: UUID) -> UUID:
    """`?user_id=` of the socket. Raises Invalid."""
    asked = websocket.args.get("user_id", "")
    if asked in {"", "me"}:
        return default
    try:
        return uuid.UUID(asked)
    except ValueError as error:
        raise Invalid(f'Invalid UUID "{asked}" in the query parameter "user_id".') from error


def _owner_of(body: DynamicParametersRequest, default: UUID) -> UUID:
    return body.owner_id if isinstance(body.owner_id, UUID) and body.owner_id.int else default


def _texts(inputs: object) -> dict[str, str]:
    """Raises Invalid."""
    if inputs is None:
        return {}
    if not isinstance(inputs, dict) or not all(isinstance(value, str) for value in inputs.values()):
        raise Invalid("Request body must be valid JSON.", "inputs must be an object of strings")
    return inputs


# ---- dry runs


@blueprint.post(f"{_VERSION}/dry-run")
@authenticated
async def post_dry_run(version: str) -> Response:
    body = await read_body(CreateTemplateVersionDryRunRequest)
    return reply(await dry_runs.start_dry_run(context(), subject(), path_uuid(version), body), 201)


@blueprint.get(_DRY_RUN)
@authenticated
async def get_dry_run(version: str, job: str) -> Response:
    return reply(await dry_runs.get_dry_run(context(), subject(), path_uuid(version), path_uuid(job)))


@blueprint.get(f"{_DRY_RUN}/logs")
@authenticated
async def get_dry_run_logs(version: str, job: str) -> Response:
    found = await dry_runs.load_dry_run(context(), subject(), path_uuid(version), path_uuid(job))
    return await send_job_logs(found.id)


@blueprint.websocket(f"{_DRY_RUN}/logs")
@authenticated
async def follow_dry_run_logs(version: str, job: str) -> None:
    found = await dry_runs.load_dry_run(context(), subject(), path_uuid(version), path_uuid(job))
    await stream_job_logs(found.id)


@blueprint.get(f"{_DRY_RUN}/resources")
@authenticated
async def get_dry_run_resources(version: str, job: str) -> Response:
    return reply(await dry_runs.get_resources(context(), subject(), path_uuid(version), path_uuid(job)))


@blueprint.get(f"{_DRY_RUN}/matched-provisioners")
@authenticated
async def get_dry_run_matched(version: str, job: str) -> Response:
    return reply(await dry_runs.get_matched(context(), subject(), path_uuid(version), path_uuid(job)))


@blueprint.patch(f"{_DRY_RUN}/cancel")
@authenticated
async def patch_dry_run_cancel(version: str, job: str) -> Response:
    await dry_runs.cancel_dry_run(context(), subject(), path_uuid(version), path_uuid(job))
    return message("Job has been marked as canceled.")
