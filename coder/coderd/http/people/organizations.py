"""Organizations and their members."""

from __future__ import annotations

from uuid import UUID

from quart import Blueprint, Response

from coder.api.base.errors import Response as Envelope
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
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.declarations import search
from coder.coderd.http.server.json import message, no_content, read_body, reply
from coder.coderd.http.server.query import Query
from coder.coderd.http.server.route import route
from coder.coderd.services.access.authorization import may
from coder.coderd.services.foundation.errors import Forbidden, Invalid
from coder.coderd.services.people import organizations, user_views, users
from coder.coderd.services.people.organizations import OrganizationRow
from coder.coderd.services.people.users import UserFilter
from coder.domain.access.policy import Resource
from coder.domain.foundation.search import parse_query

blueprint = Blueprint("organizations", __name__, url_prefix="/api/v2/organizations")


@route(blueprint, "GET", "", scope="organization:read", answers=list[Organization])
async def get_organizations() -> Response:
    found = await organizations.list_organizations(context(), subject())
    return reply([organizations.organization_view(row) for row in found])


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
    """With its Everyone group; its maker becomes its administrator."""
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
    """Absent fields stay."""
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
)
async def get_members(organization: str) -> Response:
    row = await _organization(organization)
    user_id, system = _member_query(Query().text("q"))
    members, _ = await organizations.list_members(context(), subject(), row, user_id=user_id, system=system)
    titles = await organizations.role_titles(context(), row.id, members)
    return reply([organizations.member_with_user_view(member, titles) for member in members])


@route(
    blueprint,
    "GET",
    "/<organization>/paginated-members",
    scope="organization_member:read",
    query={"limit": int, "offset": int, "q": str},
    answers=PaginatedMembersResponse,
)
async def get_paginated_members(organization: str) -> Response:
    row = await _organization(organization)
    query = Query()
    limit, offset = query.positive("limit"), query.positive("offset")
    query.check()
    members, count = await organizations.list_members(
        context(), subject(), row, search=query.text("q").lower(), offset=offset, limit=limit
    )
    titles = await organizations.role_titles(context(), row.id, members)
    return reply(
        PaginatedMembersResponse(
            members=[organizations.member_with_user_view(member, titles) for member in members], count=count
        )
    )


def _member_query(text: str) -> tuple[UUID | None, bool]:
    terms = parse_query(text, "user_id")
    user_id, system = terms.uuid("user_id"), terms.boolean("include_system")
    terms.one("github_user_id")
    wrong = terms.refusals()
    if wrong:
        raise Invalid(
            "Invalid organization member search query.", validations=[(item.field, item.detail) for item in wrong]
        )
    return user_id, bool(system)


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
    member = await organizations.get_member(context(), subject(), row, person)
    titles = await organizations.role_titles(context(), row.id, [member])
    return reply(organizations.member_with_user_view(member, titles))


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
    return reply(await organizations.add_member(context(), subject(), row, person))


@route(
    blueprint,
    "DELETE",
    "/<organization>/members/<user>",
    scope="organization_member:delete",
    status=204,
    audit=Audited("organization_member", "delete", "path:1"),
)
async def delete_member(organization: str, user: str) -> Response:
    """Ends a membership with all that hangs on it: groups, and what was shared with the person."""
    row = await _organization(organization)
    person = await users.find_account(context(), subject(), user)
    await organizations.remove_member(context(), subject(), row, person)
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
    return reply(await organizations.set_member_roles(context(), subject(), row, person, body.roles))


@route(
    blueprint,
    "GET",
    "/<organization>/members/<user>/workspaces/available-users",
    scope=("user:read", "workspace:create"),
    query={"limit": int, "offset": int, "q": str},
    answers=list[MinimalUser],
)
async def get_available_users(organization: str, user: str) -> Response:
    """Everybody for those who may read users; just themselves for the others."""
    row = await _organization(organization)
    await users.find_person(context(), subject(), user)
    if not may(subject(), "create", Resource("workspace", organization_id=row.id)):
        raise Forbidden
    query = Query()
    limit, offset = query.positive("limit"), query.positive("offset")
    query.check()
    wanted = UserFilter(search=query.text("q").lower(), limit=limit, offset=offset)
    found, _ = await users.list_users(context(), subject(), wanted)
    return reply([user_views.minimal_user(one) for one in found if row.id in one.organization_ids])


async def _organization(reference: str) -> OrganizationRow:
    return await organizations.resolve_organization(context(), subject(), reference)
