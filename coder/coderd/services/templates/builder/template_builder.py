"""The template builder for its callers: catalogue, composition, and templates created from a composition.

Everybody who may create a template in any organization may compose one. Composing stores nothing.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

import trio
from msgspec import UNSET, UnsetType

from coder.api.base.refusals import Forbidden, InvalidFields, NotFound
from coder.api.templates.template_builder import (
    TemplateBuilderBase,
    TemplateBuilderBasesResponse,
    TemplateBuilderComposeModule,
    TemplateBuilderComposeRequest,
    TemplateBuilderCreateTemplateRequest,
    TemplateBuilderCreateTemplateResponse,
    TemplateBuilderModule,
    TemplateBuilderModulesResponse,
    TemplateBuilderModuleVariable,
    TemplateBuilderSessionRequest,
)
from coder.api.templates.template_versions import CreateTemplateVersionRequest
from coder.api.templates.templates import CreateTemplateRequest
from coder.base.threads import in_thread_or_here
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.access.workspace_access import template_resource
from coder.coderd.services.people.organizations import resolve_organization
from coder.coderd.services.templates import files
from coder.coderd.services.templates.builder.catalogue import BuilderModule, BuilderVariable, bases, modules
from coder.coderd.services.templates.builder.composition import Chosen, compose
from coder.coderd.services.templates.examples import pack
from coder.coderd.services.templates.new_templates import create_template
from coder.coderd.services.templates.template_checks import name_taken, value_or
from coder.coderd.services.templates.versions.new_template_versions import create_version
from coder.coderd.store.templates import system_templates
from coder.domain.access.policy import Class, Subject, allowed_organizations
from coder.domain.templates.module_registry import registry_host

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

_READING = trio.CapacityLimiter(1)
_EVENTS = ("wizard_entry", "compose_completion")
_MAX_SESSION = 200
"""Characters of a session's id."""


async def list_bases(ctx: Context, subject: Subject) -> TemplateBuilderBasesResponse:
    """Return the bases. Raises NotFound for users who read no templates of others, Forbidden when disabled."""
    await _admit(ctx, subject)
    return TemplateBuilderBasesResponse(
        bases=[
            TemplateBuilderBase(
                id=base.id,
                name=base.name,
                description=base.description,
                icon=base.icon,
                os=base.os,
                variables=_shown(base.variables),
                prerequisites=base.prerequisites,
            )
            for base in bases().values()
        ]
    )


async def list_modules(ctx: Context, subject: Subject, base_id: str) -> TemplateBuilderModulesResponse:
    """Return the modules, of a base only those that work with it. Raises as `list_bases`, and InvalidFields."""
    await _admit(ctx, subject)
    base = bases().get(base_id)
    if base_id and base is None:
        raise InvalidFields(("base", _no_base(base_id)), message="Invalid query parameters.")
    registry = registry_host(ctx.config.template_builder_registry_url)
    return TemplateBuilderModulesResponse(
        modules=[
            _shown_module(module, registry)
            for module in modules().values()
            if base is None or base.os in module.compatible_os
        ]
    )


async def compose_archive(ctx: Context, subject: Subject, body: TemplateBuilderComposeRequest) -> bytes:
    """Return the composed template as a tar. Raises NotFound, Forbidden, InvalidFields."""
    await _admit(ctx, subject)
    require(subject, "create", Class("template", any_organization=True))
    return _composed(ctx, body.base_template_id, body.base_variable_values, body.modules)


async def create_composed_template(
    ctx: Context, subject: Subject, body: TemplateBuilderCreateTemplateRequest
) -> TemplateBuilderCreateTemplateResponse:
    """Compose a template and create it; its first version is imported afterwards.

    Raises NotFound, Forbidden, InvalidFields, Conflict (taken name, too many unused uploads).
    """
    await _admit(ctx, subject)
    organization = await resolve_organization(ctx, subject, str(body.organization_id))
    require(subject, "create", Class("template", organization_id=organization.id))
    await _require_free_name(ctx, subject, organization.id, body.name)
    archive = _composed(ctx, body.base_template_id, body.base_variable_values, body.modules)
    file_id, _new = await files.upload(ctx, subject, files.TAR, io.BytesIO(archive))
    version = await create_version(
        ctx,
        subject,
        organization.id,
        CreateTemplateVersionRequest(
            storage_method="file", provisioner="terraform", file_id=file_id, tags=value_or(body.provisioner_tags, {})
        ),
    )
    template = await create_template(
        ctx,
        subject,
        organization.id,
        CreateTemplateRequest(
            name=body.name,
            display_name=body.display_name,
            description=body.description,
            icon=body.icon,
            template_version_id=version.id,
            allow_user_cancel_workspace_jobs=True,
            disable_everyone_group_access=False,
            require_active_version=False,
            max_port_share_level=None,
            cors_behavior=None,
        ),
    )
    return TemplateBuilderCreateTemplateResponse(template=template)


def note_session(ctx: Context, subject: Subject, body: TemplateBuilderSessionRequest) -> None:
    """Accept an event of a page of the original, which counts them. This server keeps and sends nothing of it.

    Raises NotFound, Forbidden, InvalidFields.
    """
    _require_reader(ctx, subject)
    faults = []
    if not 0 < len(body.session_id) <= _MAX_SESSION:
        faults.append(("session_id", f"Must have 1 to {_MAX_SESSION} characters."))
    if body.event_type not in _EVENTS:
        faults.append(("event_type", f"Must be one of [{' '.join(_EVENTS)}]"))
    if faults:
        raise InvalidFields(*faults)


def _require_reader(ctx: Context, subject: Subject) -> None:
    """Require a caller that manages templates, and a builder that is not disabled. Raises NotFound, Forbidden."""
    if allowed_organizations(subject, "read", "template", narrowed=True) == frozenset():
        raise NotFound
    if ctx.config.disable_template_builder:
        raise Forbidden("The template builder is disabled.", "An administrator set --disable-template-builder.")


async def _admit(ctx: Context, subject: Subject) -> None:
    """Require a reader as `_require_reader` does, and read the catalogue, which takes the first caller half a second.

    Meanwhile the thread lets the server serve others.
    """
    _require_reader(ctx, subject)
    if not (bases.cache_info().currsize and modules.cache_info().currsize):
        await in_thread_or_here(_read_catalogue, limiter=_READING)


def _read_catalogue() -> None:
    bases()
    modules()


async def _require_free_name(ctx: Context, subject: Subject, organization_id: UUID, name: str) -> None:
    present = await ctx.db.read(system_templates.get_template_by_name, organization_id, name)
    if present is not None and may(subject, "read", template_resource(present)):
        raise name_taken(name)


def _composed(
    ctx: Context,
    base_id: str,
    values: Mapping[str, str] | UnsetType,
    requested: Sequence[TemplateBuilderComposeModule],
) -> bytes:
    base = bases().get(base_id)
    faults = [] if base is not None else [("base_template_id", _no_base(base_id))]
    faults += [(f"modules.{item.id}", "There is no such module.") for item in requested if item.id not in modules()]
    if base is None or faults:
        raise InvalidFields(*faults, message="The template cannot be composed.")
    chosen = [Chosen(modules()[item.id], value_or(item.variables, {})) for item in requested]
    registry = registry_host(ctx.config.template_builder_registry_url)
    return pack(compose(base, value_or(values, {}), chosen, registry))


def _no_base(base_id: str) -> str:
    return f'There is no base "{base_id}".'


def _shown_module(module: BuilderModule, registry: str) -> TemplateBuilderModule:
    return TemplateBuilderModule(
        id=module.id,
        display_name=module.display_name,
        description=module.description,
        icon=module.icon,
        category=module.category,
        version=module.registry_version if registry and module.registry else module.version,
        compatible_os=list(module.compatible_os),
        conflicts_with=list(module.conflicts_with),
        variables=_shown(module.variables),
    )


def _shown(variables: Sequence[BuilderVariable]) -> list[TemplateBuilderModuleVariable]:
    return [
        TemplateBuilderModuleVariable(
            name=item.name,
            type=item.type,
            description=item.description,
            required=item.required,
            sensitive=item.sensitive,
            default=UNSET if item.default is None else item.default,
        )
        for item in variables
    ]
