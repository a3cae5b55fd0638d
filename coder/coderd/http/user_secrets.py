"""Secrets users keep for their workspaces."""

from __future__ import annotations

import msgspec
from quart import Blueprint, Response

from coder.api.users import CreateUserSecretRequest, UpdateUserSecretRequest
from coder.coderd.http.auth import authenticated, context, subject
from coder.coderd.http.json import no_content, read_body, reply
from coder.coderd.services import user_secrets, users
from coder.coderd.store.users import UserRow

blueprint = Blueprint("user_secrets", __name__, url_prefix="/api/v2/users/<user>/secrets")


class ImportRequest(msgspec.Struct):
    """A file of secrets; its form is checked by the service."""

    format: str
    content: str


@blueprint.get("")
@authenticated
async def get_secrets(user: str) -> Response:
    return reply(await user_secrets.list_secrets(context(), subject(), await _owner(user)))


@blueprint.post("")
@authenticated
async def post_secret(user: str) -> Response:
    row = await _owner(user)
    body = await read_body(CreateUserSecretRequest)
    return reply(await user_secrets.create_secret(context(), subject(), row, body), 201)


@blueprint.post("/batch")
@authenticated
async def post_secrets(user: str) -> Response:
    row = await _owner(user)
    body = await read_body(ImportRequest)
    made = await user_secrets.import_secrets(context(), subject(), row, body.format, body.content)
    return reply(made, 201)


@blueprint.get("/<name>")
@authenticated
async def get_secret(user: str, name: str) -> Response:
    return reply(await user_secrets.get_secret(context(), subject(), await _owner(user), name))


@blueprint.patch("/<name>")
@authenticated
async def patch_secret(user: str, name: str) -> Response:
    row = await _owner(user)
    body = await read_body(UpdateUserSecretRequest)
    return reply(await user_secrets.update_secret(context(), subject(), row, name, body))


@blueprint.delete("/<name>")
@authenticated
async def delete_secret(user: str, name: str) -> Response:
    await user_secrets.delete_secret(context(), subject(), await _owner(user), name)
    return no_content()


async def _owner(user: str) -> UserRow:
    return await users.resolve_user(context(), subject(), user)
