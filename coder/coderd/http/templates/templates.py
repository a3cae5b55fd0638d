"""Templates and the examples to start from."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from quart import Blueprint, Response

from coder.api.base.errors import Response as Envelope
from coder.api.site.deployment import ACLAvailable
from coder.api.templates.insights import DAUsResponse
from coder.api.templates.template_versions import (
    ArchiveTemplateVersionsRequest,
    ArchiveTemplateVersionsResponse,
    TemplateVersion,
    UpdateActiveTemplateVersion,
)
from coder.api.templates.templates import (
    CreateTemplateRequest,
    Template,
    TemplateACL,
    TemplateBuildTokens,
    TemplateExample,
    UpdateTemplateMeta,
)
from coder.coderd.http.people.user_search import USER_PAGE, check_terms, requested_page
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.auth import caller, context, subject
from coder.coderd.http.server.declarations import NOTHING, search
from coder.coderd.http.server.json import message, read_body, reply
from coder.coderd.http.server.query import Query, path_uuid
from coder.coderd.http.server.route import route
from coder.coderd.services.access.workspace_access import load_template
from coder.coderd.services.people.organizations import resolve_organization
from coder.coderd.services.people.query_terms import find_organization
from coder.coderd.services.templates import build_token_roles, new_templates, template_acl, template_changes, templates
from coder.coderd.services.templates.examples import list_examples
from coder.coderd.services.templates.template_acl import AclChange
from coder.coderd.services.templates.templates import TemplateSearch
from coder.coderd.services.templates.versions import template_versions, version_changes
from coder.coderd.services.templates.versions.template_versions import VersionPage
from coder.domain.foundation.search import parse_query
from coder.domain.foundation.zero import NIL_UUID

if TYPE_CHECKING:
    from coder.coderd.services.access.authentication import Caller
    from coder.coderd.services.foundation.context import Context
    from coder.domain.access.policy import Subject

blueprint = Blueprint("templates", __name__, url_prefix="/api/v2")


async def show_list(ctx: Context, requester: Caller, query: Query) -> list[Template]:
    """Return templates of all organizations."""
    return await templates.list_templates(
        ctx, requester.subject, await _filter(ctx, requester.subject, query.text("q"))
    )


@route(
    blueprint,
    "GET",
    "/templates",
    scope="template:read",
    query={
        "q": search(
            "author author_id deleted deprecated display_name exact_display_name exact_name "
            "has-ai-task has_external_agent ids name organization"
        )
    },
    answers=list[Template],
    compressed=True,
)
async def get_templates() -> Response:
    """Return the templates the caller may read, by name."""
    return reply(await show_list(context(), caller(), Query()))


@route(
    blueprint,
    "GET",
    "/organizations/<organization>/templates",
    scope="template:read",
    query={
        "q": search(
            "author author_id deleted deprecated display_name exact_display_name exact_name "
            "has-ai-task has_external_agent ids name organization"
        )
    },
    answers=list[Template],
    compressed=True,
)
async def get_organization_templates(organization: str) -> Response:
    """Return the templates the caller may read, by name."""
    row = await resolve_organization(context(), subject(), organization)
    which = await _filter(context(), subject(), Query().text("q"), row.id)
    return reply(await templates.list_templates(context(), subject(), which))


@route(blueprint, "GET", "/templates/examples", scope="template:read", answers=list[TemplateExample], compressed=True)
async def get_examples() -> Response:
    """Return the examples for authors."""
    return reply(list_examples(subject()))


@route(
    blueprint,
    "GET",
    "/organizations/<organization>/templates/examples",
    scope="template:read",
    answers=list[TemplateExample],
    compressed=True,
)
async def get_organization_examples(organization: str) -> Response:
    """Return the examples for authors."""
    await resolve_organization(context(), subject(), organization)
    return reply(list_examples(subject()))


@route(
    blueprint,
    "POST",
    "/organizations/<organization>/templates",
    scope="template:create",
    body=CreateTemplateRequest,
    answers=Template,
    status=201,
    refuses=(409,),
    audit=Audited("template", "create", "body:id"),
)
async def post_template(organization: str) -> Response:
    """Create a template of a version that belongs to none."""
    row = await resolve_organization(context(), subject(), organization)
    body = await read_body(CreateTemplateRequest)
    return reply(await new_templates.create_template(context(), subject(), row.id, body), 201)


@route(blueprint, "GET", "/organizations/<organization>/templates/<name>", scope="template:read", answers=Template)
async def get_template_by_name(organization: str, name: str) -> Response:
    """Return a template by name, without regard to case."""
    row = await resolve_organization(context(), subject(), organization)
    return reply(await templates.get_template_by_name(context(), subject(), row.id, name))


@route(blueprint, "GET", "/templates/<id:template>", scope="template:read", answers=Template, compressed=True)
async def get_template(template: str) -> Response:
    return reply(await templates.get_template(context(), subject(), path_uuid(template)))


@route(
    blueprint,
    "PATCH",
    "/templates/<id:template>",
    scope="template:update",
    body=UpdateTemplateMeta,
    answers=Template,
    audit=Audited("template", "write"),
)
async def patch_template(template: str) -> Response:
    """Change the fields in the body."""
    body = await read_body(UpdateTemplateMeta)
    return reply(await template_changes.update_template(context(), subject(), path_uuid(template), body))


@route(
    blueprint,
    "DELETE",
    "/templates/<id:template>",
    scope="template:delete",
    answers=Envelope,
    audit=Audited("template", "delete"),
)
async def delete_template(template: str) -> Response:
    """Mark it deleted."""
    await template_changes.delete_template(context(), subject(), path_uuid(template))
    return message("Template has been deleted!")


@route(
    blueprint,
    "GET",
    "/templates/<id:template>/daus",
    scope="template:view_insights",
    query={"tz_offset": int},
    answers=DAUsResponse,
)
async def get_daily_users(template: str) -> Response:
    """Return the number of users who used workspaces of the template, per day."""
    query = Query()
    query.only("tz_offset")
    offset = query.hours("tz_offset")
    return reply(await templates.get_daily_users(context(), subject(), path_uuid(template), offset))


@route(
    blueprint,
    "GET",
    "/templates/<id:template>/versions",
    scope="template:read",
    query={"after_id": UUID, "include_archived": bool, "limit": int, "offset": int},
    answers=list[TemplateVersion],
    compressed=True,
)
async def get_versions(template: str) -> Response:
    """Return versions, oldest first."""
    query, flags = Query(), Query("Invalid query parameters.")
    page, include_archived = query.page(), flags.flag("include_archived")
    query.check()
    flags.check()
    version_page = VersionPage(include_archived, page.after_id, page.limit, page.offset)
    return reply(await template_versions.list_versions(context(), subject(), path_uuid(template), version_page))


@route(
    blueprint,
    "PATCH",
    "/templates/<id:template>/versions",
    scope="template:update",
    body=UpdateActiveTemplateVersion,
    answers=Envelope,
    audit=Audited("template", "write"),
)
async def patch_active_version(template: str) -> Response:
    """Promote a version."""
    body = await read_body(UpdateActiveTemplateVersion)
    await template_changes.set_active_version(context(), subject(), path_uuid(template), body.id)
    return message("Updated the active template version!")


@route(
    blueprint,
    "POST",
    "/templates/<id:template>/versions/archive",
    scope="template:update",
    body=ArchiveTemplateVersionsRequest,
    answers=ArchiveTemplateVersionsResponse,
    audit=Audited("template", "write"),
)
async def post_archive_versions(template: str) -> Response:
    """Archive unneeded versions: failed ones, or all that are not in use."""
    body = await read_body(ArchiveTemplateVersionsRequest)
    template_id = path_uuid(template)
    archived = await version_changes.archive_unused(context(), subject(), template_id, everything=body.all)
    # Upstream's null for an empty list is part of the contract.
    return reply({"template_id": template_id, "archived_ids": archived or None})


@route(blueprint, "GET", "/templates/<id:template>/versions/<name>", scope="template:read", answers=TemplateVersion)
async def get_version_by_name(template: str, name: str) -> Response:
    row = await load_template(context(), subject(), path_uuid(template))
    return reply(await template_versions.get_version_by_name(context(), subject(), row, name))


@route(
    blueprint,
    "GET",
    "/organizations/<organization>/templates/<name>/versions/<version>",
    scope="template:read",
    answers=TemplateVersion,
)
async def get_version_by_names(organization: str, name: str, version: str) -> Response:
    row = await resolve_organization(context(), subject(), organization)
    template = await template_versions.find_template(context(), subject(), row.id, name)
    return reply(await template_versions.get_version_by_name(context(), subject(), template, version))


@route(
    blueprint,
    "GET",
    "/organizations/<organization>/templates/<name>/versions/<version>/previous",
    scope="template:read",
    answers=TemplateVersion | None,
    others={204: NOTHING},
)
async def get_previous_version(organization: str, name: str, version: str) -> Response:
    """Return the version before the one of that name; None for the first."""
    row = await resolve_organization(context(), subject(), organization)
    template = await template_versions.find_template(context(), subject(), row.id, name)
    result = await template_versions.get_previous_version(context(), subject(), template, version)
    return reply(result) if result is not None else Response(b"", 204)


@route(blueprint, "GET", "/templates/<id:template>/acl", scope="template:update", answers=TemplateACL)
async def get_acl(template: str) -> Response:
    """Return the access list. Group members are not listed, only counted."""
    return reply(await template_acl.get_acl(context(), subject(), path_uuid(template)))


@route(
    blueprint,
    "PATCH",
    "/templates/<id:template>/acl",
    scope="template:create",
    body=AclChange,
    answers=Envelope,
    audit=Audited("template", "write"),
)
async def patch_acl(template: str) -> Response:
    """Grant or revoke access."""
    body = await read_body(template_acl.AclChange)
    await template_acl.update_acl(context(), subject(), path_uuid(template), body)
    return message("Successfully updated template ACL list.")


@route(
    blueprint,
    "GET",
    "/templates/<id:template>/acl/available",
    scope="template:update",
    query=USER_PAGE,
    answers=ACLAvailable,
    compressed=True,
)
async def get_acl_available(template: str) -> Response:
    """Return the candidates for access that match `q`; users are paginated."""
    page = requested_page()
    return reply(await template_acl.list_available(context(), subject(), path_uuid(template), page))


@route(
    blueprint,
    "GET",
    "/templates/<id:template>/build-tokens",
    scope="template:read",
    answers=TemplateBuildTokens,
)
async def get_build_tokens(template: str) -> Response:
    """Return whether session tokens of the template's builds carry all roles of their owners (ours)."""
    return reply(await build_token_roles.get_build_tokens(context(), subject(), path_uuid(template)))


@route(
    blueprint,
    "PUT",
    "/templates/<id:template>/build-tokens",
    scope="template:update",
    body=TemplateBuildTokens,
    answers=TemplateBuildTokens,
    audit=Audited("template", "write"),
)
async def put_build_tokens(template: str) -> Response:
    """Change the roles that tokens of builds carry. Only owners of the deployment may turn all roles on."""
    body = await read_body(TemplateBuildTokens)
    return reply(await build_token_roles.set_build_tokens(context(), subject(), path_uuid(template), body))


async def _filter(ctx: Context, subject: Subject, query: str, organization_id: UUID | None = None) -> TemplateSearch:
    """Parse the `q=` of a list. Raises Invalid naming every mistake."""
    terms = parse_query(query, "display_name")
    author = terms.one("author")
    named = await find_organization(ctx, subject, terms)
    if organization_id is not None and named not in (None, organization_id):
        named = NIL_UUID  # requested in two organizations, so none matches
    which = TemplateSearch(
        organization_id=named or organization_id,
        exact_name=terms.one("exact_name"),
        exact_display_name=terms.one("exact_display_name"),
        name=terms.pattern("name"),
        display_name=terms.pattern("display_name"),
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
    check_terms(terms, "Invalid template search query.")
    return which
