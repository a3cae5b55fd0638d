"""Part `agents`: how many simulated agents two cores carry, for how long, and how they come back.

Agents are added until server and Postgres would use 1.2 cores, or the simulator 0.8. Then they stay, while a user lists
workspaces. At the end the server is killed and started again, and the database fails over to a standby.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import trio
from sqlalchemy import func, insert, select

from coder.coderd.store.engine.database import Tx, open_database
from coder.coderd.store.tables.agents import workspace_agent_metadata, workspace_agents
from tests.bench._full import Emit, Options
from tests.bench._full_place import Pair, p99, postgres_pair, pss, server_processes, spent, tree
from tests.bench._population import populate
from tests.bench._requests import cpu
from tests.bench._workspace import program
from tests.bench.api import TEMPLATES, USERS, Scene, _first_user, _organization, _owner, _server
from tests.bench.first import ROOT, Place, end, note

TARGET = 10_000
RAMP = 20
CORES, SIMULATOR_CORES = 1.2, 0.8
MEMORY = 1536
FIRST, STEPS = 400, 4
"""Agents of the first step, and the most steps."""
SETTLE, LOOK = 15.0, 30.0
METADATA_SECONDS = 60
"""Interval of the one metadata item that each agent has."""
PROBE = 0.5
OWN_FILES = 64
"""Files of the simulator itself."""
BACK_LIMIT = 180.0


def run(options: Options, folder: Path, emit: Emit) -> None:
    """Emit all rows."""
    trio.run(_run, options, folder, emit)


@dataclass
class Fleet:
    """The simulator, and what it said last."""

    process: subprocess.Popen[bytes]
    log: Path
    wanted: int = 0

    def latest(self) -> dict[str, Any]:
        """Return its figures of the last second."""
        lines = self.log.read_bytes()[-4096:].split(b"\n")
        if len(lines) < 2 or not lines[-2].startswith(b"{"):
            return {"connected": 0, "lost": 0, "failed": 0, "cpu": 0.0, "errors": {}}
        found: dict[str, Any] = json.loads(lines[-2])
        return found

    async def grow(self, count: int) -> bool:
        """Connect this many agents in all; False if they are not connected a minute after the last has begun."""
        assert self.process.stdin is not None
        note(f"{count} agents …")
        seconds = (count - self.wanted) / RAMP + 60
        self.wanted = count
        self.process.stdin.write(b"%d\n" % count)
        self.process.stdin.flush()
        return await self.wait(lambda connected: connected >= count, seconds)

    async def wait(self, check: Any, seconds: float) -> bool:
        with trio.move_on_after(seconds):
            while not check(self.latest()["connected"]):
                if self.process.poll() is not None:
                    raise ChildProcessError("the simulator has ended")
                await trio.sleep(0.25)
            return True
        return False


@dataclass
class Load:
    """Processor time of a while."""

    agents: int
    seconds: float
    server: float
    database: float
    simulator: float

    @property
    def cores(self) -> float:
        return (self.server + self.database) / 1000 / self.seconds

    @property
    def simulator_cores(self) -> float:
        return self.simulator / 1000 / self.seconds

    def per_agent_minute(self, milliseconds: float) -> float:
        return milliseconds / (self.agents * self.seconds / 60)


@dataclass
class World:
    """What is measured."""

    scene: Scene
    fleet: Fleet
    pair: Pair
    loads: list[Load] = field(default_factory=list)

    def spent(self) -> tuple[float, float, float]:
        scene = self.scene
        database = spent(tree(scene.postgres))
        return spent(server_processes(scene.server)), database, cpu([self.fleet.process.pid])

    def memory(self) -> float:
        return pss([*server_processes(self.scene.server), *tree(self.scene.postgres)])

    async def load(self, seconds: float) -> Load:
        """Return what everything uses for so many seconds."""
        before, began = self.spent(), time.monotonic()
        await trio.sleep(seconds)
        took = time.monotonic() - began
        used = [after - first for after, first in zip(self.spent(), before, strict=True)]
        return Load(self.fleet.latest()["connected"], took, *used)


async def _run(options: Options, folder: Path, emit: Emit) -> None:
    place = Place(program(folder), folder)
    place.env["CODER_PROCESSES"] = str(options.processes)
    most = _with_files(options.agents or options.count(TARGET))
    async with postgres_pair(folder) as pair, open_database(pair.url) as db, contextlib.AsyncExitStack() as stack:
        process = await stack.enter_async_context(_server(place, [str(place.binary)], pair.url))
        scene = Scene(place, process.pid, pair.running.pid, db, pair.url, folder / "primary/postgres.log")
        scene.token = await _first_user(scene)
        note(f"populating {most} workspaces …")
        began = time.monotonic()
        scene.made = await populate(
            db,
            await _organization(scene),
            await _owner(scene),
            workspace_count=most,
            user_count=USERS,
            template_count=TEMPLATES,
        )
        await db.run(_add_metadata, scene.population.agent_ids)
        tokens = folder / "tokens"
        tokens.write_text("\n".join(await db.read(_tokens, scene.population.agent_ids)))
        note(f"populated in {time.monotonic() - began:.0f} s")
        emit("GET workspaces without agents: p99", p99(await _probe(scene, 10)), "ms", 100)
        fleet = await stack.enter_async_context(_simulator(place, tokens))
        world = World(scene, fleet, pair)
        empty = world.memory()
        emit("PSS of server and Postgres without agents", empty, "MiB", None)
        count = await _find_count(world, options, emit, most)
        await _stay(world, options, emit, count, empty)
        await _kill(world, stack, emit, count)
        await _fail_over(world, emit, count)
        errors = fleet.latest()["errors"]
        note(f"errors of the simulator: {errors}")


def _with_files(count: int) -> int:
    """Return the number of agents for which the simulator has files, two each: the others would never connect."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    room = count if hard == resource.RLIM_INFINITY else (hard - OWN_FILES) // 2
    if room < count:
        note(f"{room} agents instead of {count}: the simulator may open {hard} files")
    return min(room, count)


async def _find_count(world: World, options: Options, emit: Emit, most: int) -> int:
    """Connect as many agents as hold, estimated from what fewer cost; their number."""
    arrival = [0.0, 0.0]
    steps = [most] if options.agents else [options.count(FIRST, 20)]
    while steps:
        before, count = world.spent(), steps.pop()
        known = world.fleet.wanted
        if not await world.fleet.grow(count):
            note(f"only {world.fleet.latest()['connected']} are connected")
            break
        arrival = [(after - first) / (count - known) for after, first in zip(world.spent(), before, strict=True)]
        await trio.sleep(SETTLE)
        load = await world.load(LOOK)
        world.loads.append(load)
        note(f"{count} agents: {load.cores:.2f} cores, simulator {load.simulator_cores:.2f}")
        if not options.agents and len(world.loads) < STEPS and (further := _further(world.loads, most)) > count * 1.05:
            steps.append(further)
    if not options.agents:
        holding = [load.agents for load in world.loads if _holds(load)]
        name = "agents that hold: server and Postgres <= 1.2 cores, simulator <= 0.8"
        emit(name, max(holding, default=0), "agents", options.count(TARGET), better="higher")
    if world.loads:
        emit(f"connecting at {RAMP}/s, an agent, the others' reports included: server CPU", arrival[0], "ms", None)
        emit(f"connecting at {RAMP}/s, an agent, the others' reports included: Postgres CPU", arrival[1], "ms", None)
    connected = int(world.fleet.latest()["connected"])
    if connected < world.fleet.wanted:
        # What is still connecting would count as the load of those that are.
        await world.fleet.wait(lambda found: found >= world.fleet.wanted, BACK_LIMIT)
        connected = int(world.fleet.latest()["connected"])
    return connected


def _holds(load: Load) -> bool:
    return load.cores <= CORES and load.simulator_cores <= SIMULATOR_CORES


def _further(loads: Sequence[Load], most: int) -> int:
    """Return the number of agents to go to: 0.95 of what the limits allow, in the first step 0.6."""
    last = loads[-1]
    if not _holds(last):
        return 0
    share = 0.6 if len(loads) == 1 else 0.95
    room, simulator_room = CORES / max(last.cores, 0.001), SIMULATOR_CORES / max(last.simulator_cores, 0.001)
    if len(loads) > 1:  # what is there without agents counts once
        first = loads[-2]
        slope = max((last.cores - first.cores) / (last.agents - first.agents), 1e-6)
        room = 1 + (CORES - last.cores) / slope / last.agents
    return int(min(last.agents * min(room, simulator_room) * share, most))


async def _stay(world: World, options: Options, emit: Emit, count: int, empty: float) -> None:
    """Keep the agents connected, while a user lists workspaces."""
    seconds = options.seconds(options.steady)
    if not seconds:
        return
    note(f"steady ({seconds / 60:.1f} minutes) …")
    start, first, samples = world.memory(), world.fleet.latest(), []
    halfway: dict[str, Any] = {}
    times: list[float] = []
    loads = []
    async with trio.open_nursery() as nursery:

        async def ask() -> None:
            times.extend(await _probe(world.scene, seconds))

        nursery.start_soon(ask)
        pieces = max(round(seconds / 60), 2)
        for piece in range(pieces):
            loads.append(await world.load(seconds / pieces))
            samples.append(world.memory())
            if piece == pieces // 2 - 1:
                halfway = world.fleet.latest()
    last = world.fleet.latest()
    whole = Load(
        count, *(sum(getattr(load, name) for load in loads) for name in ("seconds", "server", "database", "simulator"))
    )
    name = f"{count} agents for {seconds / 60:.0f} minutes"
    emit(f"{name}: server and Postgres", whole.cores, "cores", CORES)
    emit(f"{name}: simulator", whole.simulator_cores, "cores", SIMULATOR_CORES)
    emit(f"{name}: the busiest minute of server and Postgres", max(load.cores for load in loads), "cores", None)
    for who in ("server", "database", "simulator"):
        shown = {"database": "Postgres"}.get(who, who)
        emit(f"an agent-minute: {shown} CPU", whole.per_agent_minute(getattr(whole, who)), "ms", None)
    emit(f"{name}: agents connected at the end", last["connected"], "agents", count, better="higher")
    emit(f"{name}: connections lost", last["lost"] - first["lost"], "", 0)
    emit(f"{name}: failed calls", last["failed"] - first["failed"], "", 0)
    grown = (last["failed"] - halfway["failed"]) - (halfway["failed"] - first["failed"])
    emit(f"{name}: failed calls, second half more than first", grown, "", 0)
    emit(f"{name}: PSS of server and Postgres at the end", samples[-1], "MiB", MEMORY)
    each = (samples[-1] - empty) / max(count, 1)
    emit(f"PSS for {TARGET} agents, extrapolated from {count}", empty + each * TARGET, "MiB", MEMORY)
    early, late = statistics.median(samples[: pieces // 2]), statistics.median(samples[pieces // 2 :])
    emit(f"{name}: growth of PSS, second half over first", late / early, "x", 1.05)
    emit(f"{name}: growth of PSS since the start", samples[-1] - start, "MiB", None)
    emit(f"{name}: GET workspaces, median", statistics.median(times), "ms", None)
    emit(f"{name}: GET workspaces, p99", p99(times), "ms", 300)


async def _probe(scene: Scene, seconds: float) -> list[float]:
    """Milliseconds of the list of workspaces, asked for twice a second. A failed request counts as a minute."""
    times: list[float] = []
    until = trio.current_time() + seconds
    while trio.current_time() < until:
        began = time.perf_counter()
        try:
            with trio.fail_after(60):
                async with scene.client() as client:
                    await client.call("GET", "/api/v2/workspaces?limit=25")
            times.append((time.perf_counter() - began) * 1000)
        except (OSError, RuntimeError, trio.TooSlowError, trio.BrokenResourceError) as error:
            note(f"GET workspaces failed: {error!r}")
            times.append(60_000.0)
        await trio.sleep(PROBE)
    return times


async def _kill(world: World, stack: contextlib.AsyncExitStack, emit: Emit, count: int) -> None:
    """Kill all processes of the server, start it again, wait until all agents are back."""
    note("kill -9 of the server …")
    scene, began = world.scene, time.monotonic()
    before = world.fleet.latest()
    for pid in server_processes(scene.server):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process = await stack.enter_async_context(_server(scene.place, [str(scene.place.binary)], scene.database))
    scene.server = process.pid
    emit("from kill -9 to the first answer", time.monotonic() - began, "s", None)
    # A simulator that is behind notices later: it has to have lost all connections before they can be back.
    await world.fleet.wait(lambda _: world.fleet.latest()["lost"] - before["lost"] >= before["connected"], BACK_LIMIT)
    is_back = await world.fleet.wait(lambda connected: connected >= count, BACK_LIMIT)
    took = time.monotonic() - began
    latest = world.fleet.latest()["connected"]
    emit(f"{count} agents back after kill -9", took, "s", 60)
    if not is_back:
        emit("agents not back three minutes after kill -9", count - latest, "agents", 0)
    emit(
        "returning, an agent: server CPU, its start included", spent(server_processes(scene.server)) / count, "ms", None
    )


async def _fail_over(world: World, emit: Emit, count: int) -> None:
    """Kill the primary, promote the standby, wait until the server answers and all agents are reported alive."""
    note("a standby …")
    await world.pair.make_standby()
    await trio.sleep(5)
    before = world.fleet.latest()
    note("failover …")
    lost_at, began = datetime.now(UTC), time.monotonic()
    await world.pair.fail_over()
    assert world.pair.following is not None
    world.scene.postgres = world.pair.following.pid
    limit, answered, alive, count_alive = began + BACK_LIMIT, 0.0, 0.0, 0
    while time.monotonic() < limit and not (answered and alive):
        if not answered and await _answers(world.scene):
            answered = time.monotonic() - began
        with contextlib.suppress(Exception):  # whatever the driver says while no database answers
            count_alive = await world.scene.db.read(_alive_since, lost_at)
        if count_alive >= count and world.fleet.latest()["connected"] >= count:
            alive = time.monotonic() - began
        await trio.sleep(0.5)
    given_up = time.monotonic() - began  # the value of what did not come about
    emit("from the failover to the first answer with workspaces", answered or given_up, "s", 30)
    emit(f"from the failover until {count} agents are reported alive again", alive or given_up, "s", 30)
    emit("agents reported alive three minutes after the failover, or when all were", count_alive, "agents", None)
    latest = world.fleet.latest()
    emit("failover: connections of agents lost", latest["lost"] - before["lost"], "", 0)
    emit("failover: failed calls of agents", latest["failed"] - before["failed"], "", None)


async def _answers(scene: Scene) -> bool:
    try:
        with trio.fail_after(2):
            async with scene.client() as client:
                await client.call("GET", "/api/v2/workspaces?limit=25")
    except (OSError, RuntimeError, trio.TooSlowError, trio.BrokenResourceError):
        return False
    return True


async def _alive_since(tx: Tx, moment: datetime) -> int:
    column = workspace_agents.c.last_connected_at
    return int((await tx.execute(select(func.count()).where(column > moment))).scalar_one())


async def _tokens(tx: Tx, agents: Sequence[UUID]) -> list[str]:
    found = []
    for at in range(0, len(agents), 5000):
        query = select(workspace_agents.c.auth_token).where(workspace_agents.c.id.in_(agents[at : at + 5000]))
        found += [str(token) for token in (await tx.execute(query)).scalars()]
    return found


async def _add_metadata(tx: Tx, agents: Sequence[UUID]) -> None:
    row = {"key": "load", "display_name": "Load", "script": "uptime", "timeout_seconds": 5}
    rows = [{"agent_id": agent, "interval_seconds": METADATA_SECONDS, **row} for agent in agents]
    await tx.execute(insert(workspace_agent_metadata), rows)


@asynccontextmanager
async def _simulator(place: Place, tokens: Path) -> AsyncIterator[Fleet]:
    log = place.folder / "simulator.log"
    command = [sys.executable, "-m", "tests.bench._full_simulator", place.url, str(tokens), str(RAMP)]
    with log.open("wb") as out, (place.folder / "simulator.err").open("wb") as errors:
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=out, stderr=errors, env=place.env, start_new_session=True
        )
    try:
        yield Fleet(process, log)
    except BaseException:
        note((place.folder / "simulator.err").read_text(errors="replace")[-2000:])
        raise
    finally:
        end(process)
