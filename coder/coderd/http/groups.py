"""Groups, by id and inside their organization."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.groups import CreateGroupRequest, PatchGroupRequest
from coder.coderd.http.auth import authenticated, context, subject
from coder.coderd.http.json import message, read_body, reply
from coder.coderd.http.query import Query, path_uuid
from coder.coderd.services import groups
from coder.coderd.services.organizations import resolve_organization
from coder.coderd.store.groups import GroupRow

blueprint = Blueprint("groups", __name__, url_prefix="/api/v2")


@blueprint.get("/groups")
@authenticated
async def get_groups() -> Response:
    query = Query()
    ids = query.uuids("group_ids")
    query.check()
    return reply(
        await groups.list_groups(
            context(),
            subject(),
            organization=query.text("organization"),
            has_member=query.text("has_member"),
            ids=ids,
        )
    )


@blueprint.get("/groups/<group>")
@authenticated
async def get_group(group: str) -> Response:
    row = await groups.load_group(context(), subject(), path_uuid(group))
    return await _shown(row)


@blueprint.patch("/groups/<group>")
@authenticated
async def patch_group(group: str) -> Response:
    group_id = path_uuid(group)
    await groups.load_group(context(), subject(), group_id, "update")
    body = await read_body(PatchGroupRequest)
    return reply(await groups.update_group(context(), subject(), group_id, body))


@blueprint.delete("/groups/<group>")
@authenticated
async def delete_group(group: str) -> Response:
    await groups.delete_group(context(), subject(), path_uuid(group))
    return message("Successfully deleted group!")


@blueprint.get("/groups/<group>/members")
@authenticated
async def get_members(group: str) -> Response:
    return await _members(await groups.load_group(context(), subject(), path_uuid(group)))


@blueprint.get("/organizations/<organization>/groups")
@authenticated
async def get_organization_groups(organization: str) -> Response:
    row = await resolve_organization(context(), subject(), organization)
    return reply(await groups.list_groups(context(), subject(), organization=str(row.id)))


@blueprint.post("/organizations/<organization>/groups")
@authenticated
async def post_group(organization: str) -> Response:
    row = await resolve_organization(context(), subject(), organization)
    body = await read_body(CreateGroupRequest)
    return reply(await groups.create_group(context(), subject(), row, body), 201)


@blueprint.get("/organizations/<organization>/groups/<name>")
@authenticated
async def get_organization_group(organization: str, name: str) -> Response:
    row = await resolve_organization(context(), subject(), organization)
    return await _shown(await groups.load_group_by_name(context(), subject(), row, name))


@blueprint.get("/organizations/<organization>/groups/<name>/members")
@authenticated
async def get_organization_group_members(organization: str, name: str) -> Response:
    row = await resolve_organization(context(), subject(), organization)
    return await _members(await groups.load_group_by_name(context(), subject(), row, name))


async def _shown(row: GroupRow) -> Response:
    with_members = not Query().boolean("exclude_members")
    return reply(await groups.show(context(), subject(), row, with_members=with_members))


async def _members(row: GroupRow) -> Response:
    query = Query()
    limit, offset = query.positive("limit"), query.positive("offset")
    query.check()
    search = query.text("q").lower()
    return reply(await groups.members_page(context(), subject(), row, search=search, offset=offset, limit=limit))
