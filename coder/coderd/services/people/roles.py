"""Built-in roles as the API shows them, and which of them the caller may assign."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import cast
from uuid import UUID

from msgspec import UNSET

from coder.api.people.roles import AssignableRoles, Permission, RBACAction, RBACResource
from coder.domain.access.roles import (
    IMPLICIT_ORGANIZATION_ROLE,
    IMPLICIT_SITE_ROLE,
    ORGANIZATION_ROLES,
    SITE_ROLES,
    BuiltinRole,
)


def assignable_site_roles(may_assign: Callable[[str], bool]) -> list[AssignableRoles]:
    return [_view(role, may_assign(role.name), None) for role in SITE_ROLES.values() if role.name != IMPLICIT_SITE_ROLE]


def assignable_organization_roles(organization_id: UUID, may_assign: Callable[[str], bool]) -> list[AssignableRoles]:
    return [
        _view(role, may_assign(role.name), organization_id)
        for role in ORGANIZATION_ROLES.values()
        if role.name != IMPLICIT_ORGANIZATION_ROLE
    ]


def _view(role: BuiltinRole, assignable: bool, organization_id: UUID | None) -> AssignableRoles:
    return AssignableRoles(
        name=role.name,
        display_name=role.display_name,
        organization_id=UNSET if organization_id is None else organization_id,
        site_permissions=permission_list(role.site),
        user_permissions=permission_list(role.user),
        organization_permissions=permission_list(role.organization)
        + permission_list(role.organization_denied, negate=True),
        organization_member_permissions=permission_list(role.member),
        assignable=assignable,
        built_in=True,
    )


def permission_list(table: Mapping[str, Iterable[str]], *, negate: bool = False) -> list[Permission]:
    """Return permissions by resource type as the API shows them."""
    return [
        Permission(negate=negate, resource_type=cast("RBACResource", resource), action=cast("RBACAction", action))
        for resource, actions in sorted(table.items())
        for action in sorted(actions)
    ]
