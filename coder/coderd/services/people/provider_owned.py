"""Memberships and roles that the identity provider assigns at each login: users do not change them by hand.

They apply to users who sign in with OpenID Connect. The messages are upstream's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Invalid
from coder.api.login.oauth2 import OrganizationSyncSettings
from coder.coderd.config.settings import struct_value
from coder.coderd.services.people.organization_settings import (
    has_organization_sync,
    load_organization_sync,
    load_role_sync,
)
from coder.coderd.store.people.users import UserRow

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_NO_MEMBERSHIP = (
    "Organization sync is enabled for OIDC users, meaning manual organization assignment is not allowed for this user."
)
_NO_ROLES = "Cannot modify roles for OIDC users when role sync is enabled."


async def effective_organization_sync(ctx: Context, tx: Tx) -> OrganizationSyncSettings:
    """Return the settings that logins apply: the server's, until an administrator changes them in the dashboard."""
    if await has_organization_sync(tx):
        return await load_organization_sync(tx)
    config = ctx.config
    named = struct_value(config.oidc_organization_mapping) or {}
    mapping = {
        str(value): [configured] if isinstance(configured, str) else list(configured or [])
        for value, configured in named.items()
    }
    return OrganizationSyncSettings(
        field=config.oidc_organization_field,
        mapping=mapping,
        organization_assign_default=config.oidc_organization_assign_default,
    )


async def require_manual_membership(ctx: Context, user: UserRow) -> None:
    """Raise Invalid if organization sync decides about the user's memberships."""

    async def is_synced(tx: Tx) -> bool:
        return bool((await effective_organization_sync(ctx, tx)).field)

    if user.login_type == "oidc" and await ctx.db.read(is_synced):
        detail = (
            f"User {user.username} is an OIDC user and organization sync is enabled. "
            "Ask an administrator to resolve the membership in your external IDP."
        )
        raise Invalid(_NO_MEMBERSHIP, detail)


async def require_manual_member_roles(ctx: Context, user: UserRow, organization_id: UUID) -> None:
    """Raise Invalid if role sync decides about the user's roles in the organization."""
    if user.login_type == "oidc" and (await ctx.db.read(load_role_sync, organization_id)).field:
        raise Invalid(
            f"{_NO_ROLES} This organization member's roles are managed by the identity provider. "
            "Have the user re-login to refresh their roles.",
            "'User Role Field' is set in the organization settings. Ask an administrator to adjust or disable these "
            "settings.",
        )


def require_manual_site_roles(ctx: Context, user: UserRow) -> None:
    """Raise Invalid if the provider's claims decide about the user's site roles."""
    if user.login_type == "oidc" and ctx.config.oidc_user_role_field:
        raise Invalid(
            _NO_ROLES,
            "'User Role Field' is set in the OIDC configuration. All role changes must come from the oidc identity "
            "provider.",
        )
