"""Licences: there are none to have. Everything is entitled, and nothing that claims to be a licence is taken.

The routes stay, because clients ask them.
"""

from __future__ import annotations

import socket
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from coder.api.proxies import Replica
from coder.coderd.services.authorization import require
from coder.coderd.services.errors import Invalid, NotFound
from coder.coderd.store import users as user_store
from coder.domain.policy import Resource, Subject

if TYPE_CHECKING:
    from coder.coderd.services.context import Context

_REFRESH_EVERY = timedelta(minutes=1)


class ThisReplica:
    """This process among its equals. Made once, see `Context.part`."""

    def __init__(self, ctx: Context) -> None:
        self.id: UUID = uuid4()
        self.started_at: datetime = ctx.clock.now()
        self.refreshed_at: datetime = self.started_at


def refuse_license(subject: Subject) -> None:
    """Raises Forbidden, else Invalid."""
    require(subject, "create", Resource("license"), hidden=False)
    raise Invalid(
        "Invalid license",
        "This server needs no licence: every feature is included. GET /api/v2/entitlements lists them.",
    )


def refuse_deletion(subject: Subject) -> None:
    """Raises Forbidden, else NotFound."""
    require(subject, "delete", Resource("license"), hidden=False)
    raise NotFound("Unknown license ID")


def refresh_entitlements(ctx: Context, subject: Subject) -> None:
    """Nothing changes; as upstream it is allowed once a minute. Raises Forbidden, Invalid."""
    require(subject, "create", Resource("license"), hidden=False)
    replica: ThisReplica = ctx.part(ThisReplica)
    now = ctx.clock.now()
    left = replica.refreshed_at + _REFRESH_EVERY - now
    if left > timedelta():
        seconds = int(left.total_seconds())
        raise Invalid(
            f"Entitlements already recently refreshed, please wait {seconds} seconds to force a new refresh",
            headers=[("Retry-After", str(seconds))],
        )
    replica.refreshed_at = now


async def list_replicas(ctx: Context, subject: Subject) -> list[Replica]:
    """This server. Raises NotFound for those who may not know."""
    require(subject, "read", Resource("replicas"))
    replica: ThisReplica = ctx.part(ThisReplica)
    began = ctx.clock.monotonic()
    await ctx.db.read(user_store.count_users)
    return [
        Replica(
            id=replica.id,
            hostname=socket.gethostname(),
            created_at=replica.started_at,
            relay_address="",
            region_id=ctx.config.derp_server_region_id,
            error="",
            database_latency=int((ctx.clock.monotonic() - began) * 1e6),
        )
    ]
