"""External logins a template needs: a workspace is started for those only who have them.

A start build gets the owner's tokens; without them its Terraform would fail half way or, worse, go on without. Stopping
and deleting need none, or nobody could get rid of what they have once the provider is gone.
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
    """What was found out before a build was queued."""

    version_id: UUID
    providers: tuple[str, ...] = ()
    "Names people know them by, each with the page to log in at."


def wanted_of(version: VersionRow) -> list[tuple[str, bool]]:
    """(provider, whether the template does without) for each that the version names."""
    return [(str(item["id"]), bool(item.get("optional"))) for item in version.external_auth_providers]


async def missing_logins(ctx: Context, owner_id: UUID, version: VersionRow) -> MissingLogins | None:
    """None for a version that names no provider. Asks the providers, so never inside a transaction.

    Raises NotFound when one of them is not configured.
    """
    wanted = [item for item in wanted_of(version) if not item[1]]
    if not wanted or owner_id == PREBUILDS_USER_ID:  # whoever claims a prebuilt workspace is asked then
        return None
    found = await external_auth.required_of(ctx, owner_id, wanted)
    return MissingLogins(
        version.id, tuple(f"{one.display_name} ({one.authenticate_url})" for one in found if not one.authenticated)
    )
