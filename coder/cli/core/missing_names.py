"""Names that the server does not know: what was asked for, and the names the caller may have meant.

The server answers 404 for a missing resource and for one that the caller may not see, and its message names neither.
This module derives the resource from the path of the refused request, so every look-up by name is covered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from coder.base.json_types import Json
from coder.base.quoted import quoted
from coder.cli.core.suggestions import near_misses
from coder.net.errors import HttpError

_NAME = r"([^/]+)"
_ID = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_MAX_ITEMS = 1000
"""Items of a list that are compared: the comparison is quadratic in the length of names, and linear here."""


@dataclass(frozen=True, slots=True)
class _Lookup:
    """Paths of one kind of resource."""

    path: str
    """Expression for the path behind `/api/v2`; the last group is the name. Every command loads these, so they are
    compiled when they are used."""
    noun: str
    names: str
    "Path that lists what the caller may see, with `{0}` for the first group; empty for resources without names."
    command: str
    "Command that lists them for people."


def _lookup(path: str, noun: str, names: str, command: str) -> _Lookup:
    return _Lookup(path.replace("NAME", _NAME) + "(?:/.*)?", noun, names, command)


LOOKUPS = (
    _lookup("/users/NAME/workspace/NAME", "workspace", "/workspaces?q=owner:{0}", "coder list --all"),
    _lookup("/organizations/NAME/templates/NAME", "template", "/organizations/{0}/templates", "coder templates list"),
    _lookup(
        "/templates/NAME/versions/NAME", "template version", "/templates/{0}/versions", "coder templates versions list"
    ),
    _lookup("/organizations/NAME/groups/NAME", "group", "/organizations/{0}/groups", "coder groups list"),
    _lookup(
        "/organizations/NAME/members/NAME",
        "member",
        "/organizations/{0}/members",
        "coder organizations members list",
    ),
    _lookup(
        "/organizations/NAME/provisionerkeys/NAME",
        "provisioner key",
        "/organizations/{0}/provisionerkeys",
        "coder provisioner keys list",
    ),
    _lookup("/organizations/NAME/provisionerjobs/NAME", "provisioner job", "", "coder provisioner jobs list"),
    _lookup("/users/NAME/secrets/NAME", "secret", "/users/{0}/secrets", "coder secret list"),
    _lookup("/users/NAME/keys/tokens/NAME", "token", "/users/{0}/keys/tokens", "coder tokens list"),
    _lookup("/users/NAME/keys/NAME", "token", "/users/{0}/keys/tokens", "coder tokens list"),
    _lookup(
        "/users/NAME/wireguard-clients/NAME", "WireGuard client", "/users/{0}/wireguard-clients", "coder wireguard list"
    ),
    _lookup("/tasks/NAME/NAME", "task", "/tasks?q=owner:{0}", "coder task list --all"),
    _lookup("/workspaces/NAME/external-agent/NAME", "agent", "", "coder show <workspace>"),
    _lookup("/workspaceproxies/NAME", "workspace proxy", "/workspaceproxies", "coder workspace-proxy ls"),
    _lookup("/external-auth/NAME", "external login", "/external-auth", ""),
    _lookup("/licenses/NAME", "license", "", "coder licenses list"),
    _lookup("/organizations/NAME", "organization", "/users/me/organizations", "coder organizations list"),
    _lookup("/users/NAME", "user", "/users", "coder users list"),
    _lookup("/workspaces/NAME", "workspace", "", "coder list --all"),
    _lookup("/templates/NAME", "template", "", "coder templates list"),
)
"""Kinds of resources; the first that matches counts, so longer paths come first."""


_COLLECTIONS = {
    "templates": "templates",
    "templateversions": "template versions",
    "provisionerkeys": "provisioner keys",
    "groups": "groups",
    "members/roles": "roles",
}
"""Collections of an organization, whose creation answers 404 without a permission, and their nouns."""
_CREATED = rf"/organizations/[^/]+/({'|'.join(_COLLECTIONS)})"


@dataclass(frozen=True, slots=True)
class Missing:
    """A resource that the server does not show to the caller."""

    noun: str
    name: str
    owner: str
    "Owner in the path if it is another user; else empty."
    names: str
    "Path of the list of names; empty without one."
    command: str
    is_collection: bool = False
    "Whether the request would have created one, in an organization that the caller can see."

    @property
    def text(self) -> str:
        """Return the sentence for people."""
        if self.is_collection:
            return f"you are not allowed to create {self.noun} in this organization"
        full = f"{self.owner}/{self.name}" if self.owner else self.name
        return f"there is no {self.noun} {quoted(full)} that you can see"


def missing_resource(error: HttpError) -> Missing | None:
    """Return the resource that a 404 of the server is about; None for other errors and unknown paths."""
    if error.status != 404 or not error.is_enveloped or not error.path.startswith("/api/v2/"):
        return None
    path = error.path.removeprefix("/api/v2")
    if error.method == "POST" and (created := re.fullmatch(_CREATED, path)):
        return Missing(_COLLECTIONS[created[1]], "", "", "", "", is_collection=True)
    for lookup in LOOKUPS:
        if match := re.fullmatch(lookup.path, path):
            *before, name = match.groups()
            owner = unquote(before[0]) if lookup.noun in {"workspace", "task"} and before else ""
            is_id = re.fullmatch(_ID, name) is not None
            names = f"/api/v2{lookup.names.format(*before)}" if lookup.names and not is_id else ""
            if quoted(unquote(name)) in error.message:
                return None  # the server names it
            return Missing(lookup.noun, unquote(name), "" if owner == "me" else owner, names, lookup.command)
    return None


def suggested_names(missing: Missing, fetch: Callable[[str], Json]) -> list[str]:
    """Return at most three names that the caller may have meant, of those that the caller may see.

    `fetch` returns the server's answer for a path. Workspaces and tasks of other owners are written `owner/name`.
    """
    if not missing.names:
        return []
    own = list(_names(fetch(missing.names)))
    if found := near_misses(missing.name, (name for _, name in own)):
        return [f"{missing.owner}/{name}" if missing.owner else name for name in found]
    if missing.noun not in {"workspace", "task"}:
        return []
    everywhere: dict[str, list[str]] = {}
    for owner, name in _names(fetch(missing.names.partition("?")[0])):
        everywhere.setdefault(name, []).append(f"{owner}/{name}")
    return [full for name in near_misses(missing.name, everywhere) for full in everywhere[name]][:3]


def advice(missing: Missing, suggested: list[str]) -> str:
    """Return the next step."""
    if suggested:
        return f"Did you mean {' or '.join(quoted(name) for name in suggested)}?"
    if missing.is_collection:
        return "Ask an administrator of the organization for a role that allows it."
    return f"List what you can see with `{missing.command}`." if missing.command else ""


def _names(answer: Json) -> Iterator[tuple[str, str]]:
    """Yield owner and name of each item of a list, or of an object with one list."""
    items = answer
    if isinstance(answer, Mapping):
        items = next((value for value in answer.values() if isinstance(value, list)), [])
    for item in items[:_MAX_ITEMS] if isinstance(items, list) else ():
        if isinstance(item, Mapping):
            name = next((item[key] for key in ("username", "token_name", "name", "id") if item.get(key)), None)
            if isinstance(name, str):
                yield str(item.get("owner_name") or ""), name
