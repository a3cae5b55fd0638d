"""Who comes in at an address: the scope a key needs, or why none is asked for.

Named beside every route (`http/server/route.py`) and every endpoint for our own processes
(`appproxy/upgrades/raw_links.py`). What scopes grant is `policy.py` and `scopes.py`.
"""

from __future__ import annotations

from enum import Enum


class Unscoped(Enum):
    """Who comes in where no key with a scope is asked for."""

    PUBLIC = "anybody"
    ANY_KEY = "whoever signed in, whatever the key is for"
    OPTIONAL = "anybody; who signed in is told more"
    AGENT = "an agent with its token"
    PROXY = "a workspace proxy with its token"
    PROVISIONER = "a provisioner with its key"
    CLIENT = "a client with what its Authorization header says"
    APPLICATION = "an OAuth2 application with its secret, or with what a person gave it"
    STREAM = "a client with the id of its carried stream"


PUBLIC, ANY_KEY, OPTIONAL = Unscoped.PUBLIC, Unscoped.ANY_KEY, Unscoped.OPTIONAL
AGENT, PROXY, PROVISIONER, CLIENT = Unscoped.AGENT, Unscoped.PROXY, Unscoped.PROVISIONER, Unscoped.CLIENT
APPLICATION, STREAM = Unscoped.APPLICATION, Unscoped.STREAM
BY_SECRET = frozenset({AGENT, PROXY, PROVISIONER, APPLICATION, STREAM})
"""Where a random secret is shown. It is looked at before the request is counted: see `rate_limits.counted`."""

Scope = str | tuple[str, ...] | Unscoped
"""`workspace:read` as in the names of key scopes; of several, any one is enough."""


def named(scope: Scope) -> tuple[str, ...]:
    """The scopes of which a key needs one; none where no key with a scope is asked for."""
    if isinstance(scope, Unscoped):
        return ()
    return (scope,) if isinstance(scope, str) else scope
