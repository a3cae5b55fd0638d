"""Rights to assign roles, and the locks under which they are checked.

A caller who takes roles away, or locks a user out, must hold the own roles at that moment: of two callers who undo
each other at the same time, the second is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from coder.api.base.refusals import Forbidden, Invalid
from coder.coderd.services.access.authorization import may
from coder.coderd.store.engine.database import Tx
from coder.coderd.store.people import custom_roles as role_store
from coder.coderd.store.people import organizations as organization_store
from coder.coderd.store.people import users as user_store
from coder.coderd.store.people.organizations import OrganizationRow
from coder.domain.access.policy import Resource, Subject
from coder.domain.access.roles import IMPLICIT_ORGANIZATION_ROLE, ORGANIZATION_ROLES

# What a user-admin may hand out: roles which give nothing over other people's things.
_HARMLESS = frozenset({"organization-workspace-access", "agents-access", IMPLICIT_ORGANIZATION_ROLE})


def require_assign(
    subject: Subject, organization_id: UUID, given: Iterable[str] = (), taken: Iterable[str] = ()
) -> None:
    """May the caller give roles here, give each of `given` and take each of `taken`? Raises Forbidden, Invalid."""
    roles = Resource("assign_org_role", organization_id=organization_id)
    if not may(subject, "assign", roles) or (taken and not may(subject, "unassign", roles)):
        raise Forbidden
    for name in sorted({*given, *taken}):
        if not may_assign(subject, organization_id, name):
            raise Invalid(f'not authorized to assign role "{name}:{organization_id}"')


def require_default_roles(subject: Subject, organization: OrganizationRow) -> None:
    """May the caller make members here, who get the organization's default roles at once?

    Harmless roles come with every membership; each other one is asked for like a role given by hand. Raises
    Forbidden, Invalid.
    """
    given = set(organization.default_member_roles) - _HARMLESS
    if given:
        require_assign(subject, organization.id, given)


def may_assign(subject: Subject, organization_id: UUID, role: str) -> bool:
    """Owners and organization admins give every role; others only what is harmless. Who gives one takes it, too."""
    if subject.kind == "system" or subject.is_owner:
        return True
    mine = subject.organization_roles.get(organization_id, frozenset())
    return "organization-admin" in mine or role in _HARMLESS


async def unknown_roles(tx: Tx, organization_id: UUID, names: Sequence[str]) -> list[str]:
    """Return the items of `names` that are no roles of the organization. Its own roles are kept until `tx` ends."""
    own = await role_store.hold_roles(tx, organization_id, names)
    return [name for name in names if name not in ORGANIZATION_ROLES and name not in own]


async def denying_roles(tx: Tx, organization_id: UUID, names: Sequence[str]) -> list[str]:
    """Those of `names` that are roles which deny something: of them alone somebody is better off without."""
    found = {name for name in names if name in ORGANIZATION_ROLES and ORGANIZATION_ROLES[name].organization_denied}
    rows = await role_store.list_roles(tx, organization_id, names) if names else []
    return sorted(found | {row.name for row in rows if row.permissions.get("organization_denied")})


async def hold_roles_of_both(
    tx: Tx, subject: Subject, user_id: UUID, organization: OrganizationRow | None = None
) -> None:
    """Keeps the roles of the caller and of `user_id` as they are until the transaction ends. Called before anything
    else of theirs is locked. Raises Forbidden when the caller has lost some of those the request was allowed by.

    In an organization what somebody was given there ends with the membership, which is locked, and the people are only
    kept; without one, what the whole person was given is seen, too.
    """
    if subject.kind == "system":
        return
    both = sorted({subject.user_id, user_id})  # in one order, or two would wait for each other for ever
    lock = organization is None
    users = {one: await user_store.get_user(tx, one, lock=lock, keep=not lock) for one in both}
    caller = users[subject.user_id]
    if (
        caller is None
        or caller.deleted
        or caller.status == "suspended"
        or not subject.site_roles <= {*caller.rbac_roles}
    ):
        raise Forbidden
    if organization is None:
        return
    members = {one: await organization_store.get_member(tx, organization.id, one, lock=True) for one in both}
    mine = members[subject.user_id]
    held = subject.organization_roles.get(organization.id)
    if held is not None and (mine is None or not held <= {*mine.roles, *organization.default_member_roles}):
        raise Forbidden
