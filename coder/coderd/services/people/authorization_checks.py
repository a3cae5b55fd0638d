"""`POST /authcheck`: answer whether the caller may do an action on an object. An id asks about that very object.

An object that does not exist may not be touched by any caller. The answer does not reveal whether it exists.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Invalid, InvalidFields
from coder.coderd.services.access.authorization import may
from coder.coderd.services.access.workspace_access import template_resource, workspace_resource
from coder.coderd.services.people.groups import group_resource
from coder.coderd.services.people.users import user_resource
from coder.coderd.store.people import system_groups, system_users
from coder.coderd.store.templates import system_templates
from coder.coderd.store.workspaces import system_workspaces
from coder.domain.access.policy import Subject, Target
from coder.domain.foundation.go_uuid import read_uuid

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

MAX_OBJECTS = 200
"""Objects looked up for one request: each costs a query."""


@dataclass(frozen=True, slots=True)
class ObjectCheck:
    """Check of one action on one object."""

    resource: Target
    "Resource as the request describes it."
    action: str
    object_id: str = ""
    "Id of an existing object, whose own owner, organization and access lists count."


async def answer_checks(ctx: Context, subject: Subject, checks: Mapping[str, ObjectCheck]) -> dict[str, bool]:
    """Return the answers by name, sorted. Raises Invalid for a malformed id or a kind that cannot be looked up."""
    requested = {(check.resource.kind, _id_of(check)) for check in checks.values() if check.object_id}
    if len(requested) > MAX_OBJECTS:
        raise Invalid("Too many objects to check.", f"At most {MAX_OBJECTS} may be named by their id.")
    existing = await ctx.db.read(_load, sorted(requested)) if requested else {}
    answers = {}
    for name, check in sorted(checks.items()):
        resource = existing.get((check.resource.kind, _id_of(check))) if check.object_id else check.resource
        answers[name] = resource is not None and may(subject, check.action, resource)
    return answers


def _id_of(check: ObjectCheck) -> UUID:
    try:
        object_id = read_uuid(check.object_id)
    except ValueError as error:
        message = f'Object "{check.object_id}" id is not a valid uuid.'
        raise InvalidFields(("resource_id", str(error)), message=message) from error
    kind = check.resource.kind
    if kind not in _LOADERS:
        message = f'Object type "{kind}" does not support "resource_id" field.'
        raise InvalidFields(("resource_type", message), message=message)
    return object_id


async def _load(tx: Tx, requested: list[tuple[str, UUID]]) -> dict[tuple[str, UUID], Target | None]:
    return {(kind, object_id): await _LOADERS[kind](tx, object_id) for kind, object_id in requested}


async def _workspace(tx: Tx, object_id: UUID) -> Target | None:
    row = await system_workspaces.get_workspace(tx, object_id)
    return None if row is None else workspace_resource(row)


async def _template(tx: Tx, object_id: UUID) -> Target | None:
    row = await system_templates.get_template(tx, object_id)
    return None if row is None else template_resource(row)


async def _user(tx: Tx, object_id: UUID) -> Target | None:
    row = await system_users.get_user(tx, object_id)
    return None if row is None else user_resource(row.id)


async def _group(tx: Tx, object_id: UUID) -> Target | None:
    row = await system_groups.get_group(tx, object_id)
    return None if row is None else group_resource(row)


_LOADERS: dict[str, Callable[[Tx, UUID], Awaitable[Target | None]]] = {
    "workspace": _workspace,
    "template": _template,
    "user": _user,
    "group": _group,
}
