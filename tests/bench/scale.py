"""A deployment with many agents: what connecting, keeping and recovering them costs server and database.

`--full` measures the targets once and whole instead, in parts (`_full.py`).

Simulated agents (`coder exp scaletest agents`) on loopback, with the RPC session, relay link and reports of real ones.
Processor time is what the kernel counted for the server and all of Postgres' processes.
"""

from __future__ import annotations

import os
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import trio
from sqlalchemy import select, text

from coder.coderd.store.engine.database import Tx
from coder.coderd.store.tables.agents import workspace_agents
from tests.bench._population import populate
from tests.bench._requests import cpu, family, resident
from tests.bench.api import TEMPLATES, USERS, Scene, _organization, _owner, _scene, _server
from tests.bench.first import end, note, row

AGENTS, QUICK_AGENTS = 1000, 200
RAMP = 20
STEADY, QUICK_STEADY = 90.0, 45.0
BACK_LIMIT = 180.0
SKIPPED = {
    "10,000 agents for 30 minutes": "the five-minute form connects 1,000; --full searches the number that holds",
    "Postgres failover": "one Postgres in this form; --full has two",
    "replacements under sessions": "--full; scripts/bench replacements measures two sessions",
    "coordinator updates, echo builds, ssh at 10/s": "--full",
    "CPU with several processes, a new server, the relay beside derper": "--full",
}


def measure(quick: bool = False) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """All rows of `scripts/bench scale`."""
    folder = Path(tempfile.mkdtemp(prefix="coder-bench-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        return trio.run(_measure, folder, quick)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _measure(folder: Path, quick: bool) -> tuple[list[dict[str, Any]], dict[str, str]]:
    count, steady = (QUICK_AGENTS, QUICK_STEADY) if quick else (AGENTS, STEADY)
    async with _scene(folder) as scene:
        note("populating …")
        scene.made = await populate(
            scene.db,
            await _organization(scene),
            await _owner(scene),
            workspace_count=count,
            user_count=USERS,
            template_count=TEMPLATES,
        )
        tokens = folder / "tokens"
        tokens.write_text("\n".join(await scene.db.read(_tokens, scene.population.agent_ids)))
        rows = [*await _probe(scene, "without agents")]
        before = cpu([scene.server]), cpu(family(scene.postgres))
        began = time.monotonic()
        async with _fleet(scene, tokens, count) as fleet:
            await fleet.wait_connected(count, count / RAMP + BACK_LIMIT)
            rows.append(row(f"connect {count} agents, {RAMP}/s: wall", time.monotonic() - began, "s", None))
            rows += _shares("connecting, an agent", scene, before, count)
            rows += await _steady(scene, count, steady)
            rows += await _probe(scene, f"{count} agents", 300)
            rows.append(row(f"RSS of the server, {count} agents", resident([scene.server]), "MiB", None))
            rows.append(row("agents lost while steady", fleet.latest()["lost"], "agents", 0))
            rows += await _killed(scene, fleet, count)
    return rows, SKIPPED


async def _tokens(tx: Tx, agents: Sequence[UUID]) -> list[str]:
    """Tokens of these agents, one for each running workspace; those of earlier builds are refused."""
    query = select(workspace_agents.c.auth_token).where(workspace_agents.c.id.in_(agents))
    return [str(token) for token in (await tx.execute(query)).scalars()]


def _shares(name: str, scene: Scene, before: tuple[float, float], units: float) -> list[dict[str, Any]]:
    server, database = cpu([scene.server]) - before[0], cpu(family(scene.postgres)) - before[1]
    return [
        row(f"{name}: server CPU", server / units, "ms", None),
        row(f"{name}: Postgres CPU", database / units, "ms", None),
    ]


async def _steady(scene: Scene, count: int, seconds: float) -> list[dict[str, Any]]:
    note(f"steady ({seconds:.0f} s) …")
    await trio.sleep(10)  # what connecting left to be done
    before = cpu([scene.server]), cpu(family(scene.postgres))
    transactions = await scene.db.read(_transactions)
    await trio.sleep(seconds)
    made = await scene.db.read(_transactions) - transactions
    rows = _shares("an agent-minute", scene, before, count * seconds / 60)
    return [*rows, row("transactions a second", made / seconds, "1/s", None)]


async def _transactions(tx: Tx) -> int:
    query = text("SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()")
    return int((await tx.execute(query)).scalar_one())


async def _probe(scene: Scene, load: str, target: float | None = 100) -> list[dict[str, Any]]:
    """Latency of the list of workspaces and of /healthz, ten requests a second."""
    times: dict[str, list[float]] = {"/api/v2/workspaces?limit=25": [], "/healthz": []}
    async with scene.client() as client:
        for _ in range(100):
            for path, found in times.items():
                began = time.perf_counter()
                await client.call("GET", path)
                found.append((time.perf_counter() - began) * 1000)
            await trio.sleep(0.1)
    rows = []
    for path, found in times.items():
        rows.append(row(f"GET {path}, {load}: median", statistics.median(found), "ms", None))
        limit = target if "workspaces" in path else None
        rows.append(row(f"GET {path}, {load}: p99", sorted(found)[98], "ms", limit))
    return rows


async def _killed(scene: Scene, fleet: Fleet, count: int) -> list[dict[str, Any]]:
    """Kill the server, start it again, wait until all agents are back."""
    note("kill -9 …")
    os.kill(scene.server, signal.SIGKILL)
    await fleet.wait_connected(0, 60, at_most=True)
    began = time.monotonic()
    async with _server(scene.place, [str(scene.place.binary)], scene.database) as process:
        up = time.monotonic() - began
        await fleet.wait_connected(count, BACK_LIMIT)
        back = time.monotonic() - began
        return [
            row("start after kill -9 until it answers", up, "s", None),
            row(f"{count} agents back after kill -9", back, "s", 60),
            row("returning, an agent: server CPU", cpu([process.pid]) / count, "ms", None),
        ]


class Fleet:
    """A process of simulated agents, and what it said last."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def latest(self) -> dict[str, int]:
        """Return the figures of its last line of progress."""
        for line in reversed(self._log.read_text().splitlines()):
            words = line.replace(",", "").split()
            if words[:1] == ["connected"]:
                return {"connected": int(words[1]), "lost": int(words[5]), "failed": int(words[8])}
        return {"connected": 0, "lost": 0, "failed": 0}

    async def wait_connected(self, count: int, seconds: float, *, at_most: bool = False) -> None:
        with trio.fail_after(seconds):
            while True:
                connected = self.latest()["connected"]
                if connected <= count if at_most else connected >= count:
                    return
                await trio.sleep(0.5)


@asynccontextmanager
async def _fleet(scene: Scene, tokens: Path, count: int) -> AsyncIterator[Fleet]:
    log = scene.place.folder / "fleet.log"
    note(f"{count} agents …")
    command = [str(scene.place.binary), "exp", "scaletest", "agents", "--token-file", str(tokens)]
    command += ["--ramp", str(RAMP), "--duration", "0", "--url", scene.place.url, "--progress", "1s"]
    env = {**scene.place.env, "CODER_NO_COMMAND_SERVER": "1"}
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, stdout=file, stderr=file, stdin=subprocess.DEVNULL, env=env, start_new_session=True
        )
    try:
        yield Fleet(log)
    except BaseException:
        note(log.read_text(errors="replace")[-3000:])
        raise
    finally:
        end(process)
