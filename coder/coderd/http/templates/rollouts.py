"""Staged rollouts of template versions. Ours, not upstream's."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.templates.rollouts import CreateTemplateRollout, TemplateRollout, UpdateTemplateRollout
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.json import read_body, reply
from coder.coderd.http.server.query import path_uuid
from coder.coderd.http.server.route import route
from coder.coderd.services.templates import rollouts

blueprint = Blueprint("template_rollouts", __name__, url_prefix="/api/v2")


@route(
    blueprint,
    "GET",
    "/templates/<id:template>/rollouts",
    scope="template:update",
    answers=list[TemplateRollout],
    compressed=True,
)
async def get_rollouts(template: str) -> Response:
    """Return the latest rollouts of the template, the latest first. At most the first one is open."""
    return reply(await rollouts.list_rollouts(context(), subject(), path_uuid(template)))


@route(
    blueprint,
    "POST",
    "/templates/<id:template>/rollouts",
    scope="template:update",
    body=CreateTemplateRollout,
    answers=TemplateRollout,
    status=201,
    refuses=(409,),
    audit=Audited("template", "write"),
)
async def post_rollout(template: str) -> Response:
    """Start a rollout of a version at its first stage."""
    body = await read_body(CreateTemplateRollout)
    return reply(await rollouts.start_rollout(context(), subject(), path_uuid(template), body), 201)


@route(
    blueprint,
    "PATCH",
    "/templates/<id:template>/rollouts",
    scope="template:update",
    body=UpdateTemplateRollout,
    answers=TemplateRollout,
    refuses=(409,),
    audit=Audited("template", "write"),
)
async def patch_rollout(template: str) -> Response:
    """Advance, stop, resume or roll back the open rollout. The last stage makes its version the active one."""
    body = await read_body(UpdateTemplateRollout)
    return reply(await rollouts.change_rollout(context(), subject(), path_uuid(template), body))
