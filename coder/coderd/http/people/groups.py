"""Groups, by id and inside their organization."""

from __future__ import annotations

from uuid import UUID

from quart import Blueprint, Response

from coder.api.base.errors import Response as Envelope
from coder.api.people.groups import CreateGroupRequest, Group, GroupMembersResponse, PatchGroupRequest
from coder.coderd.http.people.user_search import USER_PAGE, requested_page
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.json import message, read_body, reply
from coder.coderd.http.server.query import Query, path_uuid
from coder.coderd.http.server.route import route
from coder.coderd.services.people import group_changes, groups
from coder.coderd.services.people.groups import GroupRow
from coder.coderd.services.people.organizations import resolve_organization

blueprint = Blueprint("groups", __name__, url_prefix="/api/v2")


@route(
    blueprint,
    "GET",
    "/groups",
    scope="group:read",
    query={"group_ids": list[UUID], "has_member": str, "organization": str},
    answers=list[Group],
    compressed=True,
)
async def get_groups() -> Response:
    """Return the groups the caller may read, with their members."""
    query = Query()
    ids = query.uuids("group_ids")
    organization, has_member = query.one("organization"), query.one("has_member")
    query.only("group_ids", "has_member", "organization")
    query.check()
    return reply(
        await groups.list_groups(
            context(),
            subject(),
            organization=organization,
            has_member=has_member,
            ids=ids,
        )
    )


@route(blueprint, "GET", "/groups/<id:group>", scope="group:read", query={"exclude_members": bool}, answers=Group)
async def get_group(group: str) -> Response:
    row = await groups.load_group(context(), subject(), path_uuid(group))
    return await _group_response(row)


@route(
    blueprint,
    "PATCH",
    "/groups/<id:group>",
    scope="group:update",
    body=PatchGroupRequest,
    answers=Group,
    refuses=(409,),
    audit=Audited("group", "write"),
)
async def patch_group(group: str) -> Response:
    """Change a group. Empty and absent fields are kept."""
    group_id = path_uuid(group)
    await groups.load_group(context(), subject(), group_id, "update")
    body = await read_body(PatchGroupRequest)
    return reply(await group_changes.update_group(context(), subject(), group_id, body))


@route(
    blueprint, "DELETE", "/groups/<id:group>", scope="group:delete", answers=Envelope, audit=Audited("group", "delete")
)
async def delete_group(group: str) -> Response:
    await group_changes.delete_group(context(), subject(), path_uuid(group))
    return message("Successfully deleted group!")


@route(
    blueprint,
    "GET",
    "/groups/<id:group>/members",
    scope="group:read",
    query=USER_PAGE,
    answers=GroupMembersResponse,
    compressed=True,
)
async def get_members(group: str) -> Response:
    return await _members(await groups.load_group(context(), subject(), path_uuid(group)))


@route(
    blueprint, "GET", "/organizations/<organization>/groups", scope="group:read", answers=list[Group], compressed=True
)
async def get_organization_groups(organization: str) -> Response:
    """Return the groups the caller may read, with their members."""
    row = await resolve_organization(context(), subject(), organization)
    return reply(await groups.list_groups(context(), subject(), organization=str(row.id)))


@route(
    blueprint,
    "POST",
    "/organizations/<organization>/groups",
    scope="group:create",
    body=CreateGroupRequest,
    answers=Group,
    status=201,
    refuses=(409,),
    audit=Audited("group", "create", "body:id"),
)
async def post_group(organization: str) -> Response:
    row = await resolve_organization(context(), subject(), organization)
    body = await read_body(CreateGroupRequest)
    return reply(await group_changes.create_group(context(), subject(), row, body), 201)


@route(
    blueprint,
    "GET",
    "/organizations/<organization>/groups/<name>",
    scope="group:read",
    query={"exclude_members": bool},
    answers=Group,
)
async def get_organization_group(organization: str, name: str) -> Response:
    row = await resolve_organization(context(), subject(), organization)
    return await _group_response(await groups.load_group_by_name(context(), subject(), row, name))


@route(
    blueprint,
    "GET",
    "/organizations/<organization>/groups/<name>/members",
    scope="group:read",
    query=USER_PAGE,
    answers=GroupMembersResponse,
    compressed=True,
)
async def get_organization_group_members(organization: str, name: str) -> Response:
    """Return one page of the members the caller may see: all of them, or only the caller."""
    row = await resolve_organization(context(), subject(), organization)
    return await _members(await groups.load_group_by_name(context(), subject(), row, name))


async def _group_response(row: GroupRow) -> Response:
    with_members = not Query().boolean("exclude_members")
    return reply(await groups.show(context(), subject(), row, with_members=with_members))


async def _members(row: GroupRow) -> Response:
    page = requested_page("Invalid member search query.")
    return reply(await groups.members_page(context(), subject(), row, page))
