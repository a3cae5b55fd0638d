"""Scopes of keys: scope names and allow lists combined into a `policy.Scope`.

`coder:all` (or the old `all`) limits nothing; `coder:application_connect` reaches applications only; `type:action` and
`type:*` are fine-grained. Unknown names grant nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from uuid import UUID

from coder.domain.access.policy import ALL, APPLICATION_CONNECT, NO_USER_DATA, KeyScope, granted
from coder.domain.access.resources import ACTIONS
from coder.domain.access.roles import Grants

__all__ = ["ALL", "APPLICATION_CONNECT", "NO_USER_DATA", "combined"]

_ALIASES = {"all": "coder:all", "application_connect": "coder:application_connect"}
_ANY = ("*:*",)
COMPOSITE: dict[str, tuple[str, ...]] = {
    "coder:workspaces.create": (
        "workspace:create",
        "workspace:update",
        "workspace:read",
        "template:read",
        "template:use",
    ),
    "coder:workspaces.operate": (
        "workspace:read",
        "workspace:update",
        "workspace:start",
        "workspace:stop",
        "template:read",
    ),
    "coder:workspaces.delete": ("workspace:read", "workspace:delete", "template:read", "template:use"),
    "coder:workspaces.access": (
        "workspace:read",
        "workspace:ssh",
        "workspace:application_connect",
        "template:read",
    ),
    "coder:templates.build": ("template:read", "file:read", "file:create", "provisioner_jobs:read"),
    "coder:templates.author": (
        "template:read",
        "template:create",
        "template:update",
        "template:delete",
        "template:use",
        "template:view_insights",
        "file:read",
        "file:create",
    ),
    "coder:apikeys.manage_self": ("api_key:read", "api_key:create", "api_key:update", "api_key:delete"),
}
"""Named bundles of low-level scopes."""


def canonical(name: str) -> str:
    """Return the stored form of a scope's name."""
    return _ALIASES.get(name, name)


def combined(names: Sequence[str], allow_list: Sequence[str] = _ANY) -> KeyScope:
    """Combine `names` into one scope that allows the union of their actions, on the objects of `allow_list`
    (`type:id`)."""
    return _combined(tuple(names), tuple(allow_list))


@functools.lru_cache(maxsize=1024)
def _combined(names: tuple[str, ...], allow_list: tuple[str, ...]) -> KeyScope:
    stored = {canonical(name) for name in names}
    allow = _allow(allow_list)
    if "coder:all" in stored and allow is None:
        return ALL
    if stored == {"coder:application_connect"} and allow is None:
        return APPLICATION_CONNECT
    grants: dict[str, set[str]] = {}
    for name in stored:
        if name == "coder:all":
            grants.setdefault("*", set()).add("*")
        elif name == "coder:application_connect":
            grants.setdefault("workspace", set()).add("application_connect")
        for low in COMPOSITE.get(name, (name,)):
            resource, _, action = low.partition(":")
            if resource != "coder":
                grants.setdefault(resource, set()).add(action)
    return KeyScope(",".join(sorted(stored)), {key: frozenset(value) for key, value in grants.items()}, allow)


def _allow(allow_list: tuple[str, ...]) -> frozenset[tuple[str, str]] | None:
    if not allow_list or "*:*" in allow_list:
        return None
    pairs = (entry.partition(":") for entry in allow_list)
    return frozenset((kind, identity) for kind, _, identity in pairs)


def explain_scopes(names: Sequence[str]) -> str:
    """Return the refusal text for the first unknown scope; empty when all are known."""
    unknown = next((name for name in names if canonical(name) not in known()), None)
    return "" if unknown is None else f'invalid or unsupported API key scope: "{unknown}"'


def explain_allow_list(entries: Sequence[str]) -> str:
    """Return the refusal text for the first bad entry; empty when all are good."""
    faults = ((entry, explain_entry(entry)) for entry in entries)
    return next((f'invalid allow_list entry "{entry}": {fault}' for entry, fault in faults if fault), "")


def explain_entry(entry: str) -> str:
    """Return the refusal text for an entry of an allow list; empty when it is good."""
    kind, colon, identity = entry.partition(":")
    if not colon:
        return "must be type:id"
    if kind != "*" and kind not in ACTIONS:
        return f'unknown type "{kind}"'
    if identity != "*":
        try:
            UUID(identity)
        except ValueError:
            return f'"{identity}" must be a UUID or *'
    return ""


def exceeds(requested: KeyScope, own: KeyScope) -> bool:
    """Return whether a key with the scope `requested` would reach further than one with `own`."""
    if own is ALL:
        return False
    if not _within(requested.allow, own.allow):
        return True
    return any(
        not granted(own.grants, action, kind)
        for kind, actions in _spelled_out(requested.grants).items()
        for action in actions
    )


def _within(requested: frozenset[tuple[str, str]] | None, own: frozenset[tuple[str, str]] | None) -> bool:
    if own is None:
        return True
    if requested is None:
        return False
    return all(any((a, b) in own for a in (kind, "*") for b in (identity, "*")) for kind, identity in requested)


def _spelled_out(grants: Grants) -> dict[str, frozenset[str]]:
    """Expand resource wildcards, and `*` actions to the actions that exist."""
    results: dict[str, frozenset[str]] = {}
    for kind, actions in grants.items():
        for action in ACTIONS if kind == "*" else (kind,):
            named = ACTIONS.get(action, frozenset()) if "*" in actions else actions
            results[action] = results.get(action, frozenset()) | named
    return results


_EXTERNAL = (
    ("api_key", "create,delete,read,update"),
    ("file", "create,read"),
    ("organization", "delete,read,update"),
    ("task", "create,delete,read,update"),
    ("template", "create,delete,read,update,use"),
    ("user", "read,read_personal,update_personal"),
    ("user_secret", "create,delete,read,update"),
    ("user_skill", "create,delete,read,update"),
    ("workspace", "application_connect,create,delete,read,ssh,start,stop,update"),
)


@functools.cache
def external() -> tuple[str, ...]:
    """Return the scope names a token may be created with, sorted."""
    names = {"coder:all", "coder:application_connect", *COMPOSITE}
    for resource, actions in _EXTERNAL:
        names.add(f"{resource}:*")
        names |= {f"{resource}:{action}" for action in actions.split(",")}
    return tuple(sorted(names))


def known() -> tuple[str, ...]:
    """Return the known scopes; an alias of `external`, since other scopes are for the server's own keys."""
    return external()
