"""What a key is limited to: scope names and allow lists as one `policy.Scope`.

`coder:all` (or the old `all`) limits nothing; `coder:application_connect` reaches applications only; `type:action`
and `type:*` are fine-grained. Unknown names grant nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from coder.domain.policy import ALL, APPLICATION_CONNECT, NO_USER_DATA, Scope

__all__ = ["ALL", "APPLICATION_CONNECT", "NO_USER_DATA", "combined"]

_ALIASES = {"all": "coder:all", "application_connect": "coder:application_connect"}
_ANY = ("*:*",)
COMPOSITE: dict[str, tuple[str, ...]] = {
    "coder:workspaces.create": ("workspace:create", "workspace:update", "template:read", "template:use"),
    "coder:workspaces.operate": ("workspace:read", "workspace:update", "workspace:start", "workspace:stop"),
    "coder:workspaces.delete": ("workspace:read", "workspace:delete"),
    "coder:workspaces.access": ("workspace:read", "workspace:ssh", "workspace:application_connect"),
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
    """The stored form of a scope's name."""
    return _ALIASES.get(name, name)


def combined(names: Sequence[str], allow_list: Sequence[str] = _ANY) -> Scope:
    """One scope that allows what any of `names` allows, on the objects of `allow_list` (`type:id`)."""
    return _combined(tuple(names), tuple(allow_list))


@functools.lru_cache(maxsize=1024)
def _combined(names: tuple[str, ...], allow_list: tuple[str, ...]) -> Scope:
    stored = {canonical(name) for name in names}
    ids = _ids(allow_list)
    if "coder:all" in stored and ids is None:
        return ALL
    if stored == {"coder:application_connect"} and ids is None:
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
    return Scope(",".join(sorted(stored)), {key: frozenset(value) for key, value in grants.items()}, ids)


def _ids(allow_list: tuple[str, ...]) -> frozenset[str] | None:
    if not allow_list or "*:*" in allow_list:
        return None
    return frozenset(entry.partition(":")[2] for entry in allow_list)


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
    """The names a token may be made with, sorted."""
    names = {"coder:all", "coder:application_connect", *COMPOSITE}
    for resource, actions in _EXTERNAL:
        names.add(f"{resource}:*")
        names |= {f"{resource}:{action}" for action in actions.split(",")}
    return tuple(sorted(names))


def known() -> tuple[str, ...]:
    """Alias of `external`: other scopes are for the server's own keys."""
    return external()
