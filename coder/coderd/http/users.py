"""Users: /api/v2/users and what hangs below one user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quart import Blueprint, Response

from coder.api.users import (
    CreateUserRequestWithOrgs,
    GetUsersResponse,
    UpdateRoles,
    UpdateUserPasswordRequest,
    UpdateUserProfileRequest,
    User,
    UserLoginType,
    UserRoles,
)
from coder.coderd.http.auth import authenticated, caller, context, subject
from coder.coderd.http.json import message, no_content, read_body, reply
from coder.coderd.http.query import Query
from coder.coderd.services import git_ssh_keys, organizations, users
from coder.coderd.services.authorization import may, require
from coder.coderd.services.errors import Forbidden, Invalid, NotFound
from coder.coderd.services.users import user_resource
from coder.coderd.store import organizations as organization_store
from coder.coderd.store.users import UserFilter
from coder.domain.search import parse_query

if TYPE_CHECKING:
    from coder.coderd.services.authentication import Caller
    from coder.coderd.services.context import Context

blueprint = Blueprint("users", __name__, url_prefix="/api/v2/users")

_STATUSES = ("active", "dormant", "suspended")
_LOGIN_TYPES = ("", "github", "none", "oidc", "password", "token")


@blueprint.get("")
@authenticated
async def get_users() -> Response:
    query = Query()
    after_id, limit, offset = query.uuid("after_id"), query.positive("limit"), query.positive("offset")
    query.check()
    wanted = search_filter(query.text("q"), after_id=after_id, limit=limit, offset=offset)
    rows, count = await users.list_users(context(), subject(), wanted)
    return reply(GetUsersResponse(users=[users.user_view(row) for row in rows], count=count))


def search_filter(text: str, **page: object) -> UserFilter:
    """Reads the `q=` of user lists. Raises Invalid."""
    terms = parse_query(text, "search")
    wanted = UserFilter(
        search=terms.one("search"),
        name=terms.one("name"),
        statuses=_choices(terms, "status", _STATUSES),
        roles=[role for value in terms.many("role") for role in value.split(",")],
        login_types=_choices(terms, "login_type", _LOGIN_TYPES),
        last_seen_before=terms.time("last_seen_before"),
        last_seen_after=terms.time("last_seen_after"),
        created_before=terms.time("created_before"),
        created_after=terms.time("created_after"),
        github_com_user_id=_integer(terms, "github_com_user_id"),
        service_account=terms.boolean("service_account"),
        **page,  # type: ignore[arg-type]
    )
    wrong = terms.refusals()
    if wrong:
        raise Invalid("Invalid user search query.", validations=[(item.field, item.detail) for item in wrong])
    return wanted


def _choices(terms: object, key: str, allowed: tuple[str, ...]) -> list[str]:
    found = []
    for value in terms.many(key):  # type: ignore[attr-defined]
        for part in value.split(","):
            if part in allowed:
                found.append(part)
            else:
                terms.refuse(key, f'Query param "{key}" has invalid values: "{part}" is not a valid value')  # type: ignore[attr-defined]
    return found


def _integer(terms: object, key: str) -> int | None:
    text = terms.one(key)  # type: ignore[attr-defined]
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        terms.refuse(  # type: ignore[attr-defined]
            key,
            f'Query param "{key}" must be a valid 64-bit integer: strconv.ParseInt: parsing "{text}": invalid syntax',
        )
        return None


@blueprint.post("")
@authenticated
async def post_user() -> Response:
    body = await read_body(CreateUserRequestWithOrgs)
    row = await users.create_user(
        context(),
        subject(),
        users.NewUser(
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
    return reply(users.user_view(row), 201)


async def show_me(_ctx: Context, me: Caller, _query: Query) -> User:
    """Authentication read this row a moment ago: the most frequent request asks nothing more."""
    require(me.subject, "read", user_resource(me.user.id))
    return users.user_view(me.user)


@blueprint.get("/<user>")
@authenticated
async def get_user(user: str) -> Response:
    if user == "me":
        return reply(await show_me(context(), caller(), Query()))
    return reply(users.user_view(await users.resolve_user(context(), subject(), user)))


@blueprint.delete("/<user>")
@authenticated
async def delete_user(user: str) -> Response:
    await users.delete_user(context(), subject(), await users.resolve_user(context(), subject(), user))
    return message("User has been deleted!")


@blueprint.put("/<user>/profile")
@authenticated
async def put_profile(user: str) -> Response:
    row = await users.resolve_user(context(), subject(), user)
    body = await read_body(UpdateUserProfileRequest, ("username",))
    return reply(users.user_view(await users.update_profile(context(), subject(), row, body.username, body.name)))


@blueprint.put("/<user>/status/<action>")
@authenticated
async def put_status(user: str, action: str) -> Response:
    status = {"suspend": "suspended", "activate": "active"}.get(action)
    if status is None:
        return message("Route not found.", 404)
    row = await users.resolve_user(context(), subject(), user)
    return reply(users.user_view(await users.set_status(context(), subject(), row, status)))


@blueprint.put("/<user>/password")
@authenticated
async def put_password(user: str) -> Response:
    row = await users.resolve_user(context(), subject(), user)
    body = await read_body(UpdateUserPasswordRequest, ("password",))
    await users.set_password(context(), subject(), row, body.old_password, body.password)
    return no_content()


@blueprint.get("/<user>/roles")
@authenticated
async def get_user_roles(user: str) -> Response:
    row = await users.resolve_user(context(), subject(), user)
    if not may(subject(), "read_personal", user_resource(row.id)):
        raise NotFound
    by_organization = await context().db.read(organization_store.roles_by_organization, row.id)
    return reply(
        UserRoles(
            roles=list(row.rbac_roles),
            organization_roles={str(key): value for key, value in by_organization.items()},
        )
    )


@blueprint.put("/<user>/roles")
@authenticated
async def put_user_roles(user: str) -> Response:
    row = await users.resolve_user(context(), subject(), user)
    body = await read_body(UpdateRoles)
    return reply(users.user_view(await users.set_roles(context(), subject(), row, body.roles)))


@blueprint.get("/<user>/login-type")
@authenticated
async def get_login_type(user: str) -> Response:
    row = await users.resolve_user(context(), subject(), user)
    if row.id != subject().user_id:
        raise Forbidden("You are not authorized to view this user's login type.")
    return reply(UserLoginType(login_type=row.login_type))  # type: ignore[arg-type]


@blueprint.get("/<user>/gitsshkey")
@authenticated
async def get_git_ssh_key(user: str) -> Response:
    row = await users.resolve_user(context(), subject(), user)
    return reply(await git_ssh_keys.get(context(), subject(), row))


@blueprint.put("/<user>/gitsshkey")
@authenticated
async def put_git_ssh_key(user: str) -> Response:
    row = await users.resolve_user(context(), subject(), user)
    return reply(await git_ssh_keys.regenerate(context(), subject(), row))


@blueprint.get("/<user>/organizations")
@authenticated
async def get_user_organizations(user: str) -> Response:
    row = await users.resolve_user(context(), subject(), user)
    found = await organizations.organizations_of(context(), subject(), row.id)
    return reply([organizations.organization_view(one) for one in found])


@blueprint.get("/<user>/organizations/<organization>")
@authenticated
async def get_user_organization(user: str, organization: str) -> Response:
    row = await users.resolve_user(context(), subject(), user)
    for one in await organizations.organizations_of(context(), subject(), row.id):
        if one.name.lower() == organization.lower():
            return reply(organizations.organization_view(one))
    raise NotFound
