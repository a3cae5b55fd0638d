"""Create, change and delete groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Conflict, Invalid, InvalidFields
from coder.api.people.groups import CreateGroupRequest, Group, PatchGroupRequest
from coder.base.ids import new_uuid
from coder.coderd.services.access.application_limits import require_lasting
from coder.coderd.services.access.authorization import knows_user
from coder.coderd.services.foundation.field_checks import check_request
from coder.coderd.services.foundation.uniqueness import constraint_refusals
from coder.coderd.services.people.groups import load_group, show
from coder.coderd.services.people.organizations import hold_organization
from coder.coderd.store.engine import names as name_store
from coder.coderd.store.engine.sql_types import ColumnValues
from coder.coderd.store.people import groups as store
from coder.coderd.store.people import organizations as organization_store
from coder.coderd.store.people.groups import EVERYONE, GroupRow
from coder.coderd.store.templates import rollouts as rollout_store
from coder.domain.access.policy import Class, Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.people.organizations import OrganizationRow


async def create_group(
    ctx: Context, subject: Subject, organization: OrganizationRow, request: CreateGroupRequest
) -> Group:
    """Create a group. Raises Forbidden, InvalidFields, Conflict."""
    new = Class("group", organization_id=organization.id)
    await require_lasting(ctx, subject, "create", new, "group", hidden=False)
    _check_reserved(request.name)
    group_id = new_uuid()
    values: ColumnValues = {
        "id": group_id,
        "organization_id": organization.id,
        "name": request.name,
        "display_name": request.display_name,
        "avatar_url": request.avatar_url,
        "quota_allowance": _allowance(request.quota_allowance),
        "source": "user",
    }

    async def insert(tx: Tx) -> None:
        await hold_organization(tx, organization.id)
        await store.insert_group(tx, values)

    with constraint_refusals({_NAME_INDEX: _name_conflict(request.name)}):
        await ctx.db.run(insert)
    return await show(ctx, subject, await load_group(ctx, subject, group_id))


async def update_group(ctx: Context, subject: Subject, group_id: UUID, request: PatchGroupRequest) -> Group:
    """Change a group; empty and absent fields stay unchanged. Raises Forbidden, Invalid, Conflict, NotFound."""
    row = await load_group(ctx, subject, group_id, "update")
    check_request(request, {"name": row.name, "display_name": row.display_name})
    values: ColumnValues = {}
    if request.name and request.name != row.name:
        _check_reserved(request.name)
        values["name"] = request.name
    for name in ("display_name", "avatar_url"):
        if getattr(request, name) is not None:
            values[name] = getattr(request, name)
    if request.quota_allowance not in (None, row.quota_allowance):
        values["quota_allowance"] = _allowance(request.quota_allowance)
    added, removed = _user_ids(request.add_users), _user_ids(request.remove_users)
    if row.is_everyone:
        _refuse_everyone(values, added, removed)
    with constraint_refusals({_NAME_INDEX: _name_conflict(request.name)}):
        await ctx.db.run(_update, subject, row, values, added, removed)
    return await show(ctx, subject, await load_group(ctx, subject, group_id))


async def _update(
    tx: Tx, subject: Subject, row: GroupRow, values: ColumnValues, added: Sequence[UUID], removed: Sequence[UUID]
) -> None:
    members = await organization_store.hold_members(tx, row.organization_id, added)
    organization = (row.organization_id,)
    unknown = [user_id for user_id in added if user_id not in members or not knows_user(subject, user_id, organization)]
    if unknown:
        raise Invalid(f'User must be a member of organization "{row.organization_name}"', f"{unknown[0]} is not.")
    await store.update_group(tx, row.id, values)
    if await store.add_members(tx, row.id, added) < len(added):
        raise Invalid("Cannot add the same user to a group twice!")
    if removed and await store.remove_members(tx, row.id, removed) < len(removed):
        raise Invalid("Failed to add or remove non-existent group member")


def _refuse_everyone(values: ColumnValues, added: Sequence[UUID], removed: Sequence[UUID]) -> None:
    if "name" in values:
        raise Invalid(f'Cannot rename the "{EVERYONE}" group!')
    if values.get("display_name"):
        raise Invalid(f'Cannot update the Display Name for the "{EVERYONE}" group!')
    if added or removed:
        raise Invalid(
            f'Cannot add or remove users from the "{EVERYONE}" group!',
            "Its members are those of the organization: add users to the organization instead.",
        )


async def delete_group(ctx: Context, subject: Subject, group_id: UUID) -> None:
    """Delete a group. Raises Forbidden, Invalid (Everyone), NotFound."""
    row = await load_group(ctx, subject, group_id, "delete")
    if row.is_everyone:
        raise Invalid(f'"{EVERYONE}" is a reserved group and cannot be deleted!')
    await ctx.db.run(_delete, row)


async def _delete(tx: Tx, row: GroupRow) -> None:
    # The watcher of rollouts stops one that reaches no workspace without the group.
    await rollout_store.note_group_deleted(tx, row.id, f'The group "{row.display_name or row.name}" was deleted.')
    await store.delete_group(tx, row.id)


def _check_reserved(name: str) -> None:
    if name == EVERYONE:
        raise InvalidFields(("name", f'"{EVERYONE}" is a reserved group name'), message="Invalid group name.")


def _allowance(value: int) -> int:
    if not 0 <= value < 1 << 31:
        raise InvalidFields(("quota_allowance", "must be a number of credits, 0 or more"))
    return value


def _user_ids(texts: Sequence[str]) -> list[UUID]:
    user_ids = []
    for text in texts:
        user_id = name_store.as_uuid(text)
        if user_id is None:
            raise Invalid(f'ID "{text}" must be a valid user UUID.')
        user_ids.append(user_id)
    return user_ids


_NAME_INDEX = "uq_groups_organization_id_name"


def _name_conflict(name: str) -> Conflict:
    return Conflict(
        f'A group named "{name}" already exists.',
        validations=[("name", "This value is already in use and should be unique.")],
    )
