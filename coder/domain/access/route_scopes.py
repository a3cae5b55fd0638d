"""Scopes of routes: the scope a key needs at an address, or the reason why none is required.

Declared with every route (`http/server/route.py`) and every endpoint for our own processes
(`appproxy/upgrades/raw_links.py`). `policy.py` and `scopes.py` hold the grants of scopes.
"""

from __future__ import annotations

from enum import Enum


class Unscoped(Enum):
    """Callers of a route that requires no key with a scope."""

    PUBLIC = "any caller"
    ANY_KEY = "any signed-in caller, with any key"
    OPTIONAL = "any caller; signed-in ones receive more"
    AGENT = "an agent with its token"
    PROXY = "a workspace proxy with its token"
    PROVISIONER = "a provisioner with its key"
    CLIENT = "a client with an Authorization header"
    APPLICATION = "an OAuth2 application with its secret, or with a token of its user"
    STREAM = "a client with the id of its carried stream"


PUBLIC, ANY_KEY, OPTIONAL = Unscoped.PUBLIC, Unscoped.ANY_KEY, Unscoped.OPTIONAL
AGENT, PROXY, PROVISIONER, CLIENT = Unscoped.AGENT, Unscoped.PROXY, Unscoped.PROVISIONER, Unscoped.CLIENT
APPLICATION, STREAM = Unscoped.APPLICATION, Unscoped.STREAM
BY_SECRET = frozenset({AGENT, PROXY, PROVISIONER, APPLICATION, STREAM})
"""Callers that send a random secret. It is checked before the request is counted: see `rate_limits.counted`."""

Scope = str | tuple[str, ...] | Unscoped
"""Name of a key scope, such as `workspace:read`; any item of a tuple is sufficient."""


def named(scope: Scope) -> tuple[str, ...]:
    """Return the alternative scopes a key needs; empty where no key with a scope is required."""
    if isinstance(scope, Unscoped):
        return ()
    return (scope,) if isinstance(scope, str) else scope
