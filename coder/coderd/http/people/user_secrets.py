"""Users' secrets for their workspaces."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.people.user_secrets import (
    CreateUserSecretRequest,
    ImportUserSecretsRequest,
    UpdateUserSecretRequest,
    UserSecret,
)
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.json import no_content, read_body, reply
from coder.coderd.http.server.route import route
from coder.coderd.services.people import user_secrets, users
from coder.coderd.services.people.users import UserRow

blueprint = Blueprint("user_secrets", __name__, url_prefix="/api/v2/users/<user>/secrets")


@route(blueprint, "GET", "", scope="user_secret:read", answers=list[UserSecret])
async def get_secrets(user: str) -> Response:
    return reply(await user_secrets.list_secrets(context(), subject(), await _owner(user)))


@route(
    blueprint,
    "POST",
    "",
    scope="user_secret:create",
    body=CreateUserSecretRequest,
    answers=UserSecret,
    status=201,
    refuses=(409,),
    audit=Audited("user_secret", "create", "body:id"),
)
async def post_secret(user: str) -> Response:
    row = await _owner(user)
    body = await read_body(CreateUserSecretRequest)
    return reply(await user_secrets.create_secret(context(), subject(), row, body), 201)


@route(
    blueprint,
    "POST",
    "/batch",
    scope="user_secret:create",
    body=ImportUserSecretsRequest,
    answers=list[UserSecret],
    status=201,
    refuses=(409,),
    audit=Audited("user_secret", "create", "body:id"),
)
async def post_secrets(user: str) -> Response:
    """Create one secret for each name of a file, with an environment variable of the same name; all of them or none."""
    row = await _owner(user)
    body = await read_body(ImportUserSecretsRequest)
    created = await user_secrets.import_secrets(context(), subject(), row, body)
    return reply(created, 201)


@route(blueprint, "GET", "/<name>", scope="user_secret:read", answers=UserSecret)
async def get_secret(user: str, name: str) -> Response:
    return reply(await user_secrets.get_secret(context(), subject(), await _owner(user), name))


@route(
    blueprint,
    "PATCH",
    "/<name>",
    scope="user_secret:update",
    body=UpdateUserSecretRequest,
    answers=UserSecret,
    refuses=(409,),
    audit=Audited("user_secret", "write", "path:1"),
)
async def patch_secret(user: str, name: str) -> Response:
    """Change a secret. Absent fields are kept."""
    row = await _owner(user)
    body = await read_body(UpdateUserSecretRequest)
    return reply(await user_secrets.update_secret(context(), subject(), row, name, body))


@route(
    blueprint,
    "DELETE",
    "/<name>",
    scope="user_secret:delete",
    status=204,
    audit=Audited("user_secret", "delete", "path:1"),
)
async def delete_secret(user: str, name: str) -> Response:
    await user_secrets.delete_secret(context(), subject(), await _owner(user), name)
    return no_content()


async def _owner(user: str) -> UserRow:
    return await users.resolve_user(context(), subject(), user)
