"""Which paths of the API say to people who signed in alone what is not there."""

from __future__ import annotations

SIGNED_IN = frozenset(
    {
        "audit",
        "authcheck",
        "connectionlog",
        "debug",
        "deployment",
        "experiments",
        "external-auth",
        "files",
        "groups",
        "insights",
        "licenses",
        "notifications",
        "oauth2-provider",
        "organizations",
        "prebuilds",
        "replicas",
        "settings",
        "tailnet",
        "tasks",
        "templatebuilder",
        "templates",
        "templateversions",
        "workspace-quota",
        "workspacebuilds",
        "workspaces",
    }
)
"""Parts of the API for people who signed in: what it has not, route or method, is told to them alone (recorded: 401
first)."""


def is_for_signed_in(path: str) -> bool:
    """Of users, what is below the list: whatever is no public word there is taken for somebody's name."""
    part, *rest = path.split("/")[3:] or [""]
    return part in SIGNED_IN or (part == "users" and any(rest))
