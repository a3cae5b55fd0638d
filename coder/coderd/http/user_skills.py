"""Skills users keep for their coding agents."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.users import CreateUserSkillRequest, UpdateUserSkillRequest
from coder.coderd.http.auth import authenticated, context, subject
from coder.coderd.http.json import no_content, read_body, reply
from coder.coderd.services import user_skills, users
from coder.coderd.store.users import UserRow

blueprint = Blueprint("user_skills", __name__, url_prefix="/api/experimental/users/<user>/skills")


@blueprint.get("")
@authenticated
async def get_skills(user: str) -> Response:
    return reply(await user_skills.list_skills(context(), subject(), await _owner(user)))


@blueprint.post("")
@authenticated
async def post_skill(user: str) -> Response:
    row = await _owner(user)
    body = await read_body(CreateUserSkillRequest)
    return reply(await user_skills.create_skill(context(), subject(), row, body.content), 201)


@blueprint.get("/<name>")
@authenticated
async def get_skill(user: str, name: str) -> Response:
    return reply(await user_skills.get_skill(context(), subject(), await _owner(user), name))


@blueprint.patch("/<name>")
@authenticated
async def patch_skill(user: str, name: str) -> Response:
    row = await _owner(user)
    body = await read_body(UpdateUserSkillRequest)
    return reply(await user_skills.update_skill(context(), subject(), row, name, body.content))


@blueprint.delete("/<name>")
@authenticated
async def delete_skill(user: str, name: str) -> Response:
    await user_skills.delete_skill(context(), subject(), await _owner(user), name)
    return no_content()


async def _owner(user: str) -> UserRow:
    return await users.resolve_user(context(), subject(), user)
