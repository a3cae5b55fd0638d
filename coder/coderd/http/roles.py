"""Assignable roles and permission checks."""

from __future__ import annotations

import dataclasses
from typing import Any
from uuid import UUID

import msgspec
from quart import Blueprint, Response

from coder.api.users import AuthorizationRequest
from coder.coderd.http.auth import authenticated, context, subject
from coder.coderd.http.json import no_content, read_body, reply
from coder.coderd.services import custom_roles, organizations, roles, users
from coder.coderd.services.authorization import may, require
from coder.coderd.services.custom_roles import RoleWish
from coder.coderd.services.errors import Invalid
from coder.domain.policy import Resource, Subject

blueprint = Blueprint("roles", __name__, url_prefix="/api/v2")


class Check(msgspec.Struct):
    """One question: may the caller do `action` to `object`?"""

    object: dict[str, Any] = msgspec.field(default_factory=dict)
    action: str = ""


@blueprint.get("/users/roles")
@authenticated
async def get_site_roles() -> Response:
    asker = subject()
    require(asker, "read", Resource("assign_role"), hidden=False)
    return reply(roles.assignable_site_roles(lambda name: users.may_assign(asker, name)))


@blueprint.get("/organizations/<organization>/members/roles")
@authenticated
async def get_organization_roles(organization: str) -> Response:
    asker = subject()
    row = await organizations.resolve_organization(context(), asker, organization)
    require(asker, "read", Resource("assign_org_role", organization_id=row.id))
    built_in = roles.assignable_organization_roles(row.id, lambda name: organizations.may_assign(asker, row.id, name))
    own = await custom_roles.list_assignable(context(), row, organizations.may_assign(asker, row.id, "custom"))
    return reply([*built_in, *own])


@blueprint.post("/organizations/<organization>/members/roles")
@authenticated
async def post_custom_role(organization: str) -> Response:
    row = await organizations.resolve_organization(context(), subject(), organization)
    body = await read_body(RoleWish)
    return reply(await custom_roles.create_role(context(), subject(), row, body))


@blueprint.put("/organizations/<organization>/members/roles")
@authenticated
async def put_custom_role(organization: str) -> Response:
    row = await organizations.resolve_organization(context(), subject(), organization)
    body = await read_body(RoleWish)
    return reply(await custom_roles.update_role(context(), subject(), row, body))


@blueprint.delete("/organizations/<organization>/members/roles/<name>")
@authenticated
async def delete_custom_role(organization: str, name: str) -> Response:
    row = await organizations.resolve_organization(context(), subject(), organization)
    await custom_roles.delete_role(context(), subject(), row, name)
    return no_content()


@blueprint.post("/authcheck")
@authenticated
async def post_authcheck() -> Response:
    body = await read_body(AuthorizationRequest)
    answers = {}
    for name, raw in body.checks.items():
        try:
            check = msgspec.convert(raw, Check)
        except msgspec.ValidationError as error:
            raise Invalid("Request body must be valid JSON.", str(error)) from error
        resource = _resource(name, check.object, subject())
        answers[name] = may(subject(), check.action, resource)
    return reply(dict(sorted(answers.items())))


def _resource(name: str, raw: dict[str, Any], asker: Subject) -> Resource:
    kind = raw.get("resource_type") or ""
    if not kind:
        raise Invalid(f'Object\'s "resource_type" field must be defined for key "{name}".')
    owner = raw.get("owner_id") or ""
    resource = Resource(
        str(kind),
        owner_id=asker.user_id if owner == "me" else _uuid(owner),
        organization_id=_uuid(raw.get("organization_id") or ""),
        any_organization=bool(raw.get("any_org")),
        id=str(raw["resource_id"]) if raw.get("resource_id") else None,
    )
    if kind == "user" and resource.id and resource.owner_id is None:
        resource = dataclasses.replace(resource, owner_id=_uuid(resource.id))
    return resource


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(str(text)) if text else None
    except ValueError:
        return None
