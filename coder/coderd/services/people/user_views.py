"""Users as the API presents them: in full, reduced, or minimal, and their roles."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from msgspec import UNSET

from coder.api.people.user_names import MinimalUser, ReducedUser
from coder.api.people.users import SlimRole, User
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.people.users import UserRow
from coder.domain.access.roles import display_name


def user_view(row: UserRow | key_store.KeyUser, *, carried: Collection[str] | None = None) -> User:
    """Present a user; `carried` limits the roles to those of the token that the user sent."""
    organization_ids = row.organization_ids if isinstance(row, UserRow) else tuple(row.organization_roles)
    return User(
        id=row.id,
        username=row.username,
        avatar_url=row.avatar_url or UNSET,
        name=row.name or UNSET,
        email=row.email,
        created_at=row.created_at,
        updated_at=row.updated_at,
        last_seen_at=row.last_seen_at,
        status=row.status,
        login_type=row.login_type,
        organization_ids=list(organization_ids),
        roles=slim_roles([name for name in row.rbac_roles if carried is None or name in carried]),
        has_ai_seat=False,
        is_service_account=row.is_service_account or UNSET,
    )


def slim_roles(
    names: Sequence[str], organization_id: UUID | None = None, titles: Mapping[str, str] = {}
) -> list[SlimRole]:
    """Present roles as lists show them; `titles` has the display names of custom roles."""
    return [
        SlimRole(
            name=name,
            display_name=titles.get(name) or display_name(name),
            organization_id=UNSET if organization_id is None else organization_id,
        )
        for name in names
    ]


def reduced_user(row: UserRow) -> ReducedUser:
    """Present a user as lists of members and of access rights show it."""
    return ReducedUser(
        id=row.id,
        username=row.username,
        name=row.name or UNSET,
        avatar_url=row.avatar_url or UNSET,
        email=row.email,
        created_at=row.created_at,
        updated_at=row.updated_at,
        last_seen_at=row.last_seen_at,
        status=row.status,
        login_type=row.login_type,
    )


def minimal_user(row: UserRow) -> MinimalUser:
    return MinimalUser(id=row.id, username=row.username, name=row.name or UNSET, avatar_url=row.avatar_url or UNSET)
