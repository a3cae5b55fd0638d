"""Template versions, their imports, and dry runs."""

from __future__ import annotations

import uuid
from functools import partial
from typing import Any
from uuid import UUID

import msgspec
import trio
from quart import Blueprint, Response, websocket

from coder.api.base import codec
from coder.api.base.errors import Response as Envelope
from coder.api.base.refusals import Invalid, TooLarge
from coder.api.login.external_auth import TemplateVersionExternalAuth
from coder.api.provisioning.jobs import MatchedProvisioners, ProvisionerJob, ProvisionerJobLog
from coder.api.templates.parameters import DynamicParametersRequest, Preset, TemplateVersionParameter
from coder.api.templates.template_versions import (
    CreateTemplateVersionDryRunRequest,
    CreateTemplateVersionRequest,
    PatchTemplateVersionRequest,
    TemplateVersion,
    TemplateVersionVariable,
)
from coder.api.workspaces.builds import WorkspaceResource
from coder.base.json_types import JsonObject
from coder.coderd.http.provisioning.job_logs import send_job_logs, stream_job_logs
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.declarations import LIMIT, TEXT
from coder.coderd.http.server.json import decoded, message, read_body, reply
from coder.coderd.http.server.query import Query, path_uuid
from coder.coderd.http.server.route import WEBSOCKET, route
from coder.coderd.http.server.streams import UpgradeRefusal, needs_upgrade, while_allowed
from coder.coderd.services.people.organizations import resolve_organization
from coder.coderd.services.templates.dynamic_parameters import ParameterForm, open_form
from coder.coderd.services.templates.versions import (
    dry_runs,
    new_template_versions,
    template_versions,
    version_changes,
    version_contents,
)
from coder.coderd.services.templates.versions.loaded_versions import LoadedVersion, load_version

blueprint = Blueprint("template_versions", __name__, url_prefix="/api/v2")

_VERSION = "/templateversions/<id:version>"
_WITH_MESSAGE = 8 << 20
"""Bytes: a version's message may have a million characters, each up to six bytes of JSON."""
_DRY_RUN = f"{_VERSION}/dry-run/<id:job>"


@route(
    blueprint,
    "POST",
    "/organizations/<organization>/templateversions",
    scope="template:create",
    body=CreateTemplateVersionRequest,
    limit=_WITH_MESSAGE,
    answers=TemplateVersion,
    status=201,
    refuses=(409,),
    audit=Audited("template_version", "create", "body:id"),
)
async def post_version(organization: str) -> Response:
    """Queue an import."""
    row = await resolve_organization(context(), subject(), organization)
    body = await read_body(CreateTemplateVersionRequest)
    return reply(await new_template_versions.create_version(context(), subject(), row.id, body), 201)


@route(blueprint, "GET", _VERSION, scope="template:read", answers=TemplateVersion)
async def get_version(version: str) -> Response:
    return reply(await template_versions.get_version(context(), subject(), path_uuid(version)))


@route(
    blueprint,
    "PATCH",
    _VERSION,
    scope="template:update",
    body=PatchTemplateVersionRequest,
    limit=_WITH_MESSAGE,
    answers=TemplateVersion,
    audit=Audited("template_version", "write"),
)
async def patch_version(version: str) -> Response:
    """Rename the version or change its message."""
    body = await read_body(PatchTemplateVersionRequest)
    return reply(await version_changes.update_version(context(), subject(), path_uuid(version), body))


@route(
    blueprint,
    "PATCH",
    f"{_VERSION}/cancel",
    scope="template:update",
    answers=Envelope,
    audit=Audited("template_version", "write"),
)
async def patch_cancel(version: str) -> Response:
    await version_changes.cancel_import(context(), subject(), path_uuid(version))
    return message("Job has been marked as canceled...")


@route(
    blueprint,
    "POST",
    f"{_VERSION}/archive",
    scope="template:update",
    answers=str,
    refuses=(500,),
    audit=Audited("template_version", "write"),
)
async def post_archive(version: str) -> Response:
    version_id = path_uuid(version)
    await version_changes.archive_version(context(), subject(), version_id, archived=True)
    return reply(f'template version "{version_id}" archived')


@route(
    blueprint,
    "POST",
    f"{_VERSION}/unarchive",
    scope="template:update",
    answers=str,
    refuses=(500,),
    audit=Audited("template_version", "write"),
)
async def post_unarchive(version: str) -> Response:
    version_id = path_uuid(version)
    await version_changes.archive_version(context(), subject(), version_id, archived=False)
    return reply(f'template version "{version_id}" unarchived')


@route(
    blueprint,
    "GET",
    f"{_VERSION}/logs",
    scope="template:read",
    query={"after": int, "before": int, "follow": str, "format": str},
    answers=(TEXT, list[ProvisionerJobLog]),
    others={426: TEXT},
)
async def get_logs(version: str) -> Response:
    loaded = await load_version(context(), subject(), path_uuid(version))
    return await send_job_logs(loaded.job.id)


@route(blueprint, WEBSOCKET, f"{_VERSION}/logs", scope="template:read", query={"after": str, "format": str})
async def follow_logs(version: str) -> None:
    ask = partial(load_version, context(), subject(), path_uuid(version))
    await while_allowed(ask, lambda loaded: stream_job_logs(loaded.job.id))


@route(
    blueprint,
    "GET",
    f"{_VERSION}/rich-parameters",
    scope="template:read",
    answers=list[TemplateVersionParameter],
    refuses=(425,),
)
async def get_rich_parameters(version: str) -> Response:
    return reply(await version_contents.list_parameters(context(), subject(), path_uuid(version)))


@route(
    blueprint,
    "GET",
    f"{_VERSION}/variables",
    scope="template:read",
    answers=list[TemplateVersionVariable],
    refuses=(425,),
)
async def get_variables(version: str) -> Response:
    """Return the variables, with sensitive values left out."""
    return reply(await version_contents.list_variables(context(), subject(), path_uuid(version)))


@route(blueprint, "GET", f"{_VERSION}/presets", scope="template:read", answers=list[Preset])
async def get_presets(version: str) -> Response:
    return reply(await version_contents.list_presets(context(), subject(), path_uuid(version)))


@route(
    blueprint,
    "GET",
    f"{_VERSION}/external-auth",
    scope="template:read",
    query={"user_id": str},
    answers=list[TemplateVersionExternalAuth],
)
async def get_external_auth(version: str) -> Response:
    """Return the providers the template requires its users to be linked to, and whether the caller is."""
    query = Query()
    owner = None if query.text("user_id") == "me" else query.uuid("user_id")
    query.check()
    return reply(await version_contents.list_external_auth(context(), subject(), path_uuid(version), owner))


@route(blueprint, "GET", f"{_VERSION}/resources", scope="template:read", answers=list[WorkspaceResource])
async def get_resources(version: str) -> Response:
    return reply(await version_contents.list_resources(context(), subject(), path_uuid(version)))


@route(blueprint, "GET", (f"{_VERSION}/schema", f"{_VERSION}/parameters"), scope="template:read", answers=list[Any])
async def get_withdrawn_list(version: str) -> Response:
    """Return an empty list of a removed kind of parameters; old clients still request it."""
    await load_version(context(), subject(), path_uuid(version))
    return reply([])


# ---- dynamic parameters


@route(
    blueprint,
    "POST",
    f"{_VERSION}/dynamic-parameters/evaluate",
    scope="template:read",
    body=DynamicParametersRequest,
    answers=dict[str, Any],
    refuses=(425,),
)
async def post_evaluate(version: str) -> Response:
    """Render once. The number is always 0, and a request without an owner has none (recorded)."""
    body = await read_body(DynamicParametersRequest)
    form = await _form(version)
    return reply(await form.answer(0, _owner_of(body, UUID(int=0)), _texts(body.inputs)))


@route(blueprint, "GET", f"{_VERSION}/dynamic-parameters", scope="template:read", others={426: TEXT}, refuses=(425,))
async def get_dynamic_parameters(version: str) -> Response:
    await _form(version)
    return needs_upgrade(UpgradeRefusal.FORM)


@route(
    blueprint,
    WEBSOCKET,
    f"{_VERSION}/dynamic-parameters",
    scope="template:read",
    query={"user_id": str},
    refuses=(425,),
    limit=LIMIT,
)
async def follow_dynamic_parameters(version: str) -> None:
    """Send the current form, then its response to every change, in order. An invalid request ends it with 1001."""
    owner_id = _requested_owner(subject().user_id)
    ask = partial(load_version, context(), subject(), path_uuid(version))
    await while_allowed(ask, lambda loaded: _follow_form(loaded, owner_id))


async def _follow_form(loaded: LoadedVersion, owner_id: UUID) -> None:
    form = await open_form(context(), subject(), loaded)
    await websocket.accept()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_leave_on_stop, nursery.cancel_scope)
        await _converse(form, owner_id)
        nursery.cancel_scope.cancel()
    await websocket.close(1001, "")


async def _converse(form: ParameterForm, owner_id: UUID) -> None:
    await _send(await form.answer(-1, owner_id, {}))
    while True:
        try:
            message = await websocket.receive()
            raw = message.encode() if isinstance(message, str) else message
            body = await decoded(raw, lambda text: codec.decode(text, DynamicParametersRequest))
            inputs = _texts(body.inputs)
        except (msgspec.MsgspecError, Invalid, TooLarge, UnicodeError, RecursionError):
            return
        owner_id = _owner_of(body, owner_id)
        await _send(await form.answer(body.id, owner_id, inputs))


async def _send(answer: JsonObject) -> None:
    await websocket.send(codec.encode(answer).decode())


async def _leave_on_stop(scope: trio.CancelScope) -> None:
    await context().stopping.wait()
    scope.cancel()


async def _form(version: str) -> ParameterForm:
    loaded = await load_version(context(), subject(), path_uuid(version))
    return await open_form(context(), subject(), loaded)


def _requested_owner(default: UUID) -> UUID:
    """Parse `?user_id=` of the socket. Raises Invalid."""
    body = websocket.args.get("user_id", "")
    if body in {"", "me"}:
        return default
    try:
        return uuid.UUID(body)
    except ValueError as error:
        raise Invalid(f'Invalid UUID "{body}" in the query parameter "user_id".') from error


def _owner_of(body: DynamicParametersRequest, default: UUID) -> UUID:
    return body.owner_id if isinstance(body.owner_id, UUID) and body.owner_id.int else default


def _texts(inputs: object) -> dict[str, str]:
    """Validate the inputs. Raises Invalid."""
    if inputs is None:
        return {}
    if not isinstance(inputs, dict) or not all(isinstance(value, str) for value in inputs.values()):
        raise Invalid("Request body must be valid JSON.", "inputs must be an object of strings")
    return inputs


# ---- dry runs


@route(
    blueprint,
    "POST",
    f"{_VERSION}/dry-run",
    scope="workspace:create",
    body=CreateTemplateVersionDryRunRequest,
    answers=ProvisionerJob,
    status=201,
    refuses=(409, 412),
)
async def post_dry_run(version: str) -> Response:
    """Queue a dry run."""
    body = await read_body(CreateTemplateVersionDryRunRequest)
    return reply(await dry_runs.start_dry_run(context(), subject(), path_uuid(version), body), 201)


@route(blueprint, "GET", _DRY_RUN, scope="workspace:read", answers=ProvisionerJob)
async def get_dry_run(version: str, job: str) -> Response:
    return reply(await dry_runs.get_dry_run(context(), subject(), path_uuid(version), path_uuid(job)))


@route(
    blueprint,
    "GET",
    f"{_DRY_RUN}/logs",
    scope="workspace:read",
    query={"after": int, "before": int, "follow": str, "format": str},
    answers=(TEXT, list[ProvisionerJobLog]),
    others={426: TEXT},
)
async def get_dry_run_logs(version: str, job: str) -> Response:
    run = await dry_runs.load_dry_run(context(), subject(), path_uuid(version), path_uuid(job))
    return await send_job_logs(run.id)


@route(blueprint, WEBSOCKET, f"{_DRY_RUN}/logs", scope="workspace:read", query={"after": str, "format": str})
async def follow_dry_run_logs(version: str, job: str) -> None:
    ask = partial(dry_runs.load_dry_run, context(), subject(), path_uuid(version), path_uuid(job))
    await while_allowed(ask, lambda result: stream_job_logs(result.id))


@route(blueprint, "GET", f"{_DRY_RUN}/resources", scope="workspace:read", answers=list[WorkspaceResource])
async def get_dry_run_resources(version: str, job: str) -> Response:
    return reply(await dry_runs.get_resources(context(), subject(), path_uuid(version), path_uuid(job)))


@route(blueprint, "GET", f"{_DRY_RUN}/matched-provisioners", scope="workspace:read", answers=MatchedProvisioners)
async def get_dry_run_matched(version: str, job: str) -> Response:
    return reply(await dry_runs.get_matched(context(), subject(), path_uuid(version), path_uuid(job)))


@route(blueprint, "PATCH", f"{_DRY_RUN}/cancel", scope="workspace:update", answers=Envelope)
async def patch_dry_run_cancel(version: str, job: str) -> Response:
    await dry_runs.cancel_dry_run(context(), subject(), path_uuid(version), path_uuid(job))
    return message("Job has been marked as canceled.")
