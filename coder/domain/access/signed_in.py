"""Paths of the API that report missing routes to signed-in callers only."""

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
"""Parts of the API for signed-in callers: an unknown route or method there is reported to them alone (recorded: 401
first)."""


def is_for_signed_in(path: str) -> bool:
    """Return whether a path is for signed-in callers. Below `users`, a word that is no public route is taken for a
    username."""
    part, *rest = path.split("/")[3:] or [""]
    return part in SIGNED_IN or (part == "users" and any(rest))
