"""The API of a populated deployment: statements per list, processor time per request, memory, watchers, idleness.

A real server process on a real Postgres, 1,000 workspaces of 200 users on 20 templates written straight into the
tables. Processor time is what the kernel counted for the server's threads and for all of Postgres' processes, so what
else the machine does matters little; medians over rounds. Upstream's figures stand beside ours as peers.
CODER_BENCH_BINARY names a binary to measure; else the sources run.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import trio

from coder.coderd.store.engine import postgres
from coder.coderd.store.engine.database import Database, open_database
from tests.bench._failures import reason
from tests.bench._population import Population, connect_agents, populate, rename
from tests.bench._requests import Client, cpu, family, resident
from tests.bench._workspace import program
from tests.bench.first import PASSWORD, ROOT, Place, end, note, row, wait

WORKSPACES, USERS, TEMPLATES, AGENTS = 1000, 200, 20, 500
WATCHERS = 500
CLIENTS = 20
STATEMENT_LIMIT = 8
PAGES = (10, 25, 100)
WATCH_ROUNDS = 20

COSTS = (
    # (name, path, server ms, Postgres ms, upstream's server ms, upstream's Postgres ms)
    ("GET workspaces?limit=25", "/api/v2/workspaces?limit=25", 5.0, 5.0, 24.5, 35.0),
    ("GET users/me", "/api/v2/users/me", 1.0, 0.5, 1.09, 1.35),
    ("GET templates", "/api/v2/templates", 2.0, 1.0, None, None),
)
FAST, ORDINARY = "the fast path, past Quart", "the ordinary Quart route"
"""Which way a request took; every row of `COSTS` is measured both ways."""
WITHOUT_FAST_PATH = """
import sys
from coder.cli.main import main
from coder.coderd.http.server import fast_path
fast_path.ROUTES.clear()
fast_path.FAST_PATHS.clear()
sys.exit(main(sys.argv[1:]))
"""


@dataclass
class Scene:
    """What is measured."""

    place: Place
    server: int
    postgres: int
    db: Database
    database: str
    postgres_log: Path
    token: str = ""
    made: Population | None = None
    loops: list[float] = field(default_factory=list)
    "What `fixed_loop` cost between the measurements."

    def client(self) -> Client:
        return Client(self.place.address, self.token)

    @property
    def population(self) -> Population:
        assert self.made is not None
        return self.made


def measure(quick: bool = False) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """All rows of `scripts/bench api`."""
    folder = Path(tempfile.mkdtemp(prefix="coder-bench-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        return trio.run(_measure, folder, quick)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _measure(folder: Path, quick: bool) -> tuple[list[dict[str, Any]], dict[str, str]]:
    skipped: dict[str, str] = {}
    async with _scene(folder) as scene:
        rows = await _at_rest(scene, 8 if quick else 20)
        note("populating …")
        scene.made = await populate(
            scene.db,
            await _organization(scene),
            await _owner(scene),
            workspace_count=WORKSPACES,
            user_count=USERS,
            template_count=TEMPLATES,
        )
        await connect_agents(scene.db, scene.made, AGENTS)
        count = 100 if quick else 300
        for name, path, server, database, their_server, their_database in COSTS:
            rows += await _cost(
                scene, f"{name}, {FAST}", path, (server, database), (their_server, their_database), count
            )
        rows += await _ordinary(scene, folder, count, skipped)
        rows.append(row("a loop of 300,000 additions meanwhile: CPU", statistics.median(scene.loops), "ms", None))
        rows += await _concurrent(scene, 25 if quick else 60)
        rows += await _statements(scene, skipped)
        await connect_agents(scene.db, scene.made, AGENTS)
        rows.append(_row("RSS of the server after the load", resident([scene.server]), "MiB", 200, 307))
        rows += await _watchers(scene, quick)
        rows.append(row("RSS of the server with 500 watchers gone", resident([scene.server]), "MiB", None))
        return rows, skipped


def _row(metric: str, value: float, unit: str, target: float | None, upstream: float | None) -> dict[str, Any]:
    made = row(metric, value, unit, target)
    return made if upstream is None else {**made, "peer": "upstream 2.34", "peer_value": upstream}


# ---- the deployment


@asynccontextmanager
async def _scene(folder: Path) -> AsyncIterator[Scene]:
    place = Place(program(folder), folder)
    async with postgres.run_postgres(folder / "database") as url, open_database(url) as db:
        pid = int((folder / "database/postgres/data/postmaster.pid").read_text().split()[0])
        note("server …")
        async with _server(place, [str(place.binary)], url) as process:
            scene = Scene(place, process.pid, pid, db, url, folder / "database/postgres/postgres.log")
            scene.token = await _first_user(scene)
            yield scene


@asynccontextmanager
async def _server(place: Place, program: list[str], database: str) -> AsyncIterator[subprocess.Popen[bytes]]:
    """One that answers at the place's address."""
    with (place.folder / "server.log").open("ab") as log:
        process = subprocess.Popen(
            [
                *program,
                "server",
                "--http-address",
                place.address,
                "--access-url",
                place.url,
                "--derp-server-stun-addresses",
                "disable",
                "--cache-dir",
                str(place.folder / "cache"),
                "--dangerous-disable-rate-limits",
                "--experiments",
                "oauth2",
            ],
            env={**place.env, "CODER_PG_CONNECTION_URL": database},
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        await trio.to_thread.run_sync(wait, place.answers)
        yield process
    except BaseException:
        note((place.folder / "server.log").read_text(errors="replace")[-3000:])
        raise
    finally:
        end(process)


async def _first_user(scene: Scene) -> str:
    async with scene.client() as client:
        user = {"email": "b@example.com", "username": "bench", "name": "B", "password": PASSWORD, "trial": False}
        await client.post("/api/v2/users/first", user)
        shown = await client.post("/api/v2/users/login", {"email": user["email"], "password": PASSWORD})
        return str(shown["session_token"])


async def _owner(scene: Scene) -> UUID:
    async with scene.client() as client:
        return UUID((await client.get("/api/v2/users/me"))["id"])


async def _organization(scene: Scene) -> UUID:
    async with scene.client() as client:
        return UUID((await client.get("/api/v2/organizations/default"))["id"])


# ---- nothing to do


async def _at_rest(scene: Scene, seconds: float) -> list[dict[str, Any]]:
    note(f"idle ({seconds + 5:.0f} s) …")
    await trio.sleep(5)  # what a start leaves behind: first runs of the loops, the daemons' registration
    fresh = resident([scene.server])
    before = cpu([scene.server]), cpu(family(scene.postgres))
    await trio.sleep(seconds)
    after = cpu([scene.server]), cpu(family(scene.postgres))
    return [
        _row("RSS of a fresh server", fresh, "MiB", 150, 178),
        row("idle server, CPU per second", (after[0] - before[0]) / seconds, "ms", 2),
        row("idle Postgres, CPU per second", (after[1] - before[1]) / seconds, "ms", None),
    ]


# ---- requests


async def _cost(
    scene: Scene,
    name: str,
    path: str,
    targets: tuple[float, float],
    upstream: tuple[float | None, float | None],
    count: int,
) -> list[dict[str, Any]]:
    """Processor time per request, one after the other on one connection."""
    note(f"{name} …")
    server, database, wall = [], [], []
    async with scene.client() as client:
        for _ in range(30):
            await client.call("GET", path)
        for _ in range(5):
            scene.loops.append(fixed_loop())
            before = cpu([scene.server]), cpu(family(scene.postgres))
            for _ in range(count // 5):
                began = time.perf_counter()
                await client.call("GET", path)
                wall.append((time.perf_counter() - began) * 1000)
            server.append((cpu([scene.server]) - before[0]) / (count // 5))
            database.append((cpu(family(scene.postgres)) - before[1]) / (count // 5))
    return [
        _row(f"{name}: server CPU", statistics.median(server), "ms", targets[0], upstream[0]),
        _row(f"{name}: Postgres CPU", statistics.median(database), "ms", targets[1], upstream[1]),
        row(f"{name}: wall, median", statistics.median(wall), "ms", None),
    ]


async def _ordinary(scene: Scene, folder: Path, count: int, skipped: dict[str, str]) -> list[dict[str, Any]]:
    """The same requests at a second replica, whose table of fast paths is empty; the targets are the same."""
    if os.environ.get("CODER_BENCH_BINARY"):
        skipped[ORDINARY] = "the fast path is taken out of the sources, and a binary is measured"
        return []
    place = Place(Path(sys.executable), folder)
    place.env = {**place.env, "PYTHONPATH": str(ROOT)}
    async with _server(place, [sys.executable, "-c", WITHOUT_FAST_PATH], scene.database) as process:
        await trio.sleep(5)  # what a start leaves behind
        there = replace(scene, place=place, server=process.pid)
        rows = []
        for name, path, server, database, _, _ in COSTS:
            rows += await _cost(there, f"{name}, {ORDINARY}", path, (server, database), (None, None), count)
        return rows


def fixed_loop() -> float:
    """Milliseconds of CPU for work that never changes: what slows it slows the server, too."""
    began, total = time.process_time(), 0
    for number in range(300_000):
        total += number
    return (time.process_time() - began) * 1000


async def _concurrent(scene: Scene, each: int) -> list[dict[str, Any]]:
    note(f"{CLIENTS} clients at once …")
    path = COSTS[0][1]
    times: list[float] = []

    async def ask(client: Client) -> None:
        for _ in range(each):
            began = time.perf_counter()
            await client.call("GET", path)
            times.append((time.perf_counter() - began) * 1000)

    began, before = time.perf_counter(), cpu([scene.server])
    async with trio.open_nursery() as nursery:

        async def one() -> None:
            async with scene.client() as client:
                await ask(client)

        for _ in range(CLIENTS):
            nursery.start_soon(one)
    took, spent = time.perf_counter() - began, cpu([scene.server]) - before
    middle, last = statistics.median(times), _p99(times)
    name = f"GET workspaces?limit=25, {FAST}, {CLIENTS} clients"
    return [
        row(f"{name}: median", middle, "ms", None),
        row(f"{name}: p99 as a multiple of the median", last / middle, "x", 5),
        row(f"{name}: server CPU of a request", spent / len(times), "ms", None),
        row(f"{name}: requests a second", len(times) / took, "1/s", None, better="higher"),
    ]


def _p99(times: list[float]) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * 0.99))]


# ---- statements


def lists(made: Population) -> list[str]:
    """Every operation that lists what grows with the deployment; `{limit}` where it takes a page size."""
    organization = f"/api/v2/organizations/{made.organization_id}"
    template, version = f"/api/v2/templates/{made.template_ids[0]}", f"/api/v2/templateversions/{made.version_ids[0]}"
    workspace, times = f"/api/v2/workspaces/{made.workspace_ids[0]}", "2026-01-01T00:00:00Z"
    insights = f"start_time={times}&end_time=2026-01-08T00:00:00Z"
    return [
        "/api/v2/workspaces?limit={limit}",
        "/api/v2/workspaces?limit={limit}&q=owner:me",
        "/api/v2/workspaces?limit={limit}&q=status:running",
        "/api/v2/workspaces?limit={limit}&q=has-agent:connected",
        "/api/v2/workspaces?limit={limit}&q=template:template-03",
        "/api/v2/workspaces?limit={limit}&q=organization:coder+shared_with_user:user-001",
        f"{workspace}/builds?limit={{limit}}",
        f"{workspace}/port-share",
        "/api/v2/users?limit={limit}",
        "/api/v2/users?limit={limit}&q=status:active",
        "/api/v2/users/roles",
        "/api/v2/users/me/keys/tokens",
        "/api/v2/users/me/organizations",
        "/api/v2/users/me/secrets",
        "/api/v2/users/me/notifications/preferences",
        f"/api/v2/users/me/autofill-parameters?template_id={made.template_ids[0]}",
        "/api/v2/templates",
        "/api/v2/templates?q=deprecated:false",
        "/api/v2/templates/examples",
        f"{template}/versions?limit={{limit}}",
        f"{template}/versions/v1",
        f"{template}/acl",
        f"{template}/acl/available?limit={{limit}}",
        f"{template}/daus",
        *(
            f"{version}/{part}"
            for part in (
                "resources",
                "rich-parameters",
                "variables",
                "presets",
                "external-auth",
                "logs",
            )
        ),
        "/api/v2/organizations",
        f"{organization}/members",
        f"{organization}/members/roles",
        f"{organization}/paginated-members?limit={{limit}}",
        f"{organization}/groups",
        f"{organization}/groups/makers/members?limit={{limit}}",
        f"{organization}/templates",
        f"{organization}/provisionerdaemons?limit={{limit}}",
        f"{organization}/provisionerjobs?limit={{limit}}",
        f"{organization}/provisionerkeys",
        f"{organization}/provisionerkeys/daemons",
        f"{organization}/members/me/workspaces/available-users?limit={{limit}}",
        "/api/v2/groups",
        f"/api/v2/groups/{made.group_id}/members?limit={{limit}}",
        "/api/v2/audit?limit={limit}",
        "/api/v2/connectionlog?limit={limit}",
        "/api/v2/notifications/inbox",
        "/api/v2/notifications/templates/system",
        "/api/v2/oauth2-provider/apps",
        "/api/v2/workspaceproxies",
        "/api/v2/regions",
        "/api/v2/replicas",
        "/api/v2/external-auth",
        "/api/v2/insights/daus?tz_offset=0",
        f"/api/v2/insights/templates?{insights}&interval=day",
        f"/api/v2/insights/user-activity?{insights}",
        f"/api/v2/insights/user-latency?{insights}",
        "/api/v2/insights/user-status-counts?tz_offset=0",
    ]


async def _statements(scene: Scene, skipped: dict[str, str]) -> list[dict[str, Any]]:
    """The most statements any list needed, as Postgres' own log counts them."""
    note("statements …")
    found: dict[str, int] = {}
    await _set_logging(scene, "all")
    async with scene.client() as client:
        for path in lists(scene.population):
            for limit in PAGES if "{limit}" in path else (0,):
                asked = path.replace("{limit}", str(limit))
                try:
                    # whatever loops do meanwhile can only add, so the least of three is the request's own
                    found[asked] = min([await _count(scene, client, asked) for _ in range(3)])
                except RuntimeError as error:
                    skipped[f"statements of {path}"] = reason(error)
    await _set_logging(scene, "none")
    worst = max(found, key=lambda path: found[path])
    for path, count in sorted(found.items(), key=lambda item: -item[1])[:12]:
        note(f"  {count:3} {path}")
    grown = [path for path in found if "limit=100" in path and found[path] > found[path.replace("=100", "=10")]]
    return [
        row(f"statements of the costliest of {len(lists(scene.population))} lists", found[worst], "", STATEMENT_LIMIT),
        row("lists whose statements grow with the page size", len(grown), "", 0),
    ]


async def _count(scene: Scene, client: Client, path: str) -> int:
    size = scene.postgres_log.stat().st_size
    await client.call("GET", path)
    with scene.postgres_log.open("rb") as log:
        log.seek(size)
        said = log.read()
    return said.count(b"LOG:  execute ") + said.count(b"LOG:  statement: ")


async def _set_logging(scene: Scene, what: str) -> None:
    from sqlalchemy import text

    async def change(tx: Any) -> None:
        await tx.execute(text(f"ALTER SYSTEM SET log_statement = '{what}'"))
        await tx.execute(text("ALTER SYSTEM SET log_min_messages = warning"))
        await tx.execute(text("SELECT pg_reload_conf()"))

    await scene.db.read(change)
    await trio.sleep(0.5)


# ---- watchers


async def _watchers(scene: Scene, quick: bool) -> list[dict[str, Any]]:
    """From the commit of a change to its arrival: everybody on one workspace, and everybody on their own."""
    made, rounds = scene.population, 5 if quick else WATCH_ROUNDS
    rows = []
    for name, targets, bound in (
        (f"{WATCHERS} watchers of one workspace", [made.workspace_ids[0]] * WATCHERS, None),
        (f"{WATCHERS} watchers of {WATCHERS} workspaces", made.workspace_ids[:WATCHERS], None),
    ):
        note(f"{name} …")
        times = await _watch(scene, targets, rounds if len(set(targets)) == 1 else 1)
        rows.append(row(f"{name}: change to arrival, median", statistics.median(times), "ms", bound))
        rows.append(row(f"{name}: change to arrival, p99", _p99(times), "ms", 250))
    return rows


async def _watch(scene: Scene, workspaces: list[UUID], rounds: int) -> list[float]:
    times: list[float] = []
    changed: dict[UUID, float] = {}
    wanted: dict[UUID, int] = {}
    arrived = [0]
    more = trio.Event()

    def told() -> None:
        nonlocal more
        arrived[0] += 1
        more.set()
        more = trio.Event()

    async def watch(workspace: UUID, task_status: trio.TaskStatus[None]) -> None:
        async with scene.client() as client:
            await client.send("GET", f"/api/v2/workspaces/{workspace}/watch")
            await client.until(b"event: data\n")
            await client.until(b"\n\n")
            task_status.started()
            while True:
                await client.until(b"event: data\n")
                shown = await client.until(b"\n\n")
                # agents fall silent by themselves meanwhile: only what was written now counts
                if b'"ttl_ms":%d' % wanted.get(workspace, -1) in shown:
                    times.append((time.perf_counter() - changed[workspace]) * 1000)
                    told()

    async with trio.open_nursery() as nursery:
        for workspace in workspaces:
            await nursery.start(watch, workspace)
        async with scene.client() as client:
            owners = {
                UUID(one["id"]): UUID(one["owner_id"])
                for one in (await client.get("/api/v2/workspaces?limit=1000"))["workspaces"]
            }
        await trio.sleep(1)
        for step in range(rounds):
            for workspace in dict.fromkeys(workspaces):
                expected = arrived[0] + workspaces.count(workspace)
                wanted[workspace] = (step + 1) * 3_600_000 + 60_000 * len(set(workspaces))
                changed[workspace] = time.perf_counter()
                await rename(scene.db, workspace, owners[workspace], wanted[workspace])
                with trio.fail_after(30):
                    while arrived[0] < expected:
                        await more.wait()
        nursery.cancel_scope.cancel()
    return times
