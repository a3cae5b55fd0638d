"""Parameter values and tags of a build, rendered from the template's files before the build is queued.

Rendering takes time and must not happen inside a transaction, so it comes first. The transaction that queues the build
(`new_builds.py`) checks that the inputs of the rendering are still current; otherwise everything is repeated. Versions
that cannot be rendered, and templates with the classic flow, get the values that the import recorded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

import msgspec

from coder.base.json_types import JsonObject
from coder.coderd.services.foundation.sandbox import SandboxEvaluationError, refused_evaluation
from coder.coderd.services.login.required_logins import missing_logins
from coder.coderd.services.templates.dynamic_parameters import (
    RenderRefusal,
    load_version_files,
    owner_values,
    refusal_of,
    render_in_sandbox,
)
from coder.coderd.services.workspaces.builds.build_requests import (
    BuildRequest,
    FormNeededError,
    PreparedBuild,
    StaleValuesError,
)
from coder.coderd.store.provisioning import system_jobs
from coder.coderd.store.templates import system_template_versions, system_templates
from coder.coderd.store.workspaces import build_owner as owner_store
from coder.coderd.store.workspaces import builds as build_store
from coder.coderd.store.workspaces import system_builds
from coder.domain.rendering.builds import GivenValues
from coder.domain.rendering.module_scope import RenderRequest

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.provisioning.jobs import JobRow
    from coder.coderd.store.templates.template_versions import VersionRow

T = TypeVar("T")
Prepare = Callable[[BuildRequest, "BuildTarget"], BuildRequest]
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class BuildTarget:
    """Workspace of a build; `workspace_id` is None while the workspace is being created."""

    owner_id: UUID
    template_id: UUID | None
    workspace_id: UUID | None = None


async def enqueue_with_values(
    ctx: Context,
    request: BuildRequest,
    target: BuildTarget,
    enqueue: Callable[[BuildRequest], Awaitable[T]],
    *,
    with_logins: bool = True,
) -> T:
    """Call `enqueue` with the request's values rendered, and again if a concurrent build made them stale.

    Without `with_logins` no provider is asked about the owner's logins, for plans that get no tokens.
    """
    for _ in range(_ATTEMPTS):
        try:
            return await enqueue(await _prepare(ctx, request, target, with_logins=with_logins))
        except FormNeededError:
            request = replace(request, ephemeral=await _ephemeral(ctx, request, target))
        except StaleValuesError:
            continue
    return await enqueue(replace(request, ephemeral=request.ephemeral or frozenset()))


class NoValuesYetError(Exception):
    """A transaction starts a workspace whose values have not been rendered yet."""

    def __init__(self, request: BuildRequest, target: BuildTarget) -> None:
        super().__init__("values must be rendered first")
        self.request, self.target = request, target


async def run_with_values(ctx: Context, run: Callable[[Prepare], Awaitable[T]]) -> T:
    """Call `run` for an automatic build, with a function that completes a request or rolls the transaction back.

    Only the transaction knows whether there is something to start. Rendering happens outside of it, and then `run` is
    called again. Stale values are rendered again; after some attempts the values that the import recorded are used.
    """
    rendered: BuildRequest | None = None
    last_request: tuple[BuildRequest, BuildTarget] | None = None
    ephemeral: frozenset[str] | None = None
    attempts = 0

    def prepare(request: BuildRequest, target: BuildTarget) -> BuildRequest:
        nonlocal last_request
        last_request = request, target
        if request.transition != "start":
            return replace(request, ephemeral=ephemeral)
        if attempts > _ATTEMPTS:
            return request
        if rendered is None:
            raise NoValuesYetError(request, target)
        return replace(request, prepared=rendered.prepared, logins=rendered.logins)

    while True:
        try:
            return await run(prepare)
        except NoValuesYetError as error:
            rendered = await _prepare(ctx, error.request, error.target)
        except FormNeededError:
            ephemeral = await _ephemeral(ctx, *last_request) if last_request is not None else frozenset()
        except StaleValuesError:
            rendered = None
        attempts += 1


@dataclass(frozen=True, slots=True)
class _TemplateInputs:
    """Inputs from which a start build's template is rendered."""

    version: VersionRow
    job: JobRow
    last_build_id: UUID | None
    previous: dict[str, str]
    preset: dict[str, str]
    owner: JsonObject


async def _prepare(
    ctx: Context, request: BuildRequest, target: BuildTarget, *, with_logins: bool = True
) -> BuildRequest:
    if request.transition != "start":
        return request
    version_to_build, inputs = await ctx.db.read(_read_template_inputs, request, target)
    if version_to_build is not None and with_logins:
        request = replace(request, logins=await missing_logins(ctx, target.owner_id, version_to_build))
    if inputs is None:
        return request
    version = await load_version_files(ctx, inputs.version, inputs.job)
    files = version.files
    if files is None:
        return request
    rendering = RenderRequest({}, inputs.owner, version.variables)
    given = GivenValues(request.parameters, inputs.previous, inputs.preset, first_build=inputs.last_build_id is None)
    try:
        answer = await render_in_sandbox(ctx, "build", rendering, files, target.owner_id, given=asdict(given))
    except SandboxEvaluationError as error:
        raise refused_evaluation(error) from error
    values, tags, refusal = msgspec.convert(answer, tuple[dict[str, str], dict[str, str], RenderRefusal | None])
    return replace(
        request,
        prepared=PreparedBuild(inputs.version.id, inputs.last_build_id, values, tags, refusal_of(refusal)),
    )


class _FormParameter(msgspec.Struct):
    name: str
    ephemeral: bool


class _Form(msgspec.Struct):
    parameters: list[_FormParameter]


async def _ephemeral(ctx: Context, request: BuildRequest, target: BuildTarget) -> frozenset[str]:
    """Return the names of the parameters that are ephemeral in the form, filled in as for the last build.

    Empty when the form cannot be rendered: a workspace must always be stoppable.
    """
    _, inputs = await ctx.db.read(_read_template_inputs, request, target)
    if inputs is None:
        return frozenset()
    version = await load_version_files(ctx, inputs.version, inputs.job)
    if version.files is None:
        return frozenset()
    rendering = RenderRequest(inputs.previous, inputs.owner, version.variables)
    try:
        answer = await render_in_sandbox(ctx, "form", rendering, version.files, target.owner_id, number=0)
    except SandboxEvaluationError:
        return frozenset()
    form = msgspec.convert(answer, _Form)
    return frozenset(parameter.name for parameter in form.parameters if parameter.ephemeral)


async def _read_template_inputs(
    tx: Tx, request: BuildRequest, target: BuildTarget
) -> tuple[VersionRow | None, _TemplateInputs | None]:
    """Return the version to build, and the inputs of its rendering.

    The inputs are None when there is nothing to render. Errors are reported when the build is queued.
    """
    last = await system_builds.get_latest_build(tx, target.workspace_id) if target.workspace_id else None
    version_id = request.version_id or (last.template_version_id if last else None)
    if version_id is None and target.template_id is not None:
        template = await system_templates.get_template(tx, target.template_id)
        version_id = template.active_version_id if template else None
    version = await system_template_versions.get_version(tx, version_id) if version_id else None
    if version is None or version.template_id is None:
        return None, None
    template = await system_templates.get_template(tx, version.template_id)
    job = await system_jobs.get_job(tx, version.job_id)
    owner = await owner_store.get_owner_facts(tx, target.owner_id, version.organization_id)
    if template is None or template.use_classic_parameter_flow or owner is None:
        return version, None
    if job is None or job.status != "succeeded":
        return version, None
    preset = await system_template_versions.get_preset(tx, request.preset_id) if request.preset_id else None
    return version, _TemplateInputs(
        version,
        job,
        last.id if last else None,
        await build_store.list_parameters(tx, last.id) if last else {},
        {item["name"]: item["value"] for item in preset.parameters} if preset else {},
        owner_values(target.owner_id, owner),
    )
