"""Declarations of the commands of `coder organizations settings`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import OrgOption

SET_GROUP_SYNC = Command(
    words="organizations settings set group-sync",
    summary="Set how identity provider claims map to groups",
    options=OrgOption,
    max_args=0,
    long="Reads the settings as JSON from standard input.",
    examples=(("Change group sync; reads the JSON that show prints", "coder organizations settings set group-sync"),),
)

SET_ORGANIZATION_SYNC = Command(
    words="organizations settings set organization-sync",
    summary="Set how identity provider claims map to memberships",
    options=OrgOption,
    max_args=0,
    long="Reads the settings as JSON from standard input.",
    examples=(
        (
            "Change organization sync; reads the JSON that show prints",
            "coder organizations settings set organization-sync",
        ),
    ),
)

SET_ROLE_SYNC = Command(
    words="organizations settings set role-sync",
    summary="Set how identity provider claims map to roles",
    options=OrgOption,
    max_args=0,
    long="Reads the settings as JSON from standard input.",
    examples=(("Change role sync; reads the JSON that show prints", "coder organizations settings set role-sync"),),
)

SET_SHARING = Command(
    words="organizations settings set workspace-sharing",
    summary="Set whether workspaces can be shared",
    options=OrgOption,
    max_args=0,
    long="Reads the settings as JSON from standard input.",
    examples=(
        (
            "Change workspace sharing; reads the JSON that show prints",
            "coder organizations settings set workspace-sharing",
        ),
    ),
)

SHOW_GROUP_SYNC = Command(
    words="organizations settings show group-sync",
    summary="Show how identity provider claims map to groups",
    options=OrgOption,
    max_args=0,
    examples=(("Show how identity provider claims map to groups", "coder organizations settings show group-sync"),),
)

SHOW_ORGANIZATION_SYNC = Command(
    words="organizations settings show organization-sync",
    summary="Show how identity provider claims map to memberships",
    options=OrgOption,
    max_args=0,
    examples=(
        ("Show how identity provider claims map to memberships", "coder organizations settings show organization-sync"),
    ),
)

SHOW_ROLE_SYNC = Command(
    words="organizations settings show role-sync",
    summary="Show how identity provider claims map to roles",
    options=OrgOption,
    max_args=0,
    examples=(("Show how identity provider claims map to roles", "coder organizations settings show role-sync"),),
)

SHOW_SHARING = Command(
    words="organizations settings show workspace-sharing",
    summary="Show whether workspaces can be shared",
    options=OrgOption,
    max_args=0,
    examples=(("Show whether workspaces can be shared", "coder organizations settings show workspace-sharing"),),
)
