"""Licences: there are none. Every feature is entitled, and a submitted licence is refused.

The routes exist because clients call them.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from coder.api.base.refusals import Invalid, NotFound
from coder.coderd.services.access.authorization import require
from coder.domain.access.policy import Class, Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

_REFRESH_EVERY = timedelta(minutes=1)


def refuse_license(subject: Subject) -> None:
    """Refuse a licence. Raises Forbidden, else Invalid."""
    require(subject, "create", Class("license"), hidden=False)
    raise Invalid(
        "Invalid license",
        "This server needs no licence: every feature is included. GET /api/v2/entitlements lists them.",
    )


def refuse_deletion(subject: Subject) -> None:
    """Refuse a deletion. Raises Forbidden, else NotFound."""
    require(subject, "delete", Class("license"), hidden=False)
    raise NotFound("Unknown license ID")


def refresh_entitlements(ctx: Context, subject: Subject) -> None:
    """Refresh the entitlements, which changes nothing. As upstream, once a minute. Raises Forbidden, Invalid."""
    require(subject, "create", Class("license"), hidden=False)
    replica = ctx.services.this_replica
    now = ctx.clock.now()
    remaining = replica.refreshed_at + _REFRESH_EVERY - now
    if remaining > timedelta():
        seconds = int(remaining.total_seconds())
        raise Invalid(
            f"Entitlements already recently refreshed, please wait {seconds} seconds to force a new refresh",
            headers=[("Retry-After", str(seconds))],
        )
    replica.refreshed_at = now
