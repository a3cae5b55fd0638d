"""Health checks of provisioner daemons: a request over the mesh, and the record of its answer."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Concatenate, ParamSpec
from uuid import UUID

import h11
import msgspec
import trio

from coder.api.base import codec
from coder.api.base.refusals import BadGateway
from coder.api.base.struct import ApiStruct
from coder.api.provisioning.provisioners import DaemonHost, DaemonSlots
from coder.appproxy.agents.dialing import open_dialer
from coder.base.json_types import JsonObject
from coder.base.log import get_logger
from coder.coderd.services.network.stream_http import exchange
from coder.coderd.services.provisioning.connected_daemon import Worker
from coder.coderd.store.provisioning import daemon_health as store
from coder.coderd.store.provisioning import provisioners as daemon_store
from coder.domain.network.overlay import HTTP_PORT

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


TIMEOUT = 15.0
"""Seconds that a daemon has for its answer."""
PATH = "/api/v0/health"
_MAX_REPORT = 16 << 10
_MAX_PROBLEM = 500

_P = ParamSpec("_P")

_log = get_logger("provisioners")


async def measure(ctx: Context, worker: Worker, peer: UUID) -> None:
    """Check the health of a daemon and store it. Never raises for failures of the daemon or the database."""
    began = time.monotonic()
    problem, report = "", {}
    try:
        with trio.fail_after(TIMEOUT):
            stream = await open_dialer(ctx).dial(peer, HTTP_PORT)
            async with stream:
                answer = await exchange(stream, "GET", PATH)
        report = _read_report_untrusted(answer.body) if answer.status == 200 else {}
        problem = "" if report else f"it answered with status {answer.status}"
    except trio.TooSlowError:
        problem = f"no answer within {TIMEOUT:g} s"
    except (OSError, trio.BrokenResourceError, h11.RemoteProtocolError, BadGateway, ValueError) as error:
        problem = str(error) or type(error).__name__
    latency = time.monotonic() - began
    try:
        if problem:
            await ctx.db.run(write_health, worker, store.record_silence, ctx.clock.now(), problem[:_MAX_PROBLEM])
        else:
            await ctx.db.run(write_health, worker, store.record_answer, ctx.clock.now(), latency, report)
    except Exception as error:
        # The database may be down for a moment, or the daemon deleted meanwhile.
        _log.warn("the health of a provisioner was not stored", daemon=worker.name, error=error)


async def write_health(
    tx: Tx,
    worker: Worker,
    query: Callable[Concatenate[Tx, UUID, _P], Awaitable[None]],
    *args: _P.args,
    **rest: _P.kwargs,
) -> None:
    """Run `query` unless the daemon has reconnected: an older link's result says nothing about the newer one."""
    if await daemon_store.is_newest_link(tx, worker.id, worker.link):
        await query(tx, worker.id, *args, **rest)


class HealthReport(ApiStruct):
    """A daemon's report about itself."""

    version: str
    slots: DaemonSlots
    host: DaemonHost
    jobs: list[str]


def _read_report_untrusted(body: bytes) -> JsonObject:
    """Return a daemon's report. Raises ValueError for a malformed or oversized one."""
    if len(body) > _MAX_REPORT:
        raise ValueError("the answer is too large")
    report: JsonObject = msgspec.to_builtins(codec.decode(body, HealthReport))
    return report
