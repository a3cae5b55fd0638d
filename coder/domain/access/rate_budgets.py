"""Rate-limit budgets of routes, declared with every route and every endpoint for our own processes.

`coder/appproxy/http/rate_limits.py` enforces them. Routes of the API use `API` by default; all others must declare a
budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """Requests per minute for one user, or for one address without a session.

    Agents, proxies and daemons are counted by identity, like users: see `route_scopes.BY_SECRET`.
    """

    name: str
    limit: int = 0
    """Requests per minute; 0 follows `--api-rate-limit`."""
    times: int = 1
    """Factor applied to `--api-rate-limit`."""
    whole_route: bool = False
    """Whether all paths of a route share one count: for routes whose paths can be made up, or hold the secret itself.
    """
    refused: frozenset[int] = frozenset()
    """Response statuses that are counted, by address; empty means every request. Requests in progress count toward the
    limit as well: further ones wait."""
    unlimited_because: str = ""


API = Budget("api")
"""Upstream's: each path has its own count."""
PASSWORDS = Budget("passwords", 60, whole_route=True)
"""Upstream's: passwords, which people choose. Signed-in callers are counted too: the session may be stolen."""
FILES = Budget("files", 12)
"""Upstream's."""
SPEED_TESTS = Budget("speed_tests", 30, whole_route=True)
"""Speed tests of a page, each of at most 32 MiB and a few seconds. Ours: a script could keep the line of others busy.
"""
REGISTRATION = Budget("registration", 10, whole_route=True)
"""Clients that register themselves. Ours: registration needs no identity, and each client is a row that stays."""
MESSAGES = Budget("messages", 30)
"""Messages that users send to themselves. Ours: all messages of a deployment wait in one queue for one mail server."""
PUBLIC_ROUTE = Budget("public", whole_route=True)
"""Routes outside the API, or with a secret in the path. Ours: upstream counts none of these."""
GUESSES = Budget("guesses", 60, whole_route=True, refused=frozenset({401, 403}))
"""Secrets that people choose and programs send (the SCIM key, the daemons' pre-shared key). A caller with the right
secret is never counted, because an identity provider sends its thousand users in one burst."""
CARRIED = Budget("carried", whole_route=True)
"""Wrong ids. The right id is not counted: its holders send many requests a second."""
ADMISSIONS = Budget("admissions", times=8, whole_route=True)
"""Visitors of applications without a valid ticket and without a known session: each costs a query of the database, or
at a workspace proxy a request to the server. A ticket lasts a minute; a page whose ticket expired sends many requests
together. Known users are not counted: see `coder/appproxy/apps/authorizer.py`."""
RELAY = Budget("relay", times=4, whole_route=True)
"""Connections to the relay, which requires no secret. A thousand agents of one cluster reconnect together, some twice.
"""


def unlimited(because: str) -> Budget:
    """Return a budget for frequent, cheap requests."""
    return Budget("unlimited", unlimited_because=because)


def budgets_of(path: str, declared: Sequence[Budget]) -> tuple[Budget, ...]:
    """Return the budgets of a route at `path`. Raises LookupError for a route outside the API that declares none."""
    if declared:
        return tuple(declared)
    if path.startswith("/api/"):
        return (API,)
    raise LookupError(f"{path} names no budget of requests (coder/domain/access/rate_budgets.py)")
