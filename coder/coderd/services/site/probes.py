"""Answers for load balancers and service managers: is the process alive, is it ready for requests?

The third question, what is wrong with the deployment, is the health report's (`health.py`). These two cost no database
statement, and cover all processes of the server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coder.coderd.services.site.health import is_database_away

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

REPLACING = 60.0
"""Seconds that the supervisor has to replace a lost process before the server no longer counts as alive."""
_SERVING = frozenset({"http", "relay", "apps", "wireguard"})
"""Duties that requests depend on."""


def liveness_faults(ctx: Context) -> list[str]:
    """Return why a restart of this server would help. A request that is answered shows that the event loop turns; a
    lost sibling is the supervisor's to replace first."""
    now = ctx.clock.monotonic()
    missing = ctx.process.missing_since(now)
    late = sorted(duty for duty, since in missing.items() if now - since > REPLACING)
    return [f"no process has had the duty {duty!r} for {now - missing[duty]:.0f} s" for duty in late]


def readiness_faults(ctx: Context) -> list[str]:
    """Return why this server should get no new requests. It answers none before its migrations have run."""
    faults = ["the server is shutting down"] if ctx.stopping.is_set() else []
    if is_database_away(ctx):
        faults.append("the database does not answer")
    missing = ctx.process.missing_since(ctx.clock.monotonic())
    return faults + [f"no process has the duty {duty!r}" for duty in sorted(_SERVING & missing.keys())]
