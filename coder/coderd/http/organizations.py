"""Organizations and their members."""

from __future__ import annotations

from uuid import UUID

from quart import Blueprint, Response

from coder.api.organizations import (
    CreateOrganizationRequest,
    PaginatedMembersResponse,
    UpdateOrganizationRequest,
)
from coder.api.users import UpdateRoles
from coder.coderd.http.auth import authenticated, context, subject
from coder.coderd.http.json import message, no_content, read_body, reply
from coder.coderd.http.query import Query
from coder.coderd.services import organizations, users
from coder.coderd.services.authorization import may
from coder.coderd.services.errors import Forbidden, Invalid
from coder.coderd.store.organizations import OrganizationRow
from coder.coderd.store.users import UserFilter
from coder.domain.policy import Resource
from coder.domain.search import parse_query

blueprint = Blueprint("organizations", __name__, url_prefix="/api/v2/organizations")


@blueprint.get("")
@authenticated
async def get_organizations() -> Response:
    found = await organizations.list_organizations(context(), subject())
    return reply([organizations.organization_view(row) for row in found])


@blueprint.post("")
@authenticated
async def post_organization() -> Response:
    body = await read_body(CreateOrganizationRequest)
    row = await organizations.create_organization(context(), subject(), body)
    return reply(organizations.organization_view(row), 201)


@blueprint.get("/<organization>")
@authenticated
async def get_organization(organization: str) -> Response:
    return reply(organizations.organization_view(await _organization(organization)))


@blueprint.patch("/<organization>")
@authenticated
async def patch_organization(organization: str) -> Response:
    row = await _organization(organization)
    body = await read_body(UpdateOrganizationRequest)
    changed = await organizations.update_organization(context(), subject(), row, body)
    return reply(organizations.organization_view(changed))


@blueprint.delete("/<organization>")
@authenticated
async def delete_organization(organization: str) -> Response:
    await organizations.delete_organization(context(), subject(), await _organization(organization))
    return message("Organization has been deleted.")


@blueprint.get("/<organization>/members")
@authenticated
async def get_members(organization: str) -> Response:
    row = await _organization(organization)
    user_id, system = _member_query(Query().text("q"))
    members, _ = await organizations.list_members(context(), subject(), row, user_id=user_id, system=system)
    titles = await organizations.role_titles(context(), row.id, members)
    return reply([organizations.member_with_user_view(member, titles) for member in members])


@blueprint.get("/<organization>/paginated-members")
@authenticated
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


@blueprint.get("/<organization>/members/<user>")
@authenticated
async def get_member(organization: str, user: str) -> Response:
    row = await _organization(organization)
    person = await users.find_user(context(), subject(), user)
    member = await organizations.get_member(context(), subject(), row, person)
    titles = await organizations.role_titles(context(), row.id, [member])
    return reply(organizations.member_with_user_view(member, titles))


@blueprint.post("/<organization>/members/<user>")
@authenticated
async def post_member(organization: str, user: str) -> Response:
    row = await _organization(organization)
    person = await users.resolve_user(context(), subject(), user)
    return reply(await organizations.add_member(context(), subject(), row, person))


@blueprint.delete("/<organization>/members/<user>")
@authenticated
async def delete_member(organization: str, user: str) -> Response:
    row = await _organization(organization)
    person = await users.find_user(context(), subject(), user)
    await organizations.remove_member(context(), subject(), row, person)
    return no_content()


@blueprint.put("/<organization>/members/<user>/roles")
@authenticated
async def put_member_roles(organization: str, user: str) -> Response:
    row = await _organization(organization)
    person = await users.find_user(context(), subject(), user)
    body = await read_body(UpdateRoles)
    return reply(await organizations.set_member_roles(context(), subject(), row, person, body.roles))


@blueprint.get("/<organization>/members/<user>/workspaces/available-users")
@authenticated
async def get_available_users(organization: str, user: str) -> Response:
    row = await _organization(organization)
    await users.find_user(context(), subject(), user)
    if not may(subject(), "create", Resource("workspace", organization_id=row.id)):
        raise Forbidden
    query = Query()
    limit, offset = query.positive("limit"), query.positive("offset")
    query.check()
    wanted = UserFilter(search=query.text("q").lower(), limit=limit, offset=offset)
    found, _ = await users.list_users(context(), subject(), wanted)
    return reply([users.minimal_user(one) for one in found if row.id in one.organization_ids])


async def _organization(reference: str) -> OrganizationRow:
    return await organizations.resolve_organization(context(), subject(), reference)
