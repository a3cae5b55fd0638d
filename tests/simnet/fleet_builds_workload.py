"""What happens to builds and daemons on simulated time, and the claims that must hold (docs/reliability.md)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID

import trio
from sqlalchemy import select, text

from coder.api.base.refusals import Refusal
from coder.coderd.services.provisioning import job_queue
from coder.coderd.services.provisioning.reaping import Attention
from coder.coderd.services.workspaces.builds.build_creation import enqueue_next_build
from coder.coderd.services.workspaces.builds.build_requests import BuildRequest, rules_of
from coder.coderd.store.engine.availability import DatabaseAwayError
from coder.coderd.store.tables.jobs import provisioner_jobs
from coder.domain.access.policy import SYSTEM
from coder.domain.provisioning.jobs import HUNG_AFTER
from tests.kit.agents.scripted_agent import eventually
from tests.kit.provisioners.scripted_provisioner import new_template, working_daemon
from tests.kit.server.server_in_process import running_on
from tests.kit.server.simulated_server import DatabaseServer, DeadError, Ledger, SimulatedDaemon, SimulatedServer

PAUSE = 6.0
"""Mean seconds between two events."""
LONGEST_OUTAGE = 480.0
"""Seconds: longer than the silence after which a job counts as hung."""
SETTLE = HUNG_AFTER.total_seconds() + 900.0
"""Seconds without events before the end is judged: the longest build, and the time until a silent job is ended."""
WORKSPACES, DAEMONS, SERVERS = 6, 3, 2


@dataclass(frozen=True)
class Place:
    """A workspace to build."""

    id: UUID
    owner: UUID


async def furnish(url: str) -> list[Place]:
    """Create the first user, a template and workspaces, with an ordinary server."""
    async with running_on(url) as world:
        await world.first_user()
        async with working_daemon(world):
            template = await new_template(world)
            version = f"/api/v2/templateversions/{template['active_version_id']}"

            async def imported() -> bool:
                return bool((await world.get(version)).json()["job"]["status"] == "succeeded")

            await eventually(imported)
            places = []
            for number in range(WORKSPACES):
                body = {"template_id": template["id"], "name": f"w{number}"}
                made = (await world.post("/api/v2/users/me/workspaces", body)).json()
                places.append(Place(UUID(made["id"]), UUID(made["owner_id"])))
                path = f"/api/v2/workspaces/{made['id']}"

                async def running(path: str = path) -> bool:
                    return bool((await world.get(path)).json()["latest_build"]["status"] == "running")

                await eventually(running)
    return places


class Builds:
    """All of it, for one seed."""

    def __init__(self, seed: int, url: str, places: list[Place], folder: Path, note: Callable[[str], None]) -> None:
        self._chance = random.Random(f"builds {seed}")
        self._note_line = note
        self._places, self._folder = places, folder
        self._database = DatabaseServer(url)
        self._servers = [SimulatedServer(self._database, f"server {number}") for number in range(SERVERS)]
        self._ledger = Ledger(random.Random(f"work {seed}"))
        self._daemons = [
            SimulatedDaemon(f"daemon-{number}", folder, self._servers, self._ledger) for number in range(DAEMONS)
        ]
        self._disturbances = 0
        self.jobs: dict[UUID, str] = {}
        """Acknowledged builds, and their names in the trace."""
        self.counts: Counter[str] = Counter()
        self.broken: list[str] = []
        self.ended_at = 0.0
        job_queue.BACKUP_POLL = 30.0

    async def live(self, seconds: float) -> None:
        """Let things happen for so long, let everything settle, and judge it."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            for server in self._servers:
                nursery.start_soon(self._keep_server, server)
            for daemon in self._daemons:
                nursery.start_soon(daemon.live)
            with trio.move_on_after(seconds):
                await self._let_things_happen()
            self.note("everything settles")
            while self._disturbances:
                await trio.sleep(1)
            await trio.sleep(SETTLE)
            await self._judge()
            nursery.cancel_scope.cancel()
        self.ended_at = trio.current_time()

    def note(self, words: str) -> None:
        self._note_line(f"{trio.current_time():.6f} {words}")

    def claim(self, holds: bool, words: str) -> None:
        if not holds:
            self.broken.append(f"{trio.current_time():.1f} s: {words}")
            self.note(f"BROKEN {words}")

    async def _keep_server(self, server: SimulatedServer) -> None:
        while True:
            await server.live()
            self.note(f"{server.name} has ended")
            await trio.sleep(self._chance.uniform(0.5, 20))

    # ---- events

    async def _let_things_happen(self) -> None:
        events: dict[Callable[[], Awaitable[None]], int] = {
            self._build: 50,
            self._kill_daemon: 5,
            self._cut_daemon: 8,
            self._kill_server: 5,
            self._lose_database: 3,
            self._lose_notices: 5,
            self._set_clock: 2,
        }
        while True:
            await trio.sleep(self._chance.expovariate(1 / PAUSE))
            (happening,) = self._chance.choices(list(events), list(events.values()))
            self.counts["events"] += 1
            await happening()

    def _for_a_while(self, longest: float, end: Callable[[], None]) -> None:
        async def disturb() -> None:
            self._disturbances += 1
            await trio.sleep(self._chance.uniform(0.5, longest))
            end()
            self._disturbances -= 1

        self._nursery.start_soon(disturb)

    async def _build(self) -> None:
        place = self._chance.choice(self._places)
        server = self._chance.choice(self._servers)
        transition: Any = self._chance.choice(("start", "stop"))
        if server.ctx is None:
            return
        ctx, request = server.ctx, BuildRequest(transition, place.owner)
        try:
            queued = await ctx.db.run(enqueue_next_build, SYSTEM, place.id, request, rules_of(ctx), ctx.clock.now())
        except (Refusal, DatabaseAwayError, DeadError) as error:
            self.note(f"a build is refused: {type(error).__name__}")
            return
        self.counts["builds"] += 1
        name = f"build {self.counts['builds']}"
        self.jobs[queued.view.job.id] = name
        self.note(f"{name}: {transition} workspace {self._places.index(place)}")

    async def _kill_daemon(self) -> None:
        daemon = self._chance.choice(self._daemons)
        self.counts["daemons killed"] += 1
        self.note(f"{daemon.name} is killed")
        daemon.kill()

    async def _cut_daemon(self) -> None:
        daemon = self._chance.choice(self._daemons)
        if daemon.is_cut:
            return
        self.counts["connections cut"] += 1
        self.note(f"{daemon.name} is cut off")
        daemon.is_cut = True
        daemon.cut()
        self._for_a_while(LONGEST_OUTAGE / 4, lambda: setattr(daemon, "is_cut", False))

    async def _kill_server(self) -> None:
        server = self._chance.choice(self._servers)
        if server.is_up:
            self.counts["servers killed"] += 1
            self.note(f"{server.name} is killed")
            server.kill()

    async def _lose_database(self) -> None:
        if not self._database.is_away:
            self.counts["database outages"] += 1
            self.note("the database is away")
            self._database.is_away = True
            self._for_a_while(LONGEST_OUTAGE, lambda: setattr(self._database, "is_away", False))

    async def _lose_notices(self) -> None:
        if not self._database.is_deaf:
            self.counts["notices lost"] += 1
            self._database.is_deaf = True
            self._for_a_while(20, self._database.hear_again)

    async def _set_clock(self) -> None:
        seconds = self._chance.choice((-600, 600))
        self.counts["clock set"] += 1
        self.note(f"the database's clock is set by {seconds} s")
        self._database.offset += seconds

    # ---- claims

    async def _judge(self) -> None:
        """Check that each acknowledged build ended as its executor says, that none ran twice, and that nothing is
        left."""
        rows = await self._read_jobs()
        for job, name in self.jobs.items():
            row = rows.get(job)
            self.claim(row is not None, f"{name} is lost")
            if row is None:
                continue
            runs, done = self._ledger.runs[job], self._ledger.done.get(job)
            self.claim(runs <= 1, f"{name} ran {runs} times")
            self.claim(row.completed_at is not None, f"{name} is unfinished")
            self.counts["succeeded" if not row.error else "failed"] += 1
            if not runs:
                # It was never delivered, or its daemon was killed before: it has an end and a reason.
                self.counts["not run"] += 1
                self.claim(bool(row.error), f"{name} counts as succeeded and never ran")
            elif job not in self._ledger.killed:
                self.claim(done is not None, f"{name} ended before its work, although its daemon lived: {row.error}")
                self.claim(not done or not row.error, f"{name} succeeded, and counts as failed: {row.error}")
                self.claim(done is not False or bool(row.error), f"{name} failed, and counts as succeeded")
            elif not done:
                self.claim(bool(row.error), f"{name} counts as succeeded without its end")
        self.claim(self.counts["not run"] * 4 <= self.counts["builds"], f"{self.counts['not run']} builds never ran")
        for daemon in self._daemons:
            self.claim(daemon.is_connected, f"{daemon.name} is not connected")
            left = list(daemon.work.glob("job-*"))
            self.claim(not left, f"{daemon.name} has left {len(left)} directories")

    async def _read_jobs(self) -> dict[UUID, Any]:
        async def read(tx: Any) -> dict[UUID, Any]:
            columns = provisioner_jobs.c
            query = select(columns.id, columns.completed_at, columns.error).where(columns.id.in_(list(self.jobs)))
            return {row.id: row for row in await tx.execute(query)}

        server = next(server for server in self._servers if server.ctx is not None)
        assert server.ctx is not None
        return await server.ctx.db.read(read)


def introduce(name: str) -> None:
    """Break the product, for the rest of this process."""
    DEFECTS[name]()


def _judge_at_once() -> None:
    patch.object(Attention, "look", lambda _self: True).start()


def _forget_assignments() -> None:
    """Give a job that a daemon has to the next one as well, once in a while."""
    genuine, takes = job_queue.take_job, [0]

    async def take(tx: Any, *words: Any) -> Any:
        takes[0] += 1
        if takes[0] % 7 == 0:
            await tx.execute(text("UPDATE provisioner_jobs SET started_at = NULL WHERE completed_at IS NULL"))
        return await genuine(tx, *words)

    patch.object(job_queue, "take_job", take).start()


DEFECTS = {"reaper": _judge_at_once, "twice": _forget_assignments}
"""Defects that the claims must notice."""
