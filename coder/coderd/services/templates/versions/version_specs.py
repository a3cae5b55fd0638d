"""Specification of a new template version: the request, with the tags and variables of the template."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from coder.api.base.refusals import NotFound
from coder.coderd.services.foundation.sandbox import Documents, SandboxEvaluationError
from coder.coderd.services.templates.dynamic_parameters import RenderRefusal, read_owner, refusal_of, render_in_sandbox
from coder.coderd.services.templates.examples import find_example
from coder.coderd.services.templates.template_files import bundled_template, stored_template
from coder.coderd.store.templates import template_versions as store
from coder.coderd.store.templates.templates import TemplateRow
from coder.domain.access.policy import Subject
from coder.domain.provisioning.tags import normalize_tags
from coder.domain.rendering.module_scope import RenderRequest

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class VersionSpec:
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
    failure: str = ""
    "Error of an import that failed before it began."


async def with_all_tags(ctx: Context, subject: Subject, spec: VersionSpec) -> VersionSpec:
    """Add the template's workspace tags; requested tags override them. Raises Invalid for invalid tags or presets."""
    files = await _files(ctx, spec)
    owner = await read_owner(ctx, subject, spec.organization_id, spec.user_id)
    variables = {name: value for name, value in (await ctx.db.read(with_last_values, spec)).items() if value}
    request = RenderRequest({}, owner or {}, variables)
    try:
        answer = await render_in_sandbox(ctx, "version", request, files, subject.user_id)
    except SandboxEvaluationError as error:
        # The version is created, so that its author sees the error in its import.
        return replace(spec, tags=normalize_tags(str(spec.user_id), spec.tags), failure=f"{error.message} {error.hint}")
    tags, refusal = msgspec.convert(answer, tuple[dict[str, str], RenderRefusal | None])
    problem = refusal_of(refusal)
    if problem is not None:
        raise problem
    return replace(spec, tags=normalize_tags(str(spec.user_id), tags, spec.tags))


async def _files(ctx: Context, spec: VersionSpec) -> Documents:
    if spec.file_id is not None:
        return stored_template(ctx, spec.file_id, None)
    example = find_example(spec.example_id)
    if example is None:
        raise no_example(spec.example_id)
    return bundled_template(spec.example_id, example.archive)


def no_example(example_id: str) -> NotFound:
    return NotFound("Example not found.", f'example with id "{example_id}" not found: example not found')


async def with_last_values(tx: Tx, spec: VersionSpec) -> dict[str, str]:
    """Return the given values, on top of the active version's; defaults come from the new source."""
    values: dict[str, str] = {}
    if spec.template is not None:
        for row in await store.list_variables(tx, spec.template.active_version_id):
            if row.value != row.default_value:
                values[row.name] = row.value
    return values | dict(spec.values)
