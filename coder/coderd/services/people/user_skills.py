"""Skills of users: texts for their coding agents. Site owners may read and delete them, only the user may write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coder.api.base.refusals import Conflict, InvalidFields, NotFound
from coder.api.people.user_skills import (
    CreateUserSkillRequest,
    UpdateUserSkillRequest,
    UserSkill,
    UserSkillMetadata,
)
from coder.base.ids import new_uuid
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.foundation.field_checks import check_request
from coder.coderd.services.foundation.object_limits import within_limit
from coder.coderd.services.foundation.uniqueness import constraint_refusals
from coder.coderd.store.engine.sql_types import ColumnValues
from coder.coderd.store.people import system_user_skills
from coder.coderd.store.people import user_skills as store
from coder.coderd.store.people.user_skills import SkillRow
from coder.domain.access.policy import Class, Object, Subject
from coder.domain.people.user_skills import read_head

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.people.users import UserRow


def _require(subject: Subject, action: str, user: UserRow) -> None:
    """Require `action` on the user's skills; single ones are narrowed by `_load` and lists by the caller."""
    require(subject, action, Class("user_skill", owner_id=user.id, narrowed=True), hidden=False)


def _skill_object(row: SkillRow) -> Object:
    return Object("user_skill", str(row.id), owner_id=row.user_id)


async def list_skills(ctx: Context, subject: Subject, user: UserRow) -> list[UserSkillMetadata]:
    """List skills without their texts."""
    _require(subject, "read", user)
    return [
        UserSkillMetadata(
            id=row.id,
            name=row.name,
            description=row.description,
            created_at=row.created_at,
            updated_at=row.updated_at,
        )
        for row in await ctx.db.read(store.list_skills, user.id)
        if may(subject, "read", _skill_object(row))
    ]


async def get_skill(ctx: Context, subject: Subject, user: UserRow, name: str) -> UserSkill:
    _require(subject, "read", user)
    return skill_view(await _load(ctx, subject, "read", user, name))


async def _load(ctx: Context, subject: Subject, action: str, user: UserRow, name: str) -> SkillRow:
    """Load a skill on which the caller may do `action`. Raises NotFound, Forbidden."""
    row = await ctx.db.read(system_user_skills.get_skill, user.id, name)
    if row is None:
        raise NotFound
    require(subject, action, _skill_object(row))
    return row


async def create_skill(ctx: Context, subject: Subject, user: UserRow, request: CreateUserSkillRequest) -> UserSkill:
    """Create a skill, named by its front matter. Raises Forbidden, InvalidFields, Conflict."""
    _require(subject, "create", user)
    check_request(request)
    head = read_head(request.content)
    now = ctx.clock.now()
    row = SkillRow(new_uuid(), user.id, head.name, head.description, request.content, now, now)

    async def write(tx: Tx) -> None:
        async with within_limit(tx, "skills", user.id, now):
            await store.insert_skill(tx, row)

    with constraint_refusals({"uq_user_skills_user_id_name": Conflict(f'A skill named "{head.name}" already exists.')}):
        await ctx.db.run(write)
    return skill_view(row)


async def update_skill(
    ctx: Context, subject: Subject, user: UserRow, name: str, request: UpdateUserSkillRequest
) -> UserSkill:
    """Replace the text of a skill; its name stays. Raises Forbidden, NotFound, InvalidFields."""
    _require(subject, "update", user)
    row = await _load(ctx, subject, "update", user, name)
    check_request(request)
    head = read_head(request.content)
    if head.name != row.name:
        raise InvalidFields(("content", f'the head says name "{head.name}", but the skill is called "{row.name}"'))
    now = ctx.clock.now()
    values: ColumnValues = {"description": head.description, "content": request.content, "updated_at": now}

    async def write(tx: Tx) -> None:
        async with within_limit(tx, "skills", user.id, now):
            await store.update_skill(tx, row.id, values)

    await ctx.db.run(write)
    return skill_view(await _load(ctx, subject, "update", user, name))


async def delete_skill(ctx: Context, subject: Subject, user: UserRow, name: str) -> None:
    _require(subject, "delete", user)
    row = await _load(ctx, subject, "delete", user, name)
    await ctx.db.run(store.delete_skill, row.id)


def skill_view(row: SkillRow) -> UserSkill:
    return UserSkill(
        id=row.id,
        name=row.name,
        description=row.description,
        content=row.content,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
