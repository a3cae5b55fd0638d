"""The server's composition root: opens everything in order under one nursery, closes it in the reverse order.

Order: database (built-in or external), migrations, context with its services (`composition.py`) and their tasks, parts
(coordinator, own mesh node, loops), the HTTP server, the loops, the provisioner daemons. Nothing below this file starts
another part.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, cast
from urllib.parse import urlparse
from uuid import UUID

import h11
import trio

from coder.appproxy.apps.app_proxy import AppProxy
from coder.appproxy.http.client_address import TrustedProxies
from coder.appproxy.http.errors import envelope_of
from coder.appproxy.http.listener import HttpServer
from coder.appproxy.http.listening_sockets import open_listeners
from coder.appproxy.http.request_bounds import has_too_many
from coder.appproxy.metrics.open_links import UPGRADED
from coder.appproxy.upgrades.raw_links import EndpointTable, Upgrade, draw_on, path_of, serve_endpoint, upgrade_request
from coder.base import garbage
from coder.base.clock import Clock
from coder.base.exception_groups import single_failure
from coder.base.log import get_logger
from coder.coderd.composition import build_services, start_services
from coder.coderd.config.checks import idle_connections
from coder.coderd.config.settings import ServerConfig
from coder.coderd.http.blueprints import BLUEPRINTS
from coder.coderd.http.server.application import build_application, make_application
from coder.coderd.http.server.middleware import response_headers
from coder.coderd.http.server.quart_fixes import Application
from coder.coderd.loops import (
    autobuild,
    collector,
    key_rotation,
    last_use,
    notifications,
    prebuilds,
    proxy_health,
    purge,
    reaper,
    release_check,
    reports,
    rollouts,
)
from coder.coderd.rpc_endpoints import agents, coordination, provisioners, proxies
from coder.coderd.rpc_endpoints import relay as relay_endpoint
from coder.coderd.rpc_endpoints.carried import CarriedUpgrade, is_carried
from coder.coderd.services.apps import app_usage, local_authorizer
from coder.coderd.services.apps.local_authorizer import LocalAppAuthorizer
from coder.coderd.services.foundation.context import Context
from coder.coderd.services.foundation.database_clock import DatabaseClock
from coder.coderd.services.foundation.deferred_work import ITEM_TIMEOUT
from coder.coderd.services.foundation.this_process import Duty, ThisProcess
from coder.coderd.services.login import oidc
from coder.coderd.services.login.client_assertion import load_certificate
from coder.coderd.services.network import coordinator, relay, replicas, server_node, siblings
from coder.coderd.services.network.sibling_routes import other_finder
from coder.coderd.services.notifications import vapid_keys
from coder.coderd.services.telemetry import database_metrics, metrics_endpoint, metrics_for_siblings, profiles, tracing
from coder.coderd.services.wireguard import wireguard_gateway
from coder.coderd.store.engine.availability import DatabaseAwayError
from coder.coderd.store.engine.database import Database, open_database
from coder.coderd.store.engine.migrate import migrate, wait_for_database, warn_of_connection_limits
from coder.coderd.store.engine.postgres import run_postgres
from coder.coderd.store.site import site_settings
from coder.net.aws_login import with_login

if TYPE_CHECKING:
    from coder.coderd.http.server.openapi.document import Document

_log = get_logger("coderd")

Listener: TypeAlias = trio.SocketListener | trio.SSLListener[trio.SocketStream]
ProvisionerFactory = Callable[[Context], Awaitable[None]]
"""Runs the built-in provisioner daemons until they have drained after `Context.stopping`, or are cancelled; passed in
by the CLI, so that the packages stay independent."""

DRAIN_TIME = 10.0
"""Ours: seconds the built-in daemons' running jobs may take to end once the server stops; then they are interrupted and
fail with their current state. Service managers kill after 90 s, and users wait for Ctrl-C."""

PARTS = (
    tracing.run,
    relay.run,
    coordinator.run,
    replicas.run,
    server_node.run,
    metrics_endpoint.run,
    metrics_for_siblings.run,
    database_metrics.run,
    profiles.run,
    wireguard_gateway.run,
    app_usage.run,
    local_authorizer.run,
)
"""`async def run(ctx, *, task_status)`: long-lived parts, started in this order before the server listens."""

DUTY_OF: dict[Callable[[Context], Awaitable[None]], Duty] = {
    metrics_endpoint.run: "metrics",
    profiles.run: "metrics",
    wireguard_gateway.run: "wireguard",
    reaper.run: "loops",
    autobuild.run: "loops",
    notifications.run: "loops",
    purge.run: "loops",
    key_rotation.run: "loops",
    prebuilds.run: "loops",
    reports.run: "loops",
    rollouts.run: "loops",
}
"""Parts and loops that only the process with a duty runs. All others run in every process of a server."""

BINDING_PARTS = frozenset({metrics_endpoint.run, profiles.run, wireguard_gateway.run})
"""Parts that bind a port of the server. A process that replaces a living one starts them when that has ended."""

ENDPOINTS = (provisioners, agents, coordination, relay_endpoint, proxies)
"""Modules of `coderd/rpc_endpoints` with `def register(table: EndpointTable)`."""

LOOPS: tuple[Callable[[Context], Awaitable[None]], ...] = (
    reaper.run,
    autobuild.run,
    notifications.run,
    purge.run,
    last_use.run,
    key_rotation.run,
    prebuilds.run,
    proxy_health.run,
    release_check.run,
    reports.run,
    rollouts.run,
    collector.run,
)
"""`async def run(ctx)`: automatic actions."""


@dataclass(frozen=True, slots=True)
class RunningServer:
    """Result of a started server."""

    url: str
    """URL of the first listener."""
    access_url: str
    urls: tuple[str, ...]
    context: Context


async def run_server(
    config: ServerConfig,
    provisioner_factory: ProvisionerFactory | None = None,
    task_status: trio.TaskStatus[RunningServer] = trio.TASK_STATUS_IGNORED,
    *,
    clock: Clock | None = None,
    handle_signals: bool = True,
    announce: Callable[[str], None] = print,
) -> None:
    """Run the server until SIGINT or SIGTERM (or cancellation). Raises CoderError when it cannot start."""
    async with open_server(config, provisioner_factory, clock=clock) as server:
        for url in server.urls:
            announce(f"Started HTTP listener at {url}")
        announce(f"\nView the Web UI: {server.access_url}")
        task_status.started(server)
        if handle_signals:  # the process is ours
            garbage.settle()
            await _wait_for_signal(announce)
        else:
            await server.context.stopping.wait()


@contextlib.asynccontextmanager
async def open_server(
    config: ServerConfig,
    provisioner_factory: ProvisionerFactory | None = None,
    *,
    clock: Clock | None = None,
) -> AsyncIterator[RunningServer]:
    """Run a server for the length of the block; everything is closed, in order, at its end."""
    clock = clock or DatabaseClock()
    async with contextlib.AsyncExitStack() as stack:
        load_certificate(config)  # an unusable one must not wait for the first login
        listeners = await open_listeners(config)  # first: a port in use must not cost a database start
        try:
            url = with_login(config.postgres_url.reveal(), config.postgres_auth) or await stack.enter_async_context(
                run_postgres(config.data_path, bin_dir=config.postgres_bin_dir, ephemeral=config.ephemeral)
            )
            server = await stack.enter_async_context(
                open_process(config, url, listeners, provisioner_factory, clock, ThisProcess(), migrates=True)
            )
        except BaseException:
            for _, listener in listeners:
                with trio.CancelScope(shield=True):
                    await trio.aclose_forcefully(listener)
            raise
        yield server


@contextlib.asynccontextmanager
async def open_process(
    config: ServerConfig,
    database_url: str,
    listeners: list[tuple[str, Listener]],
    provisioner_factory: ProvisionerFactory | None,
    clock: Clock,
    process: ThisProcess,
    *,
    migrates: bool,
    connections: int = 0,
    application: Application | None = None,
) -> AsyncIterator[RunningServer]:
    """Run a process of a server with the duties of `process`, on a database that is there already. `connections` is its
    part of the database's; 0: all. `application` is one of `prepare_application`."""
    connections = connections or config.postgres_conn_max_open
    idle = idle_connections(config.postgres_conn_max_idle)
    async with open_database(
        database_url,
        pool_size=connections,
        idle=None if idle is None else min(process.share(idle), connections),
        now=clock.monotonic,
    ) as database:
        await wait_for_database(database)
        if migrates:
            await migrate(database)
            await warn_of_connection_limits(database, connections + 1)  # one listens
        if isinstance(clock, DatabaseClock):
            await clock.follow(database)
        async with _serving(config, database, listeners, provisioner_factory, clock, process, application) as server:
            yield server


@contextlib.asynccontextmanager
async def _serving(
    config: ServerConfig,
    database: Database,
    listeners: list[tuple[str, Listener]],
    provisioner_factory: ProvisionerFactory | None,
    clock: Clock,
    process: ThisProcess,
    application: Application | None,
) -> AsyncIterator[RunningServer]:
    urls = tuple(url for url, _ in listeners)
    in_order = trio.Event()
    with _stops_without_database(in_order), single_failure():
        async with trio.open_nursery() as nursery:
            context = await new_context(config, database, nursery, clock, urls[0], process)
            start_services(context.services, nursery)
            for run_part in filter(partial(_is_run_here, process), PARTS):
                if run_part in BINDING_PARTS and process.ports_free is not None and not process.ports_free.is_set():
                    nursery.start_soon(_run_when_ports_are_free, run_part, context)
                else:
                    await nursery.start(run_part, context)
            server = _http_server(context, application)
            accepting = [listener for _, listener in listeners] if process.has("http") else []
            await nursery.start(server.serve, accepting, context.stopping)
            await nursery.start(siblings.run, context, server)
            if oidc.enabled(context) and process.has("http"):
                nursery.start_soon(context.services.api.oidc.report_at_start)
            for run_loop in filter(partial(_is_run_here, process), LOOPS):
                nursery.start_soon(run_loop, context)
            daemons_left = process.idle
            if provisioner_factory is not None and config.provisioner_daemons > 0 and process.has("daemons"):
                nursery.start_soon(_run_daemons, provisioner_factory, context, daemons_left)
                nursery.start_soon(context.services.api.sandbox.warm)
            else:
                daemons_left.set()
            try:
                yield RunningServer(urls[0], context.access_url, urls, context)
                in_order.set()
            finally:
                context.stopping.set()
                with trio.CancelScope(shield=True):
                    await server.drained()
                    with trio.move_on_after(ITEM_TIMEOUT):
                        await context.services.deferred_work.wait_until_done()
                    with trio.move_on_after(DRAIN_TIME):
                        await daemons_left.wait()
                nursery.cancel_scope.cancel()


async def _run_when_ports_are_free(run_part: Callable[[Context], Awaitable[None]], context: Context) -> None:
    await context.process.wait_ports_free()
    await run_part(context)


def _is_run_here(process: ThisProcess, run: Callable[[Context], Awaitable[None]]) -> bool:
    duty = DUTY_OF.get(run)
    return duty is None or process.has(duty)


@contextlib.contextmanager
def _stops_without_database(in_order: trio.Event) -> Iterator[None]:
    """Let a stopping server end without its database: none of its last writes is essential."""
    try:
        yield
    except DatabaseAwayError as error:
        if not in_order.is_set():
            raise
        _log.warn("the server stopped while its database was unavailable", error=error.reason)


async def _run_daemons(factory: ProvisionerFactory, context: Context, left: trio.Event) -> None:
    try:
        await factory(context)
    finally:
        left.set()


async def new_context(
    config: ServerConfig,
    database: Database,
    nursery: trio.Nursery,
    clock: Clock,
    listener_url: str,
    process: ThisProcess | None = None,
) -> Context:
    """Return the context of one server; creates the deployment id on the first start."""
    deployment_id = await database.run(site_settings.ensure_deployment, clock.now())
    context = Context(
        config=config,
        db=database,
        nursery=nursery,
        access_url=(config.access_url or _reachable_url(listener_url)).rstrip("/"),
        deployment_id=deployment_id,
        clock=clock,
        process=process or ThisProcess(),
    )
    context.services = build_services(context)
    context.webpush_public_key = await vapid_keys.public_key(context)
    return context


def _reachable_url(listener_url: str) -> str:
    """Return a URL with localhost for a listener on all addresses: browsers cannot open http://0.0.0.0."""
    parsed = urlparse(listener_url)
    if parsed.hostname in {"0.0.0.0", "::"}:
        return f"{parsed.scheme}://localhost:{parsed.port}"
    return listener_url


def describe_api() -> Document:
    """Return the OpenAPI document of this program, without a server: from the declarations of its routes."""
    from coder.coderd.http.server.openapi.document import build_document

    return build_document(make_application(_context_of_nothing(ServerConfig()), BLUEPRINTS), _endpoints().endpoints)


def prepare_application(config: ServerConfig) -> Application:
    """Return the application of a server with these settings, without a server: a process that forks shares its
    memory."""
    application = make_application(_context_of_nothing(config), BLUEPRINTS, _endpoints().endpoints)
    application.url_map.update()
    return application


def _context_of_nothing(config: ServerConfig) -> Context:
    # Handlers are inspected, never run.
    database, nursery = cast("Database", None), cast("trio.Nursery", None)
    context = Context(config, database, nursery, "http://localhost:3000", UUID(int=0))
    context.services = build_services(context)
    return context


def _endpoints() -> EndpointTable:
    table = EndpointTable()
    for module in ENDPOINTS:
        module.register(table)
    return table


def _http_server(context: Context, application: Application | None = None) -> HttpServer:
    table = _endpoints()
    trusted = TrustedProxies(context.config)

    apps = AppProxy(LocalAppAuthorizer(context))
    metrics = context.services.metrics
    limits = context.services.rate_limits
    limits.shared = context.process.counts

    async def open_endpoint(
        head: h11.Request, remote_ip: str, secure: bool, stream: trio.abc.Stream, trailing: bytes
    ) -> bytes | None:
        request = upgrade_request(head, remote_ip, secure)
        request = replace(request, remote_ip=trusted.address(remote_ip, list(head.headers)))
        if apps.takes(head):
            headers = response_headers()
            return await apps.serve(head, stream, trailing, remote_ip=request.remote_ip, secure=secure, ours=headers)
        both_ways = cast("trio.abc.HalfCloseableStream", stream)  # as the stream of TLS is used, too
        match = table.find(request.path)
        if match is None:  # the server matched the same table a moment ago
            raise LookupError(request.path)
        endpoint, params = match
        with metrics.links.counted(request.method, endpoint.pattern) as on_answer:
            if is_carried(request):
                carried = CarriedUpgrade(context, request, params, both_ways, response_headers())
                carried.on_answer = lambda status: on_answer(UPGRADED if status == 200 else status)
                draw_on(limits, endpoint, carried)
                try:
                    await serve_endpoint(context, endpoint, carried, stream, envelope_of, coordination.sign_in)
                finally:
                    await carried.end()
                return None
            upgrade = Upgrade(request, params, both_ways, trailing, response_headers())
            upgrade.on_answer = on_answer
            draw_on(limits, endpoint, upgrade)
            del head, request, match, params  # a link may be open for months
            await serve_endpoint(context, endpoint, upgrade, stream, envelope_of, coordination.sign_in)
        return None

    # An address with too many parameters is refused like any other request (middleware.py).
    def is_exchange(head: h11.Request) -> bool:
        return not has_too_many(head.target) and apps.takes(head)

    def is_upgrade(head: h11.Request) -> bool:
        return not has_too_many(head.target) and (apps.takes(head) or table.find(path_of(head)) is not None)

    return HttpServer(
        build_application(context, BLUEPRINTS, table.endpoints, application),
        is_upgrade,
        open_endpoint,
        prefixed_cookies=context.config.host_prefix_cookie,
        proxies=trusted,
        find_other=other_finder(context.process),
        is_exchange=is_exchange,
        processes=context.process.count,
        overload=context.process.overload,
    )


async def _wait_for_signal(announce: Callable[[str], None]) -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for number in signals:
            announce(f"{signal.Signals(number).name} received, shutting down")
            return
