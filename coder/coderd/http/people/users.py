"""Users: /api/v2/users and the routes below one user."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from quart import Blueprint, Response

from coder.api.base.errors import Response as Envelope
from coder.api.base.refusals import Forbidden, NotFound
from coder.api.login.external_auth import GitSSHKey
from coder.api.people.organizations import Organization
from coder.api.people.passwords import UpdateUserPasswordRequest, UserLoginType
from coder.api.people.roles import UpdateRoles, UserRoles
from coder.api.people.user_requests import CreateUserRequestWithOrgs, UpdateUserProfileRequest
from coder.api.people.users import GetUsersResponse, User
from coder.coderd.http.people.user_search import USER_PAGE, requested_page
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.auth import caller, context, subject
from coder.coderd.http.server.json import message, no_content, read_body, reply
from coder.coderd.http.server.query import Query
from coder.coderd.http.server.route import route
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.people import (
    git_ssh_keys,
    members,
    new_users,
    organizations,
    user_changes,
    user_passwords,
    user_views,
    users,
)
from coder.coderd.services.people.users import user_resource
from coder.domain.access.rate_budgets import PASSWORDS
from coder.domain.access.route_scopes import ANY_KEY

if TYPE_CHECKING:
    from coder.coderd.services.access.authentication import Caller
    from coder.coderd.services.foundation.context import Context

blueprint = Blueprint("users", __name__, url_prefix="/api/v2/users")


@route(
    blueprint,
    "GET",
    "",
    scope=ANY_KEY,  # a narrow key may list the users it reaches, even if there are none
    query=USER_PAGE,
    answers=GetUsersResponse,
    compressed=True,
)
async def get_users() -> Response:
    """Return all users for callers that may read them; only the caller for the others."""
    rows, count = await users.list_users(context(), subject(), requested_page())
    return reply(GetUsersResponse(users=[user_views.user_view(row) for row in rows], count=count))


@route(
    blueprint,
    "POST",
    "",
    scope="user:create",
    body=CreateUserRequestWithOrgs,
    answers=User,
    status=201,
    refuses=(409,),
    audit=Audited("user", "create", "body:id"),
)
async def post_user() -> Response:
    body = await read_body(CreateUserRequestWithOrgs)
    row = await new_users.create_user(
        context(),
        subject(),
        new_users.NewUser(
            email=body.email,
            username=body.username,
            name=body.name,
            password=body.password,
            login_type=body.login_type or "password",
            status=body.user_status or "dormant",
            organization_ids=body.organization_ids,
            is_service_account=body.service_account is True,
        ),
    )
    return reply(user_views.user_view(row), 201)


async def show_me(_ctx: Context, me: Caller, _query: Query) -> User:
    """Return the caller. Authentication read this row a moment ago, so the most frequent request needs no further
    query."""
    require(me.subject, "read", user_resource(me.user.id))
    return user_views.user_view(me.user, carried=me.subject.site_roles)


@route(blueprint, "GET", "/<user>", scope="user:read", answers=User)
async def get_user(user: str) -> Response:
    if user == "me":
        return reply(await show_me(context(), caller(), Query()))
    row = await users.read_user(context(), subject(), user)
    carried = subject().site_roles if row.id == subject().user_id else None
    return reply(user_views.user_view(row, carried=carried))


@route(
    blueprint,
    "DELETE",
    "/<user>",
    scope="user:delete",
    answers=Envelope,
    refuses=(417,),
    audit=Audited("user", "delete"),
)
async def delete_user(user: str) -> Response:
    await user_changes.delete_user(context(), subject(), await users.resolve_user(context(), subject(), user))
    return message("User has been deleted!")


@route(
    blueprint,
    "PUT",
    "/<user>/profile",
    scope=("user:update", "user:update_personal"),
    body=UpdateUserProfileRequest,
    required=("username",),
    answers=User,
    refuses=(409,),
    audit=Audited("user", "write"),
)
async def put_profile(user: str) -> Response:
    """Change the profile. Members may change their full name, but not their username."""
    row = await users.resolve_user(context(), subject(), user)
    body = await read_body(UpdateUserProfileRequest)
    return reply(user_views.user_view(await user_changes.update_profile(context(), subject(), row, body)))


@route(blueprint, "PUT", "/<user>/status/<action>", scope="user:update", answers=User, audit=Audited("user", "write"))
async def put_status(user: str, action: str) -> Response:
    """Suspend or activate a user."""
    status = {"suspend": "suspended", "activate": "active"}.get(action)
    if status is None:
        return message("Route not found.", 404)
    row = await users.resolve_user(context(), subject(), user)
    return reply(user_views.user_view(await user_changes.set_status(context(), subject(), row, status)))


@route(
    blueprint,
    "PUT",
    "/<user>/password",
    scope="user:update_personal",
    budget=PASSWORDS,
    body=UpdateUserPasswordRequest,
    required=("password",),
    status=204,
    audit=Audited("user", "write"),
)
async def put_password(user: str) -> Response:
    """Change the password and revoke every session of the user."""
    row = await users.resolve_user(context(), subject(), user)
    body = await read_body(UpdateUserPasswordRequest)
    await user_passwords.set_password(context(), subject(), row, body.old_password, body.password)
    return no_content()


@route(blueprint, "GET", "/<user>/roles", scope="user:read_personal", answers=UserRoles)
async def get_user_roles(user: str) -> Response:
    row = await users.resolve_user(context(), subject(), user)
    if not may(subject(), "read_personal", user_resource(row.id)):
        raise NotFound
    by_organization = await users.roles_by_organization(context(), row.id)
    names: Collection[str] = row.rbac_roles
    if row.id == subject().user_id:  # the roles that the caller's token carries
        names = [name for name in names if name in subject().site_roles]
        by_organization = {
            key: [name for name in value if name in subject().organization_roles.get(key, ())]
            for key, value in by_organization.items()
        }
    return reply(
        UserRoles(
            roles=list(names),
            organization_roles={str(key): value for key, value in by_organization.items()},
        )
    )


@route(
    blueprint,
    "PUT",
    "/<user>/roles",
    scope="assign_role:assign",
    body=UpdateRoles,
    answers=User,
    audit=Audited("user", "write"),
)
async def put_user_roles(user: str) -> Response:
    row = await users.resolve_user(context(), subject(), user)
    body = await read_body(UpdateRoles)
    return reply(user_views.user_view(await user_changes.set_roles(context(), subject(), row, body.roles)))


@route(blueprint, "GET", "/<user>/login-type", scope="user:read", answers=UserLoginType)
async def get_login_type(user: str) -> Response:
    row = await users.resolve_user(context(), subject(), user)
    if row.id != subject().user_id:
        raise Forbidden("You are not authorized to view this user's login type.")
    return reply(UserLoginType(login_type=row.login_type))


@route(blueprint, "GET", "/<user>/gitsshkey", scope="user:read_personal", answers=GitSSHKey)
async def get_git_ssh_key(user: str) -> Response:
    row = await users.resolve_user(context(), subject(), user)
    return reply(await git_ssh_keys.get(context(), subject(), row))


@route(
    blueprint,
    "PUT",
    "/<user>/gitsshkey",
    scope="user:update_personal",
    answers=GitSSHKey,
    audit=Audited("git_ssh_key", "write"),
)
async def put_git_ssh_key(user: str) -> Response:
    row = await users.resolve_user(context(), subject(), user)
    return reply(await git_ssh_keys.regenerate(context(), subject(), row))


@route(blueprint, "GET", "/<user>/organizations", scope="user:read", answers=list[Organization])
async def get_user_organizations(user: str) -> Response:
    """Return the organizations of a user that the caller may read."""
    row = await users.resolve_user(context(), subject(), user)
    result = await members.organizations_of(context(), subject(), row.id)
    return reply([organizations.organization_view(item) for item in result])


@route(blueprint, "GET", "/<user>/organizations/<organization>", scope="user:read", answers=Organization)
async def get_user_organization(user: str, organization: str) -> Response:
    """Return an organization of a user that the caller may read."""
    row = await users.resolve_user(context(), subject(), user)
    for item in await members.organizations_of(context(), subject(), row.id):
        if item.name.lower() == organization.lower():
            return reply(organizations.organization_view(item))
    raise NotFound
