"""Facts about the owner of a workspace that a build passes to Terraform."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import select

from coder.coderd.store.access import keys as key_store
from coder.coderd.store.tables.people import git_ssh_keys, group_members, groups

if TYPE_CHECKING:
    from coder.api.base.enums import LoginType
    from coder.coderd.store.engine.database import Tx

_EVERYONE = "Everyone"


@dataclass(frozen=True, slots=True)
class OwnerFacts:
    """Owner in the form of `coder_workspace_owner`."""

    username: str
    name: str
    email: str
    login_type: LoginType
    groups: Sequence[str]
    roles: Sequence[tuple[str, str]]
    """Role name and organization id, which is empty for the whole site."""
    ssh_public_key: str
    ssh_private_key: str
    site_roles: Sequence[str] = ()
    "Roles of the whole site, without the implicit one."


async def get_owner_facts(tx: Tx, user_id: UUID, organization_id: UUID) -> OwnerFacts | None:
    user = await key_store.find_user_with_roles(tx, user_id)
    if user is None:
        return None
    named = (
        select(groups.c.name)
        .join(group_members, group_members.c.group_id == groups.c.id)
        .where(group_members.c.user_id == user_id, groups.c.organization_id == organization_id)
        .order_by(groups.c.name)
    )
    names = [row.name for row in await tx.execute(named) if row.name != _EVERYONE]
    key = (
        await tx.execute(
            select(git_ssh_keys.c.public_key, git_ssh_keys.c.private_key).where(git_ssh_keys.c.user_id == user_id)
        )
    ).one_or_none()
    roles = [(role, "") for role in (*user.rbac_roles, "member")]
    for organization, role_names in sorted(user.organization_roles.items(), key=lambda item: item[0]):
        roles += [(role, str(organization)) for role in ("organization-member", *sorted(role_names))]
    return OwnerFacts(
        username=user.username,
        name=user.name,
        email=user.email,
        login_type=user.login_type,
        groups=[_EVERYONE, *names],
        roles=roles,
        ssh_public_key=key.public_key if key else "",
        ssh_private_key=key.private_key if key else "",
        site_roles=user.rbac_roles,
    )
