"""Templates and the examples to start from."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from quart import Blueprint, Response

from coder.api.template_versions import ArchiveTemplateVersionsRequest, UpdateActiveTemplateVersion
from coder.api.templates import CreateTemplateRequest, Template, UpdateTemplateMeta
from coder.coderd.http.auth import authenticated, caller, context, subject
from coder.coderd.http.json import message, read_body, reply
from coder.coderd.http.query import Query, path_uuid
from coder.coderd.services import template_acl, template_versions, templates
from coder.coderd.services.errors import Invalid
from coder.coderd.services.examples import list_examples
from coder.coderd.services.organizations import resolve_organization
from coder.coderd.services.template_versions import VersionPage
from coder.coderd.store.templates import TemplateFilter
from coder.domain.search import parse_query

if TYPE_CHECKING:
    from coder.coderd.services.authentication import Caller
    from coder.coderd.services.context import Context
    from coder.domain.policy import Subject

blueprint = Blueprint("templates", __name__, url_prefix="/api/v2")


async def show_list(ctx: Context, who: Caller, query: Query) -> list[Template]:
    """Templates of all organizations."""
    return await templates.list_templates(ctx, who.subject, _filter(who.subject, query.text("q")))


@blueprint.get("/templates")
@authenticated
async def get_templates() -> Response:
    return reply(await show_list(context(), caller(), Query()))


@blueprint.get("/organizations/<organization>/templates")
@authenticated
async def get_organization_templates(organization: str) -> Response:
    row = await resolve_organization(context(), subject(), organization)
    which = _filter(subject(), Query().text("q"), row.id)
    return reply(await templates.list_templates(context(), subject(), which))


@blueprint.get("/templates/examples")
@authenticated
async def get_examples() -> Response:
    return reply(list_examples(subject()))


@blueprint.get("/organizations/<organization>/templates/examples")
@authenticated
async def get_organization_examples(organization: str) -> Response:
    await resolve_organization(context(), subject(), organization)
    return reply(list_examples(subject()))


@blueprint.post("/organizations/<organization>/templates")
@authenticated
async def post_template(organization: str) -> Response:
    row = await resolve_organization(context(), subject(), organization)
    body = await read_body(CreateTemplateRequest)
    return reply(await templates.create_template(context(), subject(), row.id, body), 201)


@blueprint.get("/organizations/<organization>/templates/<name>")
@authenticated
async def get_template_by_name(organization: str, name: str) -> Response:
    row = await resolve_organization(context(), subject(), organization)
    return reply(await templates.get_template_by_name(context(), subject(), row.id, name))


@blueprint.get("/templates/<template>")
@authenticated
async def get_template(template: str) -> Response:
    return reply(await templates.get_template(context(), subject(), path_uuid(template)))


@blueprint.patch("/templates/<template>")
@authenticated
async def patch_template(template: str) -> Response:
    body = await read_body(UpdateTemplateMeta)
    return reply(await templates.update_template(context(), subject(), path_uuid(template), body))


@blueprint.delete("/templates/<template>")
@authenticated
async def delete_template(template: str) -> Response:
    await templates.delete_template(context(), subject(), path_uuid(template))
    return message("Template has been deleted!")


@blueprint.get("/templates/<template>/daus")
@authenticated
async def get_daily_users(template: str) -> Response:
    return reply(await templates.get_daily_users(context(), subject(), path_uuid(template)))


@blueprint.get("/templates/<template>/versions")
@authenticated
async def get_versions(template: str) -> Response:
    query = Query()
    page = VersionPage(
        include_archived=query.boolean("include_archived"),
        after_id=query.uuid("after_id"),
        limit=query.positive("limit"),
        offset=query.positive("offset"),
    )
    query.check()
    return reply(await template_versions.list_versions(context(), subject(), path_uuid(template), page))


@blueprint.patch("/templates/<template>/versions")
@authenticated
async def patch_active_version(template: str) -> Response:
    body = await read_body(UpdateActiveTemplateVersion)
    await templates.set_active_version(context(), subject(), path_uuid(template), body.id)
    return message("Updated the active template version!")


@blueprint.post("/templates/<template>/versions/archive")
@authenticated
async def post_archive_versions(template: str) -> Response:
    body = await read_body(ArchiveTemplateVersionsRequest, allow_empty=True)
    template_id = path_uuid(template)
    archived = await template_versions.archive_unused(context(), subject(), template_id, everything=body.all)
    # Upstream's null for "none" is part of the contract.
    return reply({"template_id": template_id, "archived_ids": archived or None})


@blueprint.get("/templates/<template>/versions/<name>")
@authenticated
async def get_version_by_name(template: str, name: str) -> Response:
    row = await templates.load_template(context(), subject(), path_uuid(template))
    return reply(await template_versions.get_version_by_name(context(), subject(), row, name))


@blueprint.get("/organizations/<organization>/templates/<name>/versions/<version>")
@authenticated
async def get_version_by_names(organization: str, name: str, version: str) -> Response:
    row = await resolve_organization(context(), subject(), organization)
    template = await template_versions.find_template(context(), subject(), row.id, name)
    return reply(await template_versions.get_version_by_name(context(), subject(), template, version))


@blueprint.get("/organizations/<organization>/templates/<name>/versions/<version>/previous")
@authenticated
async def get_previous_version(organization: str, name: str, version: str) -> Response:
    row = await resolve_organization(context(), subject(), organization)
    template = await template_versions.find_template(context(), subject(), row.id, name)
    found = await template_versions.get_previous_version(context(), subject(), template, version)
    return reply(found) if found is not None else Response(b"", 204)


@blueprint.get("/templates/<template>/acl")
@authenticated
async def get_acl(template: str) -> Response:
    return reply(await template_acl.get_acl(context(), subject(), path_uuid(template)))


@blueprint.patch("/templates/<template>/acl")
@authenticated
async def patch_acl(template: str) -> Response:
    body = await read_body(template_acl.AclChange)
    await template_acl.update_acl(context(), subject(), path_uuid(template), body)
    return message("Successfully updated template ACL list.")


@blueprint.get("/templates/<template>/acl/available")
@authenticated
async def get_acl_available(template: str) -> Response:
    return reply(await template_acl.list_available(context(), subject(), path_uuid(template)))


def _filter(subject: Subject, query: str, organization_id: UUID | None = None) -> TemplateFilter:
    """The `q=` of a list. Raises Invalid naming every mistake."""
    terms = parse_query(query, "display_name")
    author = terms.one("author")
    which = TemplateFilter(
        organization_id=organization_id,
        organization_name=terms.one("organization"),
        exact_name=terms.one("exact_name"),
        exact_display_name=terms.one("exact_display_name"),
        name=terms.one("name"),
        display_name=terms.one("display_name"),
        ids=tuple(terms.uuids("ids")),
        deleted=bool(terms.boolean("deleted")),
        deprecated=terms.boolean("deprecated"),
        has_ai_task=terms.boolean("has-ai-task"),
        has_external_agent=terms.boolean("has_external_agent"),
        author_id=subject.user_id if author == "me" else terms.uuid("author_id"),
        author_name="" if author == "me" else author,
    )
    if author == "me":
        terms.uuid("author_id")
    wrong = terms.refusals()
    if wrong:
        raise Invalid("Invalid template search query.", validations=[(item.field, item.detail) for item in wrong])
    return which
