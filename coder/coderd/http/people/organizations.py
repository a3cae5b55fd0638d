"""Organizations and their members."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.base.errors import Response as Envelope
from coder.api.base.refusals import Forbidden
from coder.api.people.organizations import (
    CreateOrganizationRequest,
    Organization,
    OrganizationMember,
    OrganizationMemberWithUserData,
    PaginatedMembersResponse,
    UpdateOrganizationRequest,
)
from coder.api.people.roles import UpdateRoles
from coder.api.people.user_names import MinimalUser
from coder.coderd.http.people.user_search import USER_PAGE, check_terms, requested_page
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.declarations import search
from coder.coderd.http.server.json import message, no_content, read_body, reply
from coder.coderd.http.server.query import Query
from coder.coderd.http.server.route import route
from coder.coderd.services.access.authorization import may
from coder.coderd.services.people import member_changes, members, organizations, user_views, users
from coder.coderd.services.people.organizations import OrganizationRow
from coder.coderd.services.people.users import UserFilter
from coder.domain.access.policy import Class
from coder.domain.access.route_scopes import ANY_KEY
from coder.domain.foundation.search import parse_query

blueprint = Blueprint("organizations", __name__, url_prefix="/api/v2/organizations")


@route(blueprint, "GET", "", scope=ANY_KEY, answers=list[Organization])
async def get_organizations() -> Response:
    """Return the organizations the caller may read: with a narrow key, those it reaches."""
    result = await organizations.list_organizations(context(), subject())
    return reply([organizations.organization_view(row) for row in result])


@route(
    blueprint,
    "POST",
    "",
    scope="organization:create",
    body=CreateOrganizationRequest,
    answers=Organization,
    status=201,
    refuses=(409,),
    audit=Audited("organization", "create", "body:id"),
)
async def post_organization() -> Response:
    """Create an organization with its Everyone group; the creator becomes its administrator."""
    body = await read_body(CreateOrganizationRequest)
    row = await organizations.create_organization(context(), subject(), body)
    return reply(organizations.organization_view(row), 201)


@route(blueprint, "GET", "/<organization>", scope="organization:read", answers=Organization)
async def get_organization(organization: str) -> Response:
    return reply(organizations.organization_view(await _organization(organization)))


@route(
    blueprint,
    "PATCH",
    "/<organization>",
    scope="organization:update",
    body=UpdateOrganizationRequest,
    answers=Organization,
    refuses=(409,),
    audit=Audited("organization", "write"),
)
async def patch_organization(organization: str) -> Response:
    """Change an organization. Absent fields are kept."""
    row = await _organization(organization)
    body = await read_body(UpdateOrganizationRequest)
    changed = await organizations.update_organization(context(), subject(), row, body)
    return reply(organizations.organization_view(changed))


@route(
    blueprint,
    "DELETE",
    "/<organization>",
    scope="organization:delete",
    answers=Envelope,
    audit=Audited("organization", "delete"),
)
async def delete_organization(organization: str) -> Response:
    await organizations.delete_organization(context(), subject(), await _organization(organization))
    return message("Organization has been deleted.")


@route(
    blueprint,
    "GET",
    "/<organization>/members",
    scope="organization_member:read",
    query={"q": search("github_user_id include_system user_id")},
    answers=list[OrganizationMemberWithUserData],
    compressed=True,
)
async def get_members(organization: str) -> Response:
    row = await _organization(organization)
    page = _member_query(Query().text("q"))
    rows, _ = await members.list_members(context(), subject(), row, page)
    titles = await members.role_titles(context(), row.id, rows)
    return reply([members.member_with_user_view(member, titles) for member in rows])


@route(
    blueprint,
    "GET",
    "/<organization>/paginated-members",
    scope="organization_member:read",
    query=USER_PAGE,
    answers=PaginatedMembersResponse,
    compressed=True,
)
async def get_paginated_members(organization: str) -> Response:
    row = await _organization(organization)
    page = requested_page("Invalid member search query.")
    rows, count = await members.list_members(context(), subject(), row, page)
    titles = await members.role_titles(context(), row.id, rows)
    return reply(
        PaginatedMembersResponse(
            members=[members.member_with_user_view(member, titles) for member in rows], count=count
        )
    )


def _member_query(text: str) -> UserFilter:
    terms = parse_query(text, "user_id")
    page = UserFilter(
        only_id=terms.uuid("user_id"),
        include_system=bool(terms.boolean("include_system")),
        github_com_user_id=terms.int64("github_user_id") or None,
    )
    check_terms(terms, "Invalid organization member search query.")
    return page


@route(
    blueprint,
    "GET",
    "/<organization>/members/<user>",
    scope="organization_member:read",
    answers=OrganizationMemberWithUserData,
)
async def get_member(organization: str, user: str) -> Response:
    row = await _organization(organization)
    person = await users.find_user(context(), subject(), user)
    member = await members.get_member(context(), subject(), row, person)
    titles = await members.role_titles(context(), row.id, [member])
    return reply(members.member_with_user_view(member, titles))


@route(
    blueprint,
    "POST",
    "/<organization>/members/<user>",
    scope="organization_member:create",
    answers=OrganizationMember,
    audit=Audited("organization_member", "create", "path:1"),
)
async def post_member(organization: str, user: str) -> Response:
    row = await _organization(organization)
    person = await users.resolve_user(context(), subject(), user)
    return reply(await member_changes.add_member(context(), subject(), row, person))


@route(
    blueprint,
    "DELETE",
    "/<organization>/members/<user>",
    scope="organization_member:delete",
    status=204,
    audit=Audited("organization_member", "delete", "path:1"),
)
async def delete_member(organization: str, user: str) -> Response:
    """Delete a membership with its dependents: groups, and objects shared with the user."""
    row = await _organization(organization)
    person = await users.find_account(context(), subject(), user)
    await member_changes.remove_member(context(), subject(), row, person)
    return no_content()


@route(
    blueprint,
    "PUT",
    "/<organization>/members/<user>/roles",
    scope="assign_org_role:assign",
    body=UpdateRoles,
    answers=OrganizationMember,
    audit=Audited("organization_member", "write", "path:1"),
)
async def put_member_roles(organization: str, user: str) -> Response:
    row = await _organization(organization)
    person = await users.find_account(context(), subject(), user)
    body = await read_body(UpdateRoles)
    return reply(await member_changes.set_member_roles(context(), subject(), row, person, body.roles))


@route(
    blueprint,
    "GET",
    "/<organization>/members/<user>/workspaces/available-users",
    scope=("user:read", "workspace:create"),
    query=USER_PAGE,
    answers=list[MinimalUser],
)
async def get_available_users(organization: str, user: str) -> Response:
    """Return all users for callers that may read them; only the caller for the others."""
    row = await _organization(organization)
    await users.find_person(context(), subject(), user)
    if not may(subject(), "create", Class("workspace", organization_id=row.id)):
        raise Forbidden
    rows, _ = await users.list_users(context(), subject(), requested_page())
    return reply([user_views.minimal_user(item) for item in rows if row.id in item.organization_ids])


async def _organization(reference: str) -> OrganizationRow:
    return await organizations.resolve_organization(context(), subject(), reference)
