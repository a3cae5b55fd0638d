"""Composition root of a workspace proxy: opens all parts under one nursery and closes them in reverse order.

Order: listeners, the HTTP server (which answers health checks immediately), registration, and after its first answer
the relay and the overlay node. Nothing is stored on disk.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace

import h11
import trio

from coder.api.proxies.proxies import RegisterWorkspaceProxyResponse
from coder.appproxy.apps.app_proxy import AppProxy
from coder.appproxy.apps.authorizer import AppProxySettings
from coder.appproxy.apps.upstream import keep_tidy
from coder.appproxy.http.client_address import TrustedProxies
from coder.appproxy.http.errors import envelope_of
from coder.appproxy.http.listener import HttpServer
from coder.appproxy.http.listening_sockets import open_listeners
from coder.appproxy.http.rate_limits import RateLimits
from coder.appproxy.http.request_bounds import has_too_many
from coder.appproxy.metrics.metrics_listener import Exposition, open_metrics_listeners, serve_metrics
from coder.appproxy.settings import RateLimitSettings
from coder.appproxy.upgrades.raw_links import (
    EndpointTable,
    Upgrade,
    draw_on,
    path_of,
    serve_endpoint,
    upgrade_request,
)
from coder.base import garbage
from coder.base.clock import Clock, SystemClock
from coder.base.exception_groups import single_failure
from coder.domain.access.route_scopes import PUBLIC
from coder.mesh.keys import PrivateKey
from coder.mesh.relay import DerpServer
from coder.net.masking import masked
from coder.tailnet.relay_mesh import RelayMesh
from coder.wsproxy.authorizer import RemoteAppAuthorizer
from coder.wsproxy.config import ProxyConfig
from coder.wsproxy.endpoints import handlers
from coder.wsproxy.keys import KeyRing
from coder.wsproxy.metrics import BY_HOST, BY_PATH
from coder.wsproxy.overlay import run_node
from coder.wsproxy.primary import Primary
from coder.wsproxy.registration import Registration
from coder.wsproxy.site import ProxySite, response_headers
from coder.wsproxy.world import ProxyWorld

DEREGISTER_SECONDS, AWAY_SECONDS = 0.6, 0.3
"""Seconds to deregister and to report the last usage; and when the server did not answer the request before. A service
manager waits for the end, so both together stay below a second."""

SWEEP_CHECK = 60.0
"""Seconds between two looks whether old garbage has to be collected."""


@dataclass(frozen=True, slots=True)
class RunningProxy:
    """Running proxy, for its starter."""

    urls: tuple[str, ...]
    "URLs of its listeners."
    world: ProxyWorld
    authorizer: RemoteAppAuthorizer
    metrics_port: int = 0


async def run_proxy(config: ProxyConfig, *, announce: Callable[[str], None] = print) -> None:
    """Run the proxy until SIGINT or SIGTERM. Raise CoderError if its server rejects it for good."""
    async with open_proxy(config) as proxy:
        for url in proxy.urls:
            announce(f"Started HTTP listener at {url}")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_tell_when_registered, proxy.world, announce)
            garbage.settle()
            nursery.start_soon(_keep_swept)
            with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                number = await anext(aiter(signals))
                announce(f"{signal.Signals(number).name} received, shutting down")
            nursery.cancel_scope.cancel()


async def _keep_swept() -> None:
    while True:
        await trio.sleep(SWEEP_CHECK)
        garbage.sweep_if_due()


async def _tell_when_registered(world: ProxyWorld, announce: Callable[[str], None]) -> None:
    await world.registration.registered.wait()
    announce(f"\nRegistered with {masked(world.primary.url)}, serving its workspaces at {world.access_url}")


@contextlib.asynccontextmanager
async def open_proxy(config: ProxyConfig, *, clock: Clock | None = None) -> AsyncIterator[RunningProxy]:
    """Run a proxy for the duration of the block. Raise the errors of `Registration.keep` at any time."""
    async with Primary(config.primary_access_url, config.token) as primary:
        listeners = await open_listeners(config.server)
        config = with_address(config, [url for url, _ in listeners])
        world = _new_world(config, primary, clock or SystemClock())
        authorizer = RemoteAppAuthorizer(world)
        http = _http_server(world, authorizer)
        shared = config.server
        scrapes = await open_metrics_listeners(shared.prometheus_address) if shared.prometheus_enable else []
        with single_failure():
            async with trio.open_nursery() as nursery:
                if scrapes:
                    nursery.start_soon(serve_metrics, scrapes, _exposition(world, authorizer), world.stopping)
                await nursery.start(http.serve, [listener for _, listener in listeners], world.stopping)
                nursery.start_soon(_keep_registered, world, nursery)
                if not config.derp_only:
                    nursery.start_soon(world.keys.keep_fresh)
                    nursery.start_soon(keep_tidy, world.pool, world.stopping)
                    nursery.start_soon(authorizer.keep_checking)
                    nursery.start_soon(authorizer.keep_reporting)
                try:
                    yield RunningProxy(tuple(url for url, _ in listeners), world, authorizer, _port(scrapes))
                finally:
                    await _close(world, authorizer, http)
                    nursery.cancel_scope.cancel()


def _port(listeners: Sequence[trio.SocketListener]) -> int:
    return int(listeners[0].socket.getsockname()[1]) if listeners else 0


def _exposition(world: ProxyWorld, authorizer: RemoteAppAuthorizer) -> Exposition:
    async def exposition() -> str:
        await trio.lowlevel.checkpoint()
        return world.metrics.exposition(
            sessions=authorizer.sessions,
            streams=authorizer.open_streams,
            is_registered=not world.registration.unhealthy_reason(),
            relay=world.relay,
        )

    return exposition


def with_address(config: ProxyConfig, listening: Sequence[str]) -> ProxyConfig:
    """Return the configuration with an access URL; without the option, it is the listener's."""
    if config.server.access_url or not listening:
        return config
    return replace(config, server=replace(config.server, access_url=listening[0]))


def _new_world(config: ProxyConfig, primary: Primary, clock: Clock) -> ProxyWorld:
    own_url = config.server.access_url.rstrip("/")
    return ProxyWorld(
        config=config,
        primary=primary,
        registration=Registration(primary, config),
        keys=KeyRing(primary.crypto_keys, clock.now),
        settings=AppProxySettings.of(config.server, dashboard_url=primary.url, own_url=own_url),
        clock=clock,
        limits=RateLimits(_LimitedProxy(config.server, clock)),
    )


async def _close(world: ProxyWorld, authorizer: RemoteAppAuthorizer, http: HttpServer) -> None:
    world.stopping.set()
    limit = AWAY_SECONDS if world.registration.problem else DEREGISTER_SECONDS
    with trio.CancelScope(shield=True):
        with trio.move_on_after(limit) as waiting:
            await world.registration.deregister_proxy()
        if waiting.cancelled_caught:
            limit = AWAY_SECONDS
        if world.relay is not None:
            world.relay.disconnect_all()
        await http.drained()
        with trio.move_on_after(limit):
            await authorizer.report()


async def _keep_registered(world: ProxyWorld, nursery: trio.Nursery) -> None:
    mesh = RelayMesh()

    def on_answer(registration: RegisterWorkspaceProxyResponse) -> None:
        if not world.registration.registered.is_set():
            if world.config.server.derp_server_enable:
                rate = max(0, world.config.server.derp_server_bytes_per_second)
                world.relay = DerpServer(
                    PrivateKey.generate(os.urandom), mesh_key=registration.derp_mesh_key, rate=rate
                )
            if not world.config.derp_only:
                nursery.start_soon(run_node, world, registration)
        if world.relay is not None and registration.derp_mesh_key:
            addresses = {
                sibling_replica.id: sibling_replica.relay_address
                for sibling_replica in registration.sibling_replicas
                if sibling_replica.relay_address
            }
            mesh.set_others(world.relay, registration.derp_mesh_key, addresses, nursery)

    await world.registration.keep(on_answer)


@dataclass(frozen=True, slots=True)
class _LimitedProxy:
    config: RateLimitSettings
    clock: Clock


def _http_server(world: ProxyWorld, authorizer: RemoteAppAuthorizer) -> HttpServer:
    table = EndpointTable()
    for pattern, handler, budget in handlers(world, authorizer):
        table.add(pattern, handler, scope=PUBLIC, budgets=(budget,))  # tickets are verified inside
    proxies = TrustedProxies(world.config.server)
    apps = None if world.config.derp_only else AppProxy(authorizer)
    if apps is not None:
        apps.on_served = lambda proxied, by_host: world.metrics.count(
            proxied.status, proxied.method, BY_HOST if by_host else BY_PATH
        )

    def takes(head: h11.Request) -> bool:
        return apps is not None and apps.takes(head)

    async def open_link(
        head: h11.Request, remote_ip: str, secure: bool, stream: trio.abc.HalfCloseableStream, trailing: bytes
    ) -> bytes | None:
        request = upgrade_request(head, remote_ip, secure)
        request = replace(request, remote_ip=proxies.address(remote_ip, list(head.headers)))
        own_headers = response_headers(world)
        if apps is not None and takes(head):
            return await apps.serve(
                head, stream, trailing, remote_ip=request.remote_ip, secure=secure, ours=own_headers
            )
        route = table.find(request.path)
        if route is None:  # the HTTP server has just checked the same table
            raise LookupError(request.path)
        endpoint, params = route
        upgrade = Upgrade(request, params, stream, trailing, own_headers)
        with world.metrics.links.counted(request.method, endpoint.pattern) as upgrade.on_answer:
            draw_on(world.limits, endpoint, upgrade)
            del head, request, route, params  # a link may be open for months
            await serve_endpoint(world, endpoint, upgrade, stream, envelope_of)
        return None

    # With too many parameters it belongs to no handler: `ProxySite` rejects it.
    def is_exchange(head: h11.Request) -> bool:
        return not has_too_many(head.target) and takes(head)

    def is_upgrade(head: h11.Request) -> bool:
        return not has_too_many(head.target) and (takes(head) or table.find(path_of(head)) is not None)

    prefixed = world.config.server.host_prefix_cookie
    return HttpServer(
        ProxySite(world),
        is_upgrade,
        open_link,
        prefixed_cookies=prefixed,
        proxies=proxies,
        is_exchange=is_exchange,
        overload=world.overload,
    )
