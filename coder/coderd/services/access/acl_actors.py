"""Users and groups that may be added to an access list: one rule for workspaces and templates.

Allowed are members and groups of the object's organization, and every other user the caller may see. Any other id is
answered like an id that does not exist: an access list must neither reveal which users exist nor admit a user the
caller could not have named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.services.access.authorization import knows_user, may
from coder.coderd.store.access import acls as store
from coder.coderd.store.engine.names import as_uuid
from coder.coderd.store.people import organizations as organization_store
from coder.domain.access.policy import Object, Subject, lists_one

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


_ROLES = frozenset({"admin", "use"})
"""Roles in access lists of workspaces and of templates."""


@dataclass(frozen=True, slots=True)
class RequestedRoles:
    """Users or groups of a requested change of an access list."""

    field: str
    roles: Mapping[str, str]
    "Roles by id; an empty role removes the entry."


async def hold_users(tx: Tx, organization_id: UUID, roles: Mapping[str, str]) -> None:
    """Prevent the added users from leaving the organization until the transaction ends. Call it before locking the
    list.

    Leaving an organization removes a user from its access lists.
    """
    user_ids = {user_id for key, role in roles.items() if role and (user_id := as_uuid(key)) is not None}
    await organization_store.hold_members(tx, organization_id, user_ids)


async def role_faults(
    tx: Tx, subject: Subject, organization_id: UUID, kind: str, groups: RequestedRoles, users: RequestedRoles
) -> list[tuple[str, str]]:
    """Return the faults of a requested change as validations: groups first, each with its roles and then its ids.

    An entry that removes a role is always valid, also for an id that has been deleted meanwhile.
    """
    wrong: list[tuple[str, str]] = []
    for asked, noun, unknown in ((groups, "group", _unknown_groups), (users, "user", _unknown_users)):
        assigned = {key: role for key, role in asked.roles.items() if role}
        for key, role in sorted(asked.roles.items()):
            if role and role not in _ROLES:
                wrong.append((asked.field, f'role "{role}" is not a valid {kind} role'))
            if as_uuid(key) is None:
                wrong.append((asked.field, f"{key} is not a valid UUID."))
        absent = await unknown(
            tx, subject, organization_id, {key: role for key, role in assigned.items() if as_uuid(key)}
        )
        wrong += [(asked.field, f"{noun} with ID {key} does not exist") for key in absent]
    return wrong


async def _unknown_users(tx: Tx, subject: Subject, organization_id: UUID, roles: Mapping[str, str]) -> list[str]:
    """Return the ids of `roles` that get a role and are no users the caller may name."""
    named = [key for key, role in roles.items() if role]
    living = await store.living_users(tx, named, organization_id)
    known = {
        user_id
        for user_id, is_member in living.items()
        if knows_user(subject, user_id, [organization_id] if is_member else [])
    }
    return [key for key in named if as_uuid(key) not in known]


async def _unknown_groups(tx: Tx, subject: Subject, organization_id: UUID, roles: Mapping[str, str]) -> list[str]:
    """Return the ids of `roles` that get a role and are no groups the caller may name."""
    named = [key for key, role in roles.items() if role]
    organizations = await store.organizations_of_groups(tx, named)
    known = {
        group_id
        for group_id, owner in organizations.items()
        if (owner == organization_id and lists_one(subject, group_id, ("group",)))
        or may(subject, "read", Object("group", str(group_id), organization_id=owner))
    }
    return [key for key in named if as_uuid(key) not in known]
