"""Network checks: latencies to relays, our external addresses, changes of either.

Lives here: when to measure and how to report. `core/paths/netcheck.py` interprets the results.
Obeys docs/protocol/stun.md.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping
from random import uniform

import trio

from coder.mesh.core.errors import WireError
from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.paths.derpmap import DerpMap, DerpRegion
from coder.mesh.core.paths.netcheck import (
    ENDPOINTS_FRESH,
    FULL_REPORT_INTERVAL,
    RESTUN_INTERVAL,
    HomeChooser,
    Mappings,
    own_endpoints,
)
from coder.mesh.drivers.interfaces import Network, current_network, wait_network_changed
from coder.mesh.drivers.portmap import PortMapper
from coder.mesh.drivers.region import first_to_answer
from coder.mesh.drivers.stun import StunRound
from coder.mesh.drivers.transport import LatencyProbe

PROBE_TIMEOUT = 5.0
MAX_PROBES = 64
"""Ours: regions measured at a time. Each takes a descriptor, and the map comes from a server."""
CLOCK_TICK = 5.0
MIN_SLEEP = 20.0
"""Seconds by which the boot clock must be ahead of ours to mean sleep, not a busy machine."""
FIRST_ANSWER_WAIT = 0.5
"""Ours: a peer that waits for our endpoints gets the local ones after this time, the rest when they are known."""
NO_STUN_FRESH = 3600.0
"""Seconds for which endpoints are fresh without STUN servers: they are the interfaces' addresses, whose changes the
system reports."""


def elapsed() -> float:
    """Return seconds on a clock that includes sleep of the machine; only differences are meaningful.

    Linux has one that cannot be set. Elsewhere it is wall time, which a user may set: then there is one needless check.
    """
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    return time.time() if boottime is None else time.clock_gettime(boottime)


class Netcheck:
    """Maintains the home region and our own endpoints. Read `home`, `latencies` and `endpoints`."""

    def __init__(
        self,
        derp_map: DerpMap,
        probe: LatencyProbe | None,
        send: Callable[[bytes, Address], object],
        ports: Callable[[], tuple[int, int]],
        *,
        direct: bool,
        seed: int,
        is_active: Callable[[], bool],
        on_home: Callable[[int], None],
        on_endpoints: Callable[[list[Address], float], None],
        on_rebind: Callable[[float], None],
    ) -> None:
        self.derp_map = derp_map
        self.mappings = Mappings()
        self.endpoints: list[Address] = []
        self._chooser = HomeChooser()
        self._probe = probe
        self._send = send
        self._ports = ports
        self._seed = seed
        self._is_active = is_active
        self._on_home = on_home
        self._on_endpoints = on_endpoints
        self._on_rebind = on_rebind
        self._network = current_network() if direct else None
        self.mapper = PortMapper(self._publish)
        """Maps our port on the router, if the router translates our address."""
        self._round: StunRound | None = None
        self._measure_now = trio.Event()
        self._ask_now = trio.Event()

    @property
    def home(self) -> int:
        """The home region, 0 while unknown."""
        return self._chooser.home

    @property
    def latencies(self) -> Mapping[int, float]:
        """Seconds per region, as last measured."""
        return self._chooser.latencies()

    def set_map(self, derp_map: DerpMap) -> None:
        """Measure the regions of another map."""
        self.derp_map = derp_map
        self._choose_without_measuring()
        self._measure_now.set()
        self._ask_now.set()

    def refresh_endpoints(self) -> None:
        """Ask the STUN servers again, now."""
        self._ask_now.set()

    def on_stun_untrusted(self, datagram: bytes) -> None:
        """Process a STUN message."""
        if self._round is None:
            return
        try:
            answer = self._round.on_answer_untrusted(datagram)
        except WireError:
            return
        if answer is not None and self.mappings.on_answer(*answer, trio.current_time()):
            self._publish()  # peers may be waiting for it, and other servers need not answer at all

    async def run(self) -> None:
        """Measure for ever."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_home)
            nursery.start_soon(self._watch_clock)
            if self._network is not None:
                self._publish()
                nursery.start_soon(self.mapper.run)
                nursery.start_soon(self._keep_endpoints)
                nursery.start_soon(self._watch_network, self._network)

    # -- home -------------------------------------------------------------------------------------------------------
    def _choose_without_measuring(self) -> None:
        """Set or clear the home without a measurement: a single relay needs none, and a home must be on the map."""
        regions = [region.region_id for region in self.derp_map.relay_regions()]
        if len(regions) == 1 or self.home not in regions or self._probe is None:
            self._report(self.latencies if self.home in regions else {})

    def _report(self, latencies: Mapping[int, float]) -> None:
        home = self._chooser.on_report(self.derp_map, latencies, trio.current_time(), self._seed)
        self._on_home(home)

    async def _keep_home(self) -> None:
        # Measurements are not awaited: a relay becomes home immediately, and stays it unless another is clearly nearer.
        self._report({})
        while True:
            self._measure_now = trio.Event()
            if self._probe is not None:
                self._report(await self._measure(self._probe))
            elif not self.home:
                self._report({})
            with trio.move_on_after(FULL_REPORT_INTERVAL):
                await self._measure_now.wait()

    async def _measure(self, probe: LatencyProbe) -> dict[int, float]:
        latencies: dict[int, float] = {}
        slots = trio.Semaphore(MAX_PROBES)

        async def measure(region: DerpRegion) -> None:
            try:
                nodes = region.relay_nodes()
                async with slots:
                    latencies[region.region_id] = await first_to_answer(nodes, lambda node: probe(region, node))
            except Exception:  # the probe is injected, and a region that does not answer is simply not near
                return

        with trio.move_on_after(PROBE_TIMEOUT):
            async with trio.open_nursery() as nursery:
                for region in self.derp_map.relay_regions():
                    nursery.start_soon(measure, region)
        return latencies

    # -- endpoints --------------------------------------------------------------------------------------------------
    async def _keep_endpoints(self) -> None:
        while True:
            self._ask_now = trio.Event()
            await self._ask_servers()
            with trio.move_on_after(uniform(*RESTUN_INTERVAL)):
                await self._ask_now.wait()
                continue
            while not self._is_active() and not self._ask_now.is_set():
                with trio.move_on_after(RESTUN_INTERVAL[0]):
                    await self._ask_now.wait()

    async def _ask_servers(self) -> None:
        servers = self.derp_map.stun_servers()
        if not servers:
            self._publish()
            return
        self.mappings.start_round()
        round_ = self._round = StunRound(os.urandom, self._send)
        port4, port6 = self._ports()
        families = [family for family, port in ((socket.AF_INET, port4), (socket.AF_INET6, port6)) if port]
        async with trio.open_nursery() as nursery:

            async def publish_early() -> None:
                await trio.sleep(FIRST_ANSWER_WAIT)
                self._publish()

            nursery.start_soon(publish_early)
            await round_.ask(servers, families)
            nursery.cancel_scope.cancel()
        self.mapper.look(port4, self.mappings.observed())
        self._publish()

    def _publish(self) -> None:
        observed, mapped = self.mappings.observed(), self.mapper.external
        local = self._network.addresses if self._network is not None else ()
        self.endpoints = own_endpoints(observed, local, *self._ports(), mapped=mapped)
        fresh_for = ENDPOINTS_FRESH if self.derp_map.stun_servers() else NO_STUN_FRESH
        self._on_endpoints(self.endpoints, fresh_for)

    async def _watch_clock(self) -> None:
        """Detect sleep: wall time advanced and our clock did not, so all knowledge of the network is outdated."""
        offset = elapsed() - trio.current_time()
        while True:
            await trio.sleep(CLOCK_TICK)
            now = elapsed() - trio.current_time()
            if now - offset > MIN_SLEEP:
                self._on_rebind(now - offset)
                self._measure_now.set()
                self._ask_now.set()
            offset = now

    async def _watch_network(self, before: Network) -> None:
        while True:
            now = self._network = await wait_network_changed(before)
            self.mappings.start_round()
            # A new address breaks nothing. A removed one may be the source of every path, and with another default
            # route routers translate us differently.
            if not set(before.addresses) <= set(now.addresses) or not set(before.sources) <= set(now.sources):
                self._on_rebind(0.0)
            self._publish()
            self._measure_now.set()
            self._ask_now.set()
            before = now
