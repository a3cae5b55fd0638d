"""External logins that a template requires to start a workspace.

A start build gets the owner's tokens. Without them its Terraform would fail half way or, worse, continue. Stopping and
deleting need no tokens: otherwise users could not delete a workspace after the provider has disappeared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.services.login import external_auth
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.templates.template_versions import VersionRow


@dataclass(frozen=True, slots=True)
class MissingLogins:
    """Missing logins, determined before a build is queued."""

    version_id: UUID
    providers: tuple[str, ...] = ()
    "Display names of the providers, each with the page to log in at."


def required_providers(version: VersionRow) -> list[tuple[str, bool]]:
    """Return (provider, whether it is optional) for each provider of the version."""
    return [(str(item["id"]), bool(item.get("optional"))) for item in version.external_auth_providers]


async def missing_logins(ctx: Context, owner_id: UUID, version: VersionRow) -> MissingLogins | None:
    """Return the missing logins; None for a version without providers.

    Asks the providers, so never call it inside a transaction. Raises NotFound when a provider is not configured.
    """
    required = [item for item in required_providers(version) if not item[1]]
    if not required or owner_id == PREBUILDS_USER_ID:  # checked when the prebuilt workspace is claimed
        return None
    missing = await external_auth.required_of(ctx, owner_id, required)
    return MissingLogins(
        version.id,
        tuple(f"{login.display_name} ({login.authenticate_url})" for login in missing if not login.authenticated),
    )
