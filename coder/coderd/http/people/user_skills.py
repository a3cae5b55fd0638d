"""Users' skills for their coding agents."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.people.user_skills import CreateUserSkillRequest, UpdateUserSkillRequest, UserSkill, UserSkillMetadata
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.json import no_content, read_body, reply
from coder.coderd.http.server.route import route
from coder.coderd.services.people import user_skills, users
from coder.coderd.services.people.users import UserRow

blueprint = Blueprint("user_skills", __name__, url_prefix="/api/experimental/users/<user>/skills")


@route(blueprint, "GET", "", scope="user_skill:read", answers=list[UserSkillMetadata])
async def get_skills(user: str) -> Response:
    return reply(await user_skills.list_skills(context(), subject(), await _owner(user)))


@route(
    blueprint,
    "POST",
    "",
    scope="user_skill:create",
    body=CreateUserSkillRequest,
    answers=UserSkill,
    status=201,
    refuses=(409,),
    audit=Audited("user_skill", "create", "body:id"),
)
async def post_skill(user: str) -> Response:
    """Create a skill; its head contains the name."""
    row = await _owner(user)
    body = await read_body(CreateUserSkillRequest)
    return reply(await user_skills.create_skill(context(), subject(), row, body), 201)


@route(blueprint, "GET", "/<name>", scope="user_skill:read", answers=UserSkill)
async def get_skill(user: str, name: str) -> Response:
    return reply(await user_skills.get_skill(context(), subject(), await _owner(user), name))


@route(
    blueprint,
    "PATCH",
    "/<name>",
    scope="user_skill:update",
    body=UpdateUserSkillRequest,
    answers=UserSkill,
    audit=Audited("user_skill", "write", "path:1"),
)
async def patch_skill(user: str, name: str) -> Response:
    """Replace the text; the name is kept."""
    row = await _owner(user)
    body = await read_body(UpdateUserSkillRequest)
    return reply(await user_skills.update_skill(context(), subject(), row, name, body))


@route(
    blueprint,
    "DELETE",
    "/<name>",
    scope="user_skill:delete",
    status=204,
    audit=Audited("user_skill", "delete", "path:1"),
)
async def delete_skill(user: str, name: str) -> Response:
    await user_skills.delete_skill(context(), subject(), await _owner(user), name)
    return no_content()


async def _owner(user: str) -> UserRow:
    return await users.resolve_user(context(), subject(), user)
