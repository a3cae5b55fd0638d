"""Which budget of requests a route draws on, named beside every route and every endpoint for our own processes.

What follows from a budget is `coder/appproxy/http/rate_limits.py`. Routes of the API draw on `API` unless they
say otherwise, all others have to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """Requests a minute of one user, or of one address when nobody signed in.

    Agents, proxies and daemons are counted as who they are, like users: see `route_scopes.BY_SECRET`.
    """

    name: str
    limit: int = 0
    "Requests a minute; 0 follows `--api-rate-limit`."
    times: int = 1
    "Multiplies `--api-rate-limit`."
    whole_route: bool = False
    "Counts all paths of a route together: where paths can be made up, or hold the secret itself."
    refused: frozenset[int] = frozenset()
    """Statuses that are counted; empty: every request. Counted by address, whoever asks. With what is being answered
    they are never more than the limit: who comes meanwhile waits."""
    unlimited_because: str = ""


API = Budget("api")
"As upstream: each path on its own."
PASSWORDS = Budget("passwords", 60, whole_route=True)
"As upstream: passwords, which people choose. Of somebody signed in too, who may hold a session that is not theirs."
FILES = Budget("files", 12)
"As upstream."
REGISTRATION = Budget("registration", 10, whole_route=True)
"Clients that register themselves; ours: nobody is asked who they are, and each is a row that stays."
MESSAGES = Budget("messages", 30)
"What people have sent to themselves. Ours: all messages of a deployment wait in one queue for one mail server."
PUBLIC_ROUTE = Budget("public", whole_route=True)
"Outside of the API, or with a secret in the path. Ours: upstream counts none of these."
GUESSES = Budget("guesses", 60, whole_route=True, refused=frozenset({401, 403}))
"""Secrets that people choose and programs show (the SCIM key, the daemons' pre-shared key): whoever shows the right one
is never counted, because an identity provider sends its thousand users at once."""
CARRIED = Budget("carried", whole_route=True)
"Of wrong ids: the right one is not counted, for those who have it ask many times a second."
ADMISSIONS = Budget("admissions", times=8, whole_route=True)
"""Visitors of applications who bring no valid ticket and are nobody we know: each asks the database, at a workspace
proxy the server. A ticket lasts a minute; a page that finds its own over asks for many things at once. Whoever is
known is not counted: see `coder/appproxy/apps/authorizer.py`."""
RELAY = Budget("relay", times=4, whole_route=True)
"Connections to the relay, which asks for no secret. A thousand agents of one cluster come back at once, some twice."


def unlimited(because: str) -> Budget:
    """For what is asked often and costs little."""
    return Budget("unlimited", unlimited_because=because)


def budgets_of(path: str, said: Sequence[Budget]) -> tuple[Budget, ...]:
    """What a route at `path` draws on. Raises LookupError for one outside of the API that says nothing."""
    if said:
        return tuple(said)
    if path.startswith("/api/"):
        return (API,)
    raise LookupError(f"{path} names no budget of requests (coder/domain/access/rate_budgets.py)")
