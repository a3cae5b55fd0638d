"""The template builder: bases, modules, and the template composed of them."""

from __future__ import annotations

from quart import Blueprint, Response, request

from coder.api.templates.template_builder import (
    TemplateBuilderBasesResponse,
    TemplateBuilderComposeRequest,
    TemplateBuilderCreateTemplateRequest,
    TemplateBuilderCreateTemplateResponse,
    TemplateBuilderModulesResponse,
    TemplateBuilderSessionRequest,
)
from coder.coderd.http.server import audited
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.declarations import NOTHING, Content
from coder.coderd.http.server.json import no_content, read_body, reply
from coder.coderd.http.server.route import route
from coder.coderd.services.templates.builder import template_builder as builder
from coder.coderd.services.templates.files import TAR
from coder.domain.access.rate_budgets import FILES

blueprint = Blueprint("template_builder", __name__, url_prefix="/api/v2/templatebuilder")

_LIMIT = 256 << 10
"""Bytes of a request: the values of all modules, which the answer repeats in at most six times as many."""


@route(blueprint, "GET", "/bases", scope="template:read", answers=TemplateBuilderBasesResponse, compressed=True)
async def get_bases() -> Response:
    """Return the bases of templates."""
    return reply(await builder.list_bases(context(), subject()))


@route(
    blueprint,
    "GET",
    "/modules",
    scope="template:read",
    query={"base": str},
    answers=TemplateBuilderModulesResponse,
    compressed=True,
)
async def get_modules() -> Response:
    """Return the modules, or those that work with a base."""
    return reply(await builder.list_modules(context(), subject(), request.args.get("base", "")))


@route(
    blueprint,
    "POST",
    "/compose",
    scope="template:create",
    budget=FILES,
    body=TemplateBuilderComposeRequest,
    limit=_LIMIT,
    answers=Content(TAR),
    refuses=(403,),
)
async def post_composition() -> Response:
    """Return the composed template as a tar, which is not stored."""
    body = await read_body(TemplateBuilderComposeRequest)
    return Response(await builder.compose_archive(context(), subject(), body), content_type=TAR)


@route(
    blueprint,
    "POST",
    "/compose/template",
    scope="template:create",
    budget=FILES,
    body=TemplateBuilderCreateTemplateRequest,
    limit=_LIMIT,
    answers=TemplateBuilderCreateTemplateResponse,
    status=201,
    refuses=(403, 409),
    audit=Audited("template", "create", "view"),
)
async def post_composed_template() -> Response:
    """Create a template from a composition, and queue the import of its version."""
    body = await read_body(TemplateBuilderCreateTemplateRequest)
    created = await builder.create_composed_template(context(), subject(), body)
    await audited.about(created.template.id, new=True)
    return reply(created, 201)


@route(
    blueprint,
    "POST",
    "/sessions",
    scope="template:read",
    body=TemplateBuilderSessionRequest,
    status=204,
    answers=NOTHING,
    refuses=(403,),
)
async def post_session() -> Response:
    """Accept an event of the builder's page. Nothing is stored."""
    builder.note_session(context(), subject(), await read_body(TemplateBuilderSessionRequest))
    return no_content()
