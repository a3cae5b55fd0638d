"""The link of provisioner daemons: yamux and dRPC over a WebSocket, or over a pipe for built-in daemons.

The checks before the upgrade and their order are docs/protocol/rpc.md#daemons; the calls are
docs/protocol/provisioners.md#calls, implemented by `services/provisioning/daemon_calls.py`. The end of a link leaves
the daemon's running job alone: the daemon reconnects and continues, or the reaper ends the job.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import trio

from coder.api.base.refusals import Forbidden, Invalid, InvalidFields, NotFound, Unauthenticated
from coder.appproxy.http.rate_limits import counted
from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.base.version import BUILD_VERSION, PROVISIONER_API_VERSION
from coder.coderd.rpc_endpoints.daemon_connection import DaemonConnection
from coder.coderd.rpc_endpoints.pipe import stream_pair
from coder.coderd.services.access.rights_changes import PAUSE
from coder.coderd.services.access.session_revocation import CHECK_INTERVAL, SessionEndedError
from coder.coderd.services.foundation.outages import until_available
from coder.coderd.services.provisioning import daemon_admission, daemon_registration, job_endings, provisioners
from coder.coderd.services.provisioning.connected_daemon import Worker
from coder.coderd.services.provisioning.daemon_admission import DaemonAdmission, DaemonApplication
from coder.coderd.services.provisioning.daemon_mesh import DaemonMesh
from coder.coderd.services.provisioning.daemon_registration import Introduction, Presence
from coder.coderd.services.provisioning.job_queue import RequireRight
from coder.domain.access.policy import NIL
from coder.domain.access.rate_budgets import API, GUESSES
from coder.domain.access.route_scopes import PROVISIONER
from coder.domain.provisioning.jobs import LOST_AFTER
from coder.domain.provisioning.provisioners import BUILT_IN_KEY, HEARTBEAT, PROVISIONERS, explain_incompatible
from coder.domain.provisioning.tags import NIL_OWNER, normalize_tags, parse_tag
from coder.rpc.session import Session, open_session

if TYPE_CHECKING:
    from uuid import UUID

    from coder.appproxy.upgrades.raw_links import EndpointTable, Upgrade, UpgradeRequest
    from coder.coderd.services.access.authentication import Caller
    from coder.coderd.services.foundation.context import Context

MAX_MESSAGE = 256 * 1024
"""Bytes of one WebSocket message on this link (docs/protocol/rpc.md#websocket)."""
REVOKED_GRACE = 10.0
"""Ours: seconds a daemon with revoked authorization gets to finish its job, whose results must not be lost."""
_LEAVING = 5.0
"""Seconds the database gets to record that a daemon disconnected."""

_PSK = "coder-provisioner-daemon-psk"

_Admitted = tuple["UUID", DaemonAdmission, list[str]]

_log = get_logger("provisioners")


def register(table: EndpointTable) -> None:
    """Add this module's link."""
    table.add(
        "/api/v2/organizations/{organization}/provisionerdaemons/serve",
        serve_provisioner,
        scope=PROVISIONER,
        refuses=(400, 403, 409),
        budgets=(API, GUESSES),
    )


async def serve_provisioner(ctx: Context, upgrade: Upgrade) -> None:
    """Serve `GET /api/v2/organizations/{organization}/provisionerdaemons/serve`."""
    request = upgrade.request
    if request.headers.get(_PSK, ""):
        await upgrade.count(None, guess=True)
        organization, admission, kinds = await _admit(ctx, upgrade)
    else:
        organization, admission, kinds = await counted(_admit(ctx, upgrade), _identity, upgrade.count)
    provisioners.check_tags(admission.tags)
    version = _read_version(request)
    introduction = Introduction(
        name=request.first("name"),
        provisioners=kinds,
        version=request.headers.get("x-coder-build-version", ""),
        api_version=version,
    )
    await upgrade.require_handshake()  # an invalid handshake must not create a daemon
    worker = await daemon_registration.register(ctx, organization, admission, introduction)
    try:
        websocket = await upgrade.accept_websocket(max_message=MAX_MESSAGE, binary_only=True)
    except BaseException:
        await _leave(Presence(ctx, worker), worker)
        raise
    try:
        await _serve(ctx, websocket, worker, admission)
    finally:
        with trio.move_on_after(2, shield=True):
            await websocket.close(1001, "")


async def _admit(ctx: Context, upgrade: Upgrade) -> _Admitted:
    """Return the organization, the daemon's identity and its provisioners. Raises Invalid, Forbidden, NotFound."""
    request = upgrade.request
    organization = await daemon_admission.find_organization(ctx, upgrade.params["organization"])
    tags = _read_tags(request.query.get("tag", []))
    kinds = _read_kinds(request.query.get("provisioner", []))
    admission = await daemon_admission.admit(
        ctx,
        DaemonApplication(
            organization_id=organization.id if organization else NIL,
            is_default_organization=organization is not None and organization.is_default,
            key=request.headers.get("coder-provisioner-daemon-key", ""),
            psk=request.headers.get(_PSK, ""),
            credentials=request.credentials,
            tags=tags,
        ),
    )
    if organization is None:  # not before: an unauthorized caller must not learn which organizations exist
        raise NotFound
    return organization.id, admission, kinds


def _identity(admitted: _Admitted) -> Caller | str:
    admission = admitted[1]
    return admission.caller or f"provisioner key {admission.key_id}"


def _read_tags(values: Sequence[str]) -> dict[str, str]:
    tags = {}
    for text in values:
        pair = parse_tag(text)
        if pair is None:
            raise Invalid(f'Invalid format for tag "{text}". Key and value must be separated with =.')
        tags[pair[0]] = pair[1]
    return tags


def _read_kinds(values: Sequence[str]) -> list[str]:
    if not values:
        raise Invalid("The provisioner query parameter must be specified.")
    for kind in values:
        if kind not in PROVISIONERS:
            raise Invalid(f'Unknown provisioner type "{kind}"')
    return list(values)


def _read_version(request: UpgradeRequest) -> str:
    version = request.first("version", "1.0") or "1.0"
    reason = explain_incompatible(version, PROVISIONER_API_VERSION)
    if reason is not None:
        raise InvalidFields(("version", reason), message="Incompatible or unparsable version")
    return version


@asynccontextmanager
async def connect_built_in(
    ctx: Context, name: str, kinds: Sequence[str], tags: dict[str, str] | None = None
) -> AsyncIterator[Session]:
    """Return a session for a daemon inside this process, with the same handlers as external ones."""
    admission = DaemonAdmission(normalize_tags(NIL_OWNER, tags), BUILT_IN_KEY)
    introduction = Introduction(name, list(kinds), BUILD_VERSION, PROVISIONER_API_VERSION)
    try:
        organization = await daemon_admission.find_organization(ctx, "default")
        if organization is None:
            raise LookupError("there is no default organization")
        worker = await daemon_registration.register(ctx, organization.id, admission, introduction)
    except Exception as error:
        # The daemon retries after any refusal of this kind; anything else would end it, and the server with it.
        raise CoderError("not_registered", f"the provisioner {name} could not be registered: {error}") from error
    server_end, daemon_end = stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_serve, ctx, server_end, worker, admission)
        async with open_session(daemon_end, role="client") as session:
            yield session
        nursery.cancel_scope.cancel()


async def _serve(ctx: Context, stream: trio.abc.Stream, worker: Worker, admission: DaemonAdmission) -> None:
    """Serve the daemon until its connection ends, the server stops, or its authorization is revoked."""
    require_right = partial(daemon_admission.require_admission, ctx, worker.offer.organization_id, admission)
    presence = Presence(ctx, worker)
    link, mesh = DaemonConnection(ctx, worker, require_right, presence), DaemonMesh(ctx, worker)
    _log.info("a provisioner connected", daemon=worker.name, id=worker.id)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_keep_seen, presence, worker)
            nursery.start_soon(_end_lost_jobs, ctx, worker, link)
            if admission.key_id != BUILT_IN_KEY:
                # A built-in daemon is stopped by its own task, after it has reported the end of its job.
                nursery.start_soon(_leave_on_stop, ctx, nursery.cancel_scope)
                nursery.start_soon(mesh.keep_measuring)
                nursery.start_soon(_leave_when_shut_out, ctx, link, admission, require_right, nursery.cancel_scope)
            if admission.caller is not None:
                nursery.start_soon(_leave_when_signed_out, ctx, admission.caller, nursery.cancel_scope)
            async with open_session(stream, role="server") as session:
                await session.serve({**link.handlers(), **mesh.handlers()})
            nursery.cancel_scope.cancel()
    finally:
        ctx.services.api.module_files.forget(worker, link)
        await _leave(presence, worker)
        _log.info("a provisioner disconnected", daemon=worker.name, id=worker.id)


async def _leave_when_signed_out(ctx: Context, caller: Caller, scope: trio.CancelScope) -> None:
    sessions = ctx.services.sessions
    with sessions.opened(caller) as opened:
        await sessions.confirm(opened)
        try:
            await opened.run(trio.sleep_forever)
        except SessionEndedError:
            scope.cancel()


async def _keep_seen(presence: Presence, worker: Worker) -> None:
    while True:
        await trio.sleep(HEARTBEAT.total_seconds())
        try:
            await presence.keep()
        except Exception as error:
            # An outage of the database is temporary; the link must survive it.
            _log.warn("the heartbeat of a provisioner was not written", daemon=worker.name, error=error)


async def _leave(presence: Presence, worker: Worker) -> None:
    try:
        with trio.move_on_after(_LEAVING, shield=True):
            await presence.end()
    except Exception as error:
        _log.warn("a disconnected provisioner was not recorded as offline", daemon=worker.name, error=error)


async def _end_lost_jobs(ctx: Context, worker: Worker, link: DaemonConnection) -> None:
    """End the jobs a daemon lost, once per connection: a daemon that requests work has none, so its jobs belong to its
    previous process. Again when the database was away during an assignment."""
    await link.asked.wait()
    while True:
        link.assignment_failed = trio.Event()
        await trio.sleep(LOST_AFTER.total_seconds())
        try:
            await until_available(job_endings.end_lost_jobs, ctx, worker, lambda: link.current_job)
        except Exception as error:
            _log.warn("lost jobs could not be searched", daemon=worker.name, error=error)
        await link.assignment_failed.wait()


async def _leave_on_stop(ctx: Context, scope: trio.CancelScope) -> None:
    await ctx.stopping.wait()
    scope.cancel()


async def _leave_when_shut_out(
    ctx: Context,
    link: DaemonConnection,
    admission: DaemonAdmission,
    require_right: RequireRight,
    scope: trio.CancelScope,
) -> None:
    """Disconnect the daemon when its key was deleted, or its user lost permission. A daemon with a running job gets
    time to finish it and to send the state."""
    rights = ctx.services.rights_changes
    next_change = rights.next_key_deleted if admission.caller is None else rights.next_change
    changed = next_change()  # before the check: a change during the check counts
    while True:
        try:
            await require_right()
        except Forbidden as error:
            _log.info(
                "a provisioner is disconnected because its authorization ended",
                daemon=link.worker.name,
                reason=error.detail,
            )
            break
        except Unauthenticated:
            pass  # the session notifies
        except Exception as error:
            # A short outage of the database ends no session.
            _log.warn("a provisioner's authorization could not be checked", daemon=link.worker.name, error=error)
        await trio.sleep(min(PAUSE, CHECK_INTERVAL))
        with trio.move_on_after(CHECK_INTERVAL):
            await changed.wait()
        changed = next_change()
    try:
        if await job_endings.cancel_revoked(ctx, link.worker):
            with trio.move_on_after(REVOKED_GRACE):
                await link.job_ended.wait()
            await job_endings.end_revoked(ctx, link.worker)
    except Exception as error:
        _log.warn("jobs of a revoked provisioner were not ended", daemon=link.worker.name, error=error)
    scope.cancel()
