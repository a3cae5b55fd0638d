"""How provisioner daemons and their machines do, measured over the mesh; and how that looks.

A daemon that joined the overlay is asked every half minute on its own address, over this server's node. One that does
not join (an older one) is judged by the heartbeat of its link alone. Built-in daemons share our process: their machine
is looked at here.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec
from uuid import UUID, uuid5

import h11
import msgspec
import trio

from coder.api.base import codec
from coder.api.base.refusals import BadGateway
from coder.api.base.struct import ApiStruct
from coder.api.provisioning.provisioners import DaemonHost, DaemonSlots, ProvisionerDaemonHealth
from coder.appproxy.agents.dialing import open_dialer
from coder.base.host import HostLoad, HostWatch
from coder.base.log import get_logger
from coder.coderd.services.network.coordinator import CoordinateCall
from coder.coderd.services.network.derp_map import current_map
from coder.coderd.services.network.node_keys import daemon_owner
from coder.coderd.services.network.stream_http import exchange
from coder.coderd.services.network.tailnet_rpc import Send, TailnetPeer, TailnetService
from coder.coderd.services.provisioning.connected_daemon import Worker
from coder.coderd.services.provisioning.job_lists import require_queue
from coder.coderd.store.provisioning import daemon_health as store
from coder.coderd.store.provisioning import provisioners as daemon_store
from coder.coderd.store.provisioning.daemon_health import HealthRow
from coder.coderd.store.provisioning.provisioners import DaemonJob, DaemonRow
from coder.domain.access.policy import Subject
from coder.domain.network.coordination_rules import AgentAccess
from coder.domain.network.overlay import HTTP_PORT
from coder.domain.provisioning.provisioners import BUILT_IN_KEY, daemon_status, is_stale
from coder.rpc.calls import Bidi, Handlers, ServerStream, Unary
from coder.rpc.errors import RpcError
from coder.rpc.proto import overlay_pb2, tailnet_pb2
from coder.rpc.services import OVERLAY, TAILNET
from coder.tailnet import derpmap

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

INTERVAL = 30.0
"""Seconds between two looks at a daemon."""
TIMEOUT = 15.0
"""Seconds a daemon has for its answer."""
PATH = "/api/v0/health"
_JOIN = OVERLAY + "Join"
_MAX_REPORT = 16 << 10
_MAX_PROBLEM = 500

_P = ParamSpec("_P")

_log = get_logger("provisioners")


class DaemonMesh:
    """One connected daemon on the overlay: its calls, and the looks at it."""

    def __init__(self, ctx: Context, worker: Worker) -> None:
        self._ctx = ctx
        self._worker = worker
        self._id: UUID | None = None
        self._joined = trio.Event()

    def handlers(self) -> Handlers:
        """The call that joins, and coordination for whoever did."""
        return {
            _JOIN: Unary(self._join, overlay_pb2.JoinRequest),
            f"{TAILNET}Coordinate": Bidi(self._coordinate, tailnet_pb2.CoordinateRequest),
            f"{TAILNET}StreamDERPMaps": ServerStream(self._stream_maps, tailnet_pb2.StreamDERPMapsRequest),
        }

    async def _join(self, request: overlay_pb2.JoinRequest) -> overlay_pb2.JoinResponse:
        await trio.lowlevel.checkpoint()
        if len(request.process) != 16:
            raise RpcError(0, "a process is named by 16 bytes")
        # Made from the daemon's own id: nobody can take the place of an agent or of another daemon.
        self._id = uuid5(self._worker.id, request.process.hex())
        return overlay_pb2.JoinResponse(
            id=self._id.bytes,
            derp_map=derpmap.to_proto(current_map(self._ctx)),
            derp_force_websockets=self._ctx.config.derp_force_websockets,
        )

    def _service(self) -> TailnetService:
        if self._id is None:
            raise RpcError(0, "join the overlay first")
        peer = TailnetPeer(self._id, AgentAccess(self._id), owner=daemon_owner(self._worker.id))
        return TailnetService(self._ctx, peer)

    async def _coordinate(self, call: CoordinateCall) -> None:
        service = self._service()
        self._joined.set()
        await service.coordinate(call)

    async def _stream_maps(self, request: tailnet_pb2.StreamDERPMapsRequest, send: Send) -> None:
        await self._service().stream_derp_maps(request, send)

    async def keep_measuring(self) -> None:
        """Looks at the daemon for as long as it is connected, once it has joined."""
        try:
            await self._ctx.db.run(_write, self._worker, store.forget_health)
        except Exception as error:
            _log.warn("old looks at a provisioner were not forgotten", daemon=self._worker.name, error=error)
        await self._joined.wait()
        assert self._id is not None  # noqa: S101 - who joined has an id
        try:
            while True:
                await measure(self._ctx, self._worker, self._id)
                await trio.sleep(INTERVAL)
        finally:
            if self._ctx.agent_dialer is not None:
                self._ctx.agent_dialer.forget(self._id)


async def measure(ctx: Context, worker: Worker, peer: UUID) -> None:
    """One look. Never raises for what the daemon or the database does."""
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
            await ctx.db.run(_write, worker, store.record_silence, ctx.clock.now(), problem[:_MAX_PROBLEM])
        else:
            await ctx.db.run(_write, worker, store.record_answer, ctx.clock.now(), latency, report)
    except Exception as error:
        # A database that is away comes back, and a daemon may have been forgotten meanwhile.
        _log.warn("a look at a provisioner was not written", daemon=worker.name, error=error)


async def _write(
    tx: Tx,
    worker: Worker,
    query: Callable[Concatenate[Tx, UUID, _P], Awaitable[None]],
    *args: _P.args,
    **rest: _P.kwargs,
) -> None:
    """What an older link finds says nothing of a daemon that has come back over a newer one."""
    if await daemon_store.is_newest_link(tx, worker.id, worker.link):
        await query(tx, worker.id, *args, **rest)


class _Report(ApiStruct):
    """What a daemon says of itself."""

    version: str
    slots: DaemonSlots
    host: DaemonHost
    jobs: list[str]


def _read_report_untrusted(body: bytes) -> dict[str, Any]:
    """Raises ValueError (of msgspec) for anything else."""
    if len(body) > _MAX_REPORT:
        raise ValueError("the answer is too large")
    found: dict[str, Any] = msgspec.to_builtins(codec.decode(body, _Report))
    return found


# ---- presentation


async def list_health(ctx: Context, subject: Subject, organization_id: UUID) -> list[ProvisionerDaemonHealth]:
    """Of every daemon of the organization, oldest first. Raises NotFound when the caller may not see them."""
    require_queue(subject, organization_id)
    rows, jobs, measured = await ctx.db.read(_load, organization_id)
    now = ctx.clock.now()
    inside: HostWatch = ctx.part(OwnHost).watch
    found = []
    for row in rows:
        here = not is_stale(row.last_seen_at, now)
        busy = here and any(job.worker_id == row.id and job.status in {"running", "canceling"} for job in jobs)
        status = daemon_status(row.last_seen_at, busy=busy, now=now)
        health = ProvisionerDaemonHealth(
            row.id,
            row.name,
            status,
            "heartbeat",
            here,
            row.version,
            DaemonSlots(1, int(busy)),
            answered_at=row.last_seen_at,
        )
        if row.key_id == BUILT_IN_KEY and here:
            health.source, health.host, health.measured_at = "process", _own_host(inside.look()), now
        elif row.id in measured:
            _add_measured(health, measured[row.id], here=here)
        found.append(health)
    return found


async def _load(tx: Tx, organization_id: UUID) -> tuple[list[DaemonRow], list[DaemonJob], dict[UUID, HealthRow]]:
    rows = await daemon_store.list_daemons(tx, organization_id)
    ids = [row.id for row in rows]
    return rows, await daemon_store.list_daemon_jobs(tx, ids), await store.list_health(tx, ids)


def _add_measured(health: ProvisionerDaemonHealth, row: HealthRow, *, here: bool) -> None:
    health.source = "mesh"
    health.reachable = here and row.unreachable_since is None
    health.measured_at, health.answered_at = row.measured_at, row.answered_at
    health.unreachable_since, health.problem = row.unreachable_since, row.problem
    health.latency_ms = None if row.latency is None else round(row.latency * 1000, 3)
    if row.report:
        report = msgspec.convert(row.report, _Report)
        health.version, health.slots, health.host = report.version, report.slots, report.host


class OwnHost:
    """The machine of this server."""

    def __init__(self, ctx: Context) -> None:
        self.watch = HostWatch(Path(str(ctx.config.cache_dir) or "/").expanduser())


def _own_host(load: HostLoad) -> DaemonHost:
    return msgspec.convert(load, DaemonHost, from_attributes=True)
