"""Rights to assign roles, and the locks under which they are checked.

A caller who takes away roles, or suspends or removes a user, must still have the required role in that transaction: of
two callers who do it to each other concurrently, the second is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from coder.api.base.refusals import Forbidden, Invalid
from coder.coderd.services.access.authorization import may
from coder.coderd.store.engine.database import Tx
from coder.coderd.store.people import custom_roles as role_store
from coder.coderd.store.people import system_organizations, system_users
from coder.coderd.store.people.organizations import OrganizationRow
from coder.domain.access.policy import Class, Subject
from coder.domain.access.roles import IMPLICIT_ORGANIZATION_ROLE, ORGANIZATION_ROLES

# Roles that a user-admin may assign: they give no access to objects of other users.
_HARMLESS = frozenset({"organization-workspace-access", "agents-access", IMPLICIT_ORGANIZATION_ROLE})


def require_assign(
    subject: Subject, organization_id: UUID, assigned: Iterable[str] = (), unassigned: Iterable[str] = ()
) -> None:
    """Require that the caller may assign each role of `assigned` and unassign each of `unassigned`. Raises Forbidden,
    Invalid.
    """
    roles = Class("assign_org_role", organization_id=organization_id)
    if not may(subject, "assign", roles) or (unassigned and not may(subject, "unassign", roles)):
        raise Forbidden
    for name in sorted({*assigned, *unassigned}):
        if not may_assign(subject, organization_id, name):
            raise Invalid(f'not authorized to assign role "{name}:{organization_id}"')


def require_default_roles(subject: Subject, organization: OrganizationRow) -> None:
    """Require that the caller may add members, who get the organization's default roles.

    Harmless roles come with every membership. Any other default role requires the right to assign it. Raises Forbidden,
    Invalid.
    """
    required = roles_to_assign(organization)
    if required:
        require_assign(subject, organization.id, required)


def roles_to_assign(organization: OrganizationRow) -> set[str]:
    """Return the default roles of an organization that only come with a right to assign them."""
    return set(organization.default_member_roles) - _HARMLESS


def may_assign(subject: Subject, organization_id: UUID, role: str) -> bool:
    """Whether the caller may assign a role, and unassign it: owners and organization admins every role, others harmless
    ones.
    """
    if subject.kind == "system" or subject.is_owner:
        return True
    own_roles = subject.organization_roles.get(organization_id, frozenset())
    return "organization-admin" in own_roles or role in _HARMLESS


async def unknown_roles(tx: Tx, organization_id: UUID, names: Sequence[str]) -> list[str]:
    """Return the items of `names` that are no roles of the organization. Locks its custom roles until the transaction
    ends.
    """
    own = await role_store.hold_roles(tx, organization_id, names)
    return [name for name in names if name not in ORGANIZATION_ROLES and name not in own]


async def denying_roles(tx: Tx, organization_id: UUID, names: Sequence[str]) -> list[str]:
    """Return the roles of `names` that deny a permission. Losing any other role never extends access."""
    denying = {name for name in names if name in ORGANIZATION_ROLES and ORGANIZATION_ROLES[name].organization_denied}
    rows = await role_store.list_roles(tx, organization_id, names) if names else []
    return sorted(denying | {row.name for row in rows if row.permissions.get("organization_denied")})


async def hold_roles_of_both(
    tx: Tx, subject: Subject, user_id: UUID, organization: OrganizationRow | None = None
) -> None:
    """Lock the roles of the caller and of `user_id` until the transaction ends. Call it before locking any of their
    rows.

    Raises Forbidden when the caller has lost a role that the request was allowed by. With an organization, its two
    memberships are locked, and the users only kept from deletion. Without one, the users are locked, so that site roles
    assigned concurrently are seen.
    """
    if subject.kind == "system":
        return
    user_ids = sorted({subject.user_id, user_id})  # in a fixed order, or two transactions would deadlock
    lock = organization is None
    users = {locked_id: await system_users.get_user(tx, locked_id, lock=lock, keep=not lock) for locked_id in user_ids}
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
    members = {
        locked_id: await system_organizations.get_member(tx, organization.id, locked_id, lock=True)
        for locked_id in user_ids
    }
    membership = members[subject.user_id]
    subject_roles = subject.organization_roles.get(organization.id)
    if subject_roles is not None and (
        membership is None or not subject_roles <= {*membership.roles, *organization.default_member_roles}
    ):
        raise Forbidden
