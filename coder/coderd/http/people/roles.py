"""Assignable roles and permission checks."""

from __future__ import annotations

from uuid import UUID

from quart import Blueprint, Response

from coder.api.base.refusals import Invalid
from coder.api.people.roles import AssignableRoles, AuthorizationRequest, Role, SentCheck
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.json import no_content, read_body, reply
from coder.coderd.http.server.route import route
from coder.coderd.services.access.authorization import require
from coder.coderd.services.people import (
    authorization_checks,
    custom_roles,
    organizations,
    role_assignment,
    roles,
    user_changes,
)
from coder.coderd.services.people.authorization_checks import ObjectCheck
from coder.coderd.services.people.custom_roles import RoleSpec
from coder.domain.access.policy import Class, Subject
from coder.domain.access.route_scopes import ANY_KEY

blueprint = Blueprint("roles", __name__, url_prefix="/api/v2")


@route(blueprint, "GET", "/users/roles", scope="assign_role:read", answers=list[AssignableRoles], compressed=True)
async def get_site_roles() -> Response:
    """Return site roles. Only owners may assign them; `member` is implicit."""
    asker = subject()
    require(asker, "read", Class("assign_role"), hidden=False)
    return reply(roles.assignable_site_roles(lambda name: user_changes.may_assign(asker, name)))


@route(
    blueprint,
    "GET",
    "/organizations/<organization>/members/roles",
    scope="assign_org_role:read",
    answers=list[AssignableRoles],
    compressed=True,
)
async def get_organization_roles(organization: str) -> Response:
    """Return roles. Owners and organization admins may assign every role; others only harmless ones."""
    asker = subject()
    row = await organizations.resolve_organization(context(), asker, organization)
    require(asker, "read", Class("assign_org_role", organization_id=row.id))
    built_in = roles.assignable_organization_roles(row.id, lambda name: role_assignment.may_assign(asker, row.id, name))
    own = await custom_roles.list_assignable(context(), row, role_assignment.may_assign(asker, row.id, "custom"))
    return reply([*built_in, *own])


@route(
    blueprint,
    "POST",
    "/organizations/<organization>/members/roles",
    scope="assign_org_role:create",
    body=RoleSpec,
    answers=Role,
    refuses=(409,),
    audit=Audited("custom_role", "create", "body:name"),
)
async def post_custom_role(organization: str) -> Response:
    row = await organizations.resolve_organization(context(), subject(), organization)
    body = await read_body(RoleSpec)
    return reply(await custom_roles.create_role(context(), subject(), row, body))


@route(
    blueprint,
    "PUT",
    "/organizations/<organization>/members/roles",
    scope="assign_org_role:update",
    body=RoleSpec,
    answers=Role,
    audit=Audited("custom_role", "write", "sent:name"),
)
async def put_custom_role(organization: str) -> Response:
    """Replace the permissions of the role of that name."""
    row = await organizations.resolve_organization(context(), subject(), organization)
    body = await read_body(RoleSpec)
    return reply(await custom_roles.update_role(context(), subject(), row, body))


@route(
    blueprint,
    "DELETE",
    "/organizations/<organization>/members/roles/<name>",
    scope="assign_org_role:delete",
    status=204,
    audit=Audited("custom_role", "delete", "path:1"),
)
async def delete_custom_role(organization: str, name: str) -> Response:
    """Delete a role, and its assignments."""
    row = await organizations.resolve_organization(context(), subject(), organization)
    await custom_roles.delete_role(context(), subject(), row, name)
    return no_content()


@route(blueprint, "POST", "/authcheck", scope=ANY_KEY, body=AuthorizationRequest, answers=dict[str, bool])
async def post_authcheck() -> Response:
    body = await read_body(AuthorizationRequest)
    checks = {name: _check(name, check, subject()) for name, check in body.checks.items()}
    return reply(await authorization_checks.answer_checks(context(), subject(), checks))


def _check(name: str, check: SentCheck, asker: Subject) -> ObjectCheck:
    described = check.object
    if not described.resource_type:
        raise Invalid(f'Object\'s "resource_type" field must be defined for key "{name}".')
    kind = Class(
        described.resource_type,
        owner_id=asker.user_id if described.owner_id == "me" else _uuid(described.owner_id),
        organization_id=_uuid(described.organization_id),
        any_organization=described.any_org,
    )
    return ObjectCheck(kind, check.action, described.resource_id)


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError:
        return None
