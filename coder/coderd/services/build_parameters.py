"""Parameter values and tags of a start build, rendered from the template's files before the build is placed.

Rendering takes worker threads and must not happen inside a transaction, so it is done first; the placing transaction
(`build_orders.py`) checks that what was rendered from is still true, and otherwise everything is done again. Versions
that cannot be rendered, and templates that chose the classic flow, get their values from what the import recorded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from coder.coderd.services.build_orders import BuildOrder, Prepared, StaleValuesError
from coder.coderd.services.dynamic_parameters import (
    compute,
    fresh_id,
    load_version_files,
    owner_values,
    refusal_of,
)
from coder.coderd.store import builds as build_store
from coder.coderd.store import jobs as job_store
from coder.coderd.store import owners as owner_store
from coder.coderd.store import template_versions as version_store
from coder.coderd.store import templates as template_store
from coder.domain.rendering.builds import Given, build_values
from coder.domain.rendering.parameters import Json, render
from coder.domain.rendering.sources import ParsedFiles
from coder.domain.rendering.tags import render_tags
from coder.domain.rendering.world import Request

if TYPE_CHECKING:
    from coder.coderd.services.context import Context
    from coder.coderd.store.database import Tx
    from coder.coderd.store.jobs import JobRow
    from coder.coderd.store.template_versions import VersionRow

T = TypeVar("T")
Prepare = Callable[[BuildOrder, "Target"], BuildOrder]
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Target:
    """The workspace a build is for; `workspace_id` is None while it is being made."""

    owner_id: UUID
    template_id: UUID | None
    workspace_id: UUID | None = None


async def place_with_values(
    ctx: Context, order: BuildOrder, target: Target, place: Callable[[BuildOrder], Awaitable[T]]
) -> T:
    """Calls `place` with the order's values filled in; again when a neighbour's build came between."""
    for _ in range(_ATTEMPTS):
        try:
            return await place(await _prepare(ctx, order, target))
        except StaleValuesError:
            continue
    return await place(order)


class NoValuesYetError(Exception):
    """A transaction found that it starts a workspace nobody asked it to: values must be rendered before."""

    def __init__(self, order: BuildOrder, target: Target) -> None:
        super().__init__("values must be rendered first")
        self.order, self.target = order, target


async def run_with_values(ctx: Context, act: Callable[[Prepare], Awaitable[T]]) -> T:
    """For what happens by itself: calls `act` with a function that completes an order or undoes the transaction.

    Whether there is something to start shows inside the transaction only; rendering happens outside, and then `act`
    runs again. Values that went stale between are rendered once more, and at last left to what the import recorded.
    """
    known: BuildOrder | None = None
    attempts = 0

    def prepare(order: BuildOrder, target: Target) -> BuildOrder:
        if order.transition != "start" or attempts > _ATTEMPTS:
            return order
        if known is None:
            raise NoValuesYetError(order, target)
        return replace(order, prepared=known.prepared)

    while True:
        try:
            return await act(prepare)
        except NoValuesYetError as wanted:
            known = await _prepare(ctx, wanted.order, wanted.target)
        except StaleValuesError:
            known = None
        attempts += 1


@dataclass(frozen=True, slots=True)
class _Scene:
    version: VersionRow
    job: JobRow
    last_build_id: UUID | None
    previous: dict[str, str]
    preset: dict[str, str]
    owner: dict[str, Any]


async def _prepare(ctx: Context, order: BuildOrder, target: Target) -> BuildOrder:
    if order.transition != "start":
        return order
    scene = await ctx.db.read(_read_scene, order, target)
    if scene is None:
        return order
    version = await load_version_files(ctx, scene.version, scene.job)
    files = version.files
    if files is None:
        return order
    request = Request({}, scene.owner, version.variables, fresh_id)
    given = Given(order.given, scene.previous, scene.preset, first_build=scene.last_build_id is None)
    values, tags, refusal = await compute(ctx, lambda: _render(files, request, given))
    return replace(order, prepared=Prepared(scene.version.id, scene.last_build_id, values, tags, refusal_of(refusal)))


async def _read_scene(tx: Tx, order: BuildOrder, target: Target) -> _Scene | None:
    """None when there is nothing to render; what is wrong then is said when the build is placed."""
    last = await build_store.get_latest_build(tx, target.workspace_id) if target.workspace_id else None
    version_id = order.version_id or (last.template_version_id if last else None)
    if version_id is None and target.template_id is not None:
        template = await template_store.get_template(tx, target.template_id)
        version_id = template.active_version_id if template else None
    version = await version_store.get_version(tx, version_id) if version_id else None
    if version is None or version.template_id is None:
        return None
    template = await template_store.get_template(tx, version.template_id)
    job = await job_store.get_job(tx, version.job_id)
    owner = await owner_store.get_owner_facts(tx, target.owner_id, version.organization_id)
    if template is None or template.use_classic_parameter_flow or owner is None:
        return None
    if job is None or job.status != "succeeded":
        return None
    preset = await version_store.get_preset(tx, order.preset_id) if order.preset_id else None
    return _Scene(
        version,
        job,
        last.id if last else None,
        await build_store.list_parameters(tx, last.id) if last else {},
        {item["name"]: item["value"] for item in preset.parameters} if preset else {},
        owner_values(target.owner_id, owner),
    )


def _render(files: ParsedFiles, request: Request, given: Given) -> tuple[dict[str, str], dict[str, str], Json | None]:
    values, refusal = build_values(files, request, given)
    if refusal is not None:
        return {}, {}, refusal
    tags, refusal = render_tags(render(files, replace(request, inputs=values)))
    return values, tags, refusal
