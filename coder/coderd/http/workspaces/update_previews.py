"""Previews of updates: what another version of the template would change. Ours, not upstream's."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.workspaces.update_previews import (
    CreateTemplateUpdatePreviewRequest,
    CreateUpdatePreviewRequest,
    TemplateUpdatePreview,
    UpdatePreview,
)
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.json import no_content, read_body, reply
from coder.coderd.http.server.query import path_uuid
from coder.coderd.http.server.route import route
from coder.coderd.services.workspaces.previews import new_previews, previews

blueprint = Blueprint("update_previews", __name__, url_prefix="/api/v2")

_WORKSPACE = "/workspaces/<id:workspace>/update-preview"
_TEMPLATE = "/templates/<id:template>/update-preview"


@route(
    blueprint,
    "POST",
    _WORKSPACE,
    scope="workspace:update",
    body=CreateUpdatePreviewRequest,
    answers=UpdatePreview,
    status=201,
    refuses=(406, 409, 500),
)
async def post_workspace_preview(workspace: str) -> Response:
    """Queue a plan of the update of a workspace, which changes nothing.

    The response compares the two versions. Request the preview again until its status is final: it is canceled when
    nothing has requested it for 90 seconds.
    """
    body = await read_body(CreateUpdatePreviewRequest)
    return reply(await new_previews.preview_workspace(context(), subject(), path_uuid(workspace), body), 201)


@route(blueprint, "GET", f"{_WORKSPACE}/<id:preview>", scope="workspace:update", answers=UpdatePreview)
async def get_workspace_preview(workspace: str, preview: str) -> Response:
    """Return a preview that the caller started, with its plan once there is one."""
    return reply(await previews.get_preview(context(), subject(), path_uuid(workspace), path_uuid(preview)))


@route(blueprint, "DELETE", f"{_WORKSPACE}/<id:preview>", scope="workspace:update", status=204)
async def delete_workspace_preview(workspace: str, preview: str) -> Response:
    """Cancel a preview that the caller started."""
    await previews.cancel_preview(context(), subject(), path_uuid(workspace), path_uuid(preview))
    return no_content()


@route(
    blueprint,
    "POST",
    _TEMPLATE,
    scope="template:update",
    body=CreateTemplateUpdatePreviewRequest,
    answers=TemplateUpdatePreview,
    status=201,
)
async def post_template_preview(template: str) -> Response:
    """Queue plans of the updates of a template's workspaces, at most 20; the others are counted."""
    body = await read_body(CreateTemplateUpdatePreviewRequest)
    return reply(await new_previews.preview_template(context(), subject(), path_uuid(template), body), 201)


@route(blueprint, "GET", f"{_TEMPLATE}/<id:preview>", scope="template:update", answers=TemplateUpdatePreview)
async def get_template_preview(template: str, preview: str) -> Response:
    """Return the previews of a template's workspaces that the caller started."""
    found = await previews.get_template_preview(context(), subject(), path_uuid(template), path_uuid(preview))
    return reply(found)


@route(blueprint, "DELETE", f"{_TEMPLATE}/<id:preview>", scope="template:update", status=204)
async def delete_template_preview(template: str, preview: str) -> Response:
    """Cancel the previews of a template's workspaces that the caller started."""
    await previews.cancel_template_preview(context(), subject(), path_uuid(template), path_uuid(preview))
    return no_content()
