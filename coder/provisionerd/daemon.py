"""Provisioner daemon: stay connected, run one job after another, stop gracefully.

The same code runs inside the server and as a process of its own; only `connect` differs:

    await run_daemon(connect, DaemonConfig(name="host-1", work_dir=...), executors, Shutdown())

    connect:    () -> async context manager of a coder.rpc.session.Session in the client role. Entering it may raise
                CoderError or OSError; an HttpError of status 400, 401, 403 or 404 ends the daemon, any other is
                retried (50 ms to 10 s).
    executors:  provisioner type -> Executor, e.g. executor_kinds(TerraformConfig(...)) of executors/terraform.py.
                Several daemons of a process share them.
    shutdown:   drain() and cancel_job() stop it gracefully. Cancelling the task kills the running job, which fails.

`run_daemon` returns when it has drained.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager

import trio

from coder.base.errors import CoderError
from coder.base.exception_groups import single_failure
from coder.base.log import get_logger
from coder.base.retry import Backoff
from coder.net.errors import HttpError, requested_delay
from coder.provisionerd.activity import ProvisionerActivity
from coder.provisionerd.config import DaemonConfig, Shutdown
from coder.provisionerd.executors.contract import Executor
from coder.provisionerd.final_report import report_leftovers
from coder.provisionerd.link import Link
from coder.provisionerd.run import run_job
from coder.rpc.errors import UNAVAILABLE, RpcClosed, RpcError
from coder.rpc.proto import overlay_pb2
from coder.rpc.proto import provisionerd_pb2 as pd
from coder.rpc.services import OVERLAY, PROVISIONER_DAEMON
from coder.rpc.session import Session

_log = get_logger("provisionerd")

Connect = Callable[[], AbstractAsyncContextManager[Session]]
OnSession = Callable[[Session], Awaitable[None]]
"""Runs for the life of a connection, concurrently with the jobs; must not raise for the server's misbehaviour."""


async def _ignore_session(_session: Session) -> None:
    await trio.lowlevel.checkpoint()


DRAIN = OVERLAY + "Drain"
_CANCEL_ANSWER = 5.0
"Seconds a draining daemon waits for the server to withdraw its offer of a job."
_LEFTOVER_TRIES = 6
"Attempts to read the directories of a former process."
_FATAL = frozenset({400, 401, 403, 404})
"HTTP statuses that a retry will not change."


async def run_daemon(
    connect: Connect,
    config: DaemonConfig,
    executors: Mapping[str, Executor],
    shutdown: Shutdown | None = None,
    *,
    beside: OnSession = _ignore_session,
    activity: ProvisionerActivity | None = None,
) -> None:
    """Run until `shutdown` is requested and complete. Raises HttpError when the server rejects this daemon."""
    shutdown = shutdown or Shutdown()
    activity = activity or ProvisionerActivity()
    link = Link(config)
    with single_failure():
        async with trio.open_nursery() as nursery:
            # Shielded: a cancelled daemon still has to report the end of its job.
            connection = trio.CancelScope(shield=True)
            nursery.start_soon(_stay_connected, connect, config, link, _both(beside, shutdown), connection)
            try:
                await _take_jobs(link, config, executors, shutdown, activity)
            finally:
                connection.cancel()


def _both(beside: OnSession, shutdown: Shutdown) -> OnSession:
    """Return `beside`, and the announcement of a drain to the server of each session."""

    async def run(session: Session) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(beside, session)
            await shutdown.wait_draining()
            try:
                await session.call(DRAIN, overlay_pb2.DrainRequest(), overlay_pb2.DrainResponse)
            except RpcError as problem:
                _log.debug("the server does not know draining provisioners", reason=problem.text)
            except RpcClosed:
                pass

    return run


async def _stay_connected(
    connect: Connect, config: DaemonConfig, link: Link, on_session: OnSession, scope: trio.CancelScope
) -> None:
    backoff = Backoff(config.reconnect_first, config.reconnect_last, jitter=0.5)
    was_accepted = False
    with scope:
        while True:
            began = trio.current_time()
            seconds, requested = await _connect_once(connect, config, link, on_session, was_accepted)
            attempt = 0.0
            if seconds is not None:
                was_accepted = True
                backoff.record_connection(seconds)
            elif not requested:
                attempt = trio.current_time() - began
            await trio.sleep(max(backoff.next_delay(attempt), requested))


async def _connect_once(
    connect: Connect, config: DaemonConfig, link: Link, on_session: OnSession, was_accepted: bool
) -> tuple[float | None, float]:
    """Connect and stay until the connection ends. Return how many seconds it was open, None if it was not established,
    and the seconds until the next attempt that the server requests. Raises HttpError for a rejection.

    Once the server has accepted this daemon, only a rejection in the API's own format counts: a reverse proxy answers
    for a restarting server, with a 403 or 404 page, too.
    """
    opened_at: float | None = None
    requested = 0.0
    try:
        async with connect() as session:
            _log.info("connected", daemon=config.name)
            opened_at = trio.current_time()
            link.set_session(session)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(on_session, session)
                await session.wait_closed()
                nursery.cancel_scope.cancel()
            _log.warn("the connection ended", daemon=config.name, reason=session.reason)
    except HttpError as problem:
        if problem.status in _FATAL and (problem.is_enveloped or not was_accepted):
            raise
        _log.warn("not connected", daemon=config.name, error=" ".join(str(problem).split()))
        requested = requested_delay(problem)
    except (CoderError, OSError) as problem:
        _log.warn("not connected", daemon=config.name, error=problem)
    finally:
        link.set_session(None)
    return None if opened_at is None else trio.current_time() - opened_at, requested


async def _take_jobs(
    link: Link,
    config: DaemonConfig,
    executors: Mapping[str, Executor],
    shutdown: Shutdown,
    activity: ProvisionerActivity,
) -> None:
    if config.work_dir.is_dir():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_on_drain, shutdown, nursery.cancel_scope)
            await _report_leftovers(link, config)
            nursery.cancel_scope.cancel()
    pauses = Backoff(config.retry_first, config.retry_last)
    while not shutdown.draining:
        asked = trio.current_time()
        acquired = await _acquire(link, config, shutdown)
        if acquired is None or not acquired.job_id:
            # A genuine server has no job after a while; one that says so at once would be asked without end.
            pauses.record_connection(trio.current_time() - asked)
            with trio.move_on_after(pauses.next_delay()):
                await shutdown.wait_draining()
        else:
            began = trio.current_time()
            with activity.working(acquired.job_id, acquired.provisioner):
                succeeded = await run_job(acquired, executors, link, config, shutdown)
            activity.record(acquired.provisioner, trio.current_time() - began, succeeded=succeeded)


async def _report_leftovers(link: Link, config: DaemonConfig) -> None:
    """Report the jobs of the former process. A machine without descriptors gets some time; then they wait for the next
    start, and the daemon works."""
    for _ in range(_LEFTOVER_TRIES):
        try:
            await report_leftovers(link, config)
        except OSError as problem:
            _log.warn("jobs of the previous provisioner cannot be read", daemon=config.name, error=problem)
            await trio.sleep(config.retry_last)
        else:
            return


async def _acquire(link: Link, config: DaemonConfig, shutdown: Shutdown) -> pd.AcquiredJob | None:
    """Return the next job; None when the daemon drains or the connection ended."""
    sessions: list[Session] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_cancel_on_drain, shutdown, nursery.cancel_scope)
        sessions.append(await link.session())
        nursery.cancel_scope.cancel()
    if not sessions:
        return None
    try:
        return await _wait_for_job(sessions[0], shutdown)
    except RpcClosed:
        # The link notices at the same moment; wait for that instead of asking the closed session again.
        await trio.sleep(config.retry_first)
    except RpcError as problem:
        if problem.number == UNAVAILABLE:
            link.note_unavailable(problem)
        else:
            _log.warn("requesting a job failed", daemon=config.name, error=problem.text)
        await trio.sleep(config.retry_last)
    return None


async def _cancel_on_drain(shutdown: Shutdown, scope: trio.CancelScope) -> None:
    await shutdown.wait_draining()
    scope.cancel()


async def _wait_for_job(session: Session, shutdown: Shutdown) -> pd.AcquiredJob | None:
    """Request a job. A job that arrives while draining must be run: the server has assigned it."""
    received: pd.AcquiredJob | None = None
    async with session.open_stream(
        PROVISIONER_DAEMON + "AcquireJobWithCancel", pd.CancelAcquire, pd.AcquiredJob
    ) as stream:
        with single_failure():
            async with trio.open_nursery() as nursery:

                async def send_cancel() -> None:
                    await shutdown.wait_draining()
                    await stream.send(pd.CancelAcquire())
                    # A server that does not answer must not keep the daemon from stopping.
                    await trio.sleep(_CANCEL_ANSWER)
                    nursery.cancel_scope.cancel()

                nursery.start_soon(send_cancel)
                try:
                    received = await stream.receive()
                except trio.EndOfChannel:
                    received = None
                nursery.cancel_scope.cancel()
    return received
