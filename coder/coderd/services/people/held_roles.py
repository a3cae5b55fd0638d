"""Who takes somebody's roles, or shuts somebody out, must hold their own at that moment: of two who undo each other at
once one is obeyed.
"""

from __future__ import annotations

from uuid import UUID

from coder.api.base.refusals import Forbidden
from coder.coderd.store.engine.database import Tx
from coder.coderd.store.people import organizations as organization_store
from coder.coderd.store.people import users as user_store
from coder.coderd.store.people.organizations import OrganizationRow
from coder.domain.access.policy import Subject


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
