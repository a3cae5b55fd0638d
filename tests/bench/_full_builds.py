"""Part `builds`: builds a minute by the echo provisioner of the server's own daemons, and how fast jobs are placed.

Builds: new workspaces of one template, created by ten clients at once; the time is that from the first request to the
end of the last job. Placement: daemons of the bench take import jobs that wait in the database, and fail them at once.
"""

from __future__ import annotations

import contextlib
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import trio
from sqlalchemy import func, insert, select

from coder.base.secret import Secret
from coder.coderd.store.engine import postgres
from coder.coderd.store.engine.database import Tx, open_database
from coder.coderd.store.tables.jobs import provisioner_jobs
from coder.coderd.store.tables.templates import template_versions
from coder.net.http1 import HttpClient
from coder.net.policy import DialPolicy
from coder.net.websocket import connect_websocket
from coder.rpc.proto import provisioner_pb2
from coder.rpc.session import open_session
from tests.bench._full import Emit, Options
from tests.bench._full_place import server_processes, spent, tree
from tests.bench._workspace import program
from tests.bench.api import Scene, _first_user, _server
from tests.bench.first import Place, note
from tests.kit.provisioners.scripted_job_server import echo_archive
from tests.kit.provisioners.scripted_provisioner import FakeDaemon, agent, resource, serve_path

DAEMONS, CLIENTS = 8, 10
BUILDS = 600
WAITING = (100, 1_000, 10_000)
TAKERS = 4
"""Daemons that take waiting jobs."""
PLACED = 400
"""Jobs placed at each length of the queue."""
LANE = {"lane": "placement"}
"""Tag that keeps the server's own daemons from the jobs of the second half."""
LIMIT = 240.0


def run(options: Options, folder: Path, emit: Emit) -> None:
    """Emit all rows."""
    trio.run(_run, options, folder, emit)


async def _run(options: Options, folder: Path, emit: Emit) -> None:
    place = Place(program(folder), folder)
    place.env |= {"CODER_PROCESSES": str(options.processes), "CODER_PROVISIONER_TYPES": "echo"}
    place.env["CODER_PROVISIONER_DAEMONS"] = str(DAEMONS)
    async with (
        postgres.run_postgres(folder / "database") as url,
        open_database(url) as db,
        _server(place, [str(place.binary)], url) as process,
    ):
        pid = int((folder / "database/postgres/data/postmaster.pid").read_text().split()[0])
        scene = Scene(place, process.pid, pid, db, url, folder / "database/postgres/postgres.log")
        scene.token = await _first_user(scene)
        version = await _template(scene)
        await _builds(scene, emit, options.count(BUILDS, 10), version)
        await _placement(scene, emit, options, UUID(version["id"]))


async def _template(scene: Scene) -> Any:
    """Create a template with one resource and an agent; return its version."""
    graph = provisioner_pb2.GraphComplete(resources=[resource("box", agents=[agent()])])
    async with HttpClient(DialPolicy(scene.place.url, Secret(scene.token), proxies={})) as http:

        async def call(method: str, path: str, **request: Any) -> Any:
            return json.loads((await http.request(method, f"/api/v2/{path}", **request)).body)

        kind = [("Content-Type", "application/x-tar")]
        file = await call("POST", "files", body=echo_archive(graph=[graph]), headers=kind)
        request = {"storage_method": "file", "file_id": file["hash"], "provisioner": "echo", "tags": {}}
        version = await call("POST", "organizations/default/templateversions", json=request)
        with trio.fail_after(60):
            while (status := version["job"]["status"]) != "succeeded":
                if status == "failed":
                    raise RuntimeError(version["job"]["error"])
                await trio.sleep(0.1)
                version = await call("GET", f"templateversions/{version['id']}")
        request = {"name": "echo", "template_version_id": version["id"]}
        template = await call("POST", "organizations/default/templates", json=request)
        return {**version, "template_id": template["id"]}


# ---- builds


async def _builds(scene: Scene, emit: Emit, count: int, version: Any) -> None:
    note(f"{count} builds …")
    pids = [*server_processes(scene.server), *tree(scene.postgres)]
    before, began = spent(pids), time.monotonic()
    numbers = iter(range(count))

    async def create() -> None:
        async with scene.client() as client:
            for number in numbers:
                body = {"name": f"echo-{number}", "template_id": version["template_id"]}
                await client.post("/api/v2/users/me/workspaces", body)

    async with trio.open_nursery() as nursery:
        for _ in range(CLIENTS):
            nursery.start_soon(create)
    asked = time.monotonic() - began
    succeeded = failed = 0
    with trio.move_on_after(LIMIT):
        while succeeded + failed < count:
            await trio.sleep(0.25)
            succeeded, failed = await scene.db.read(_ended)
    took = time.monotonic() - began
    used = spent([*server_processes(scene.server), *tree(scene.postgres)]) - before
    name = f"{count} echo builds, {DAEMONS} built-in daemons"
    emit(f"{name}: builds a minute", succeeded / took * 60, "1/min", 600, better="higher")
    emit(f"{name}: until all were asked for", asked, "s", None)
    emit(f"{name}: builds that failed or did not end", count - succeeded, "builds", 0)
    emit(f"{name}: CPU of server and Postgres, a build", used / count, "ms", None)


async def _ended(tx: Tx) -> tuple[int, int]:
    """How many builds have succeeded, and failed."""
    jobs = provisioner_jobs.c
    is_ended = (jobs.type == "workspace_build") & jobs.completed_at.is_not(None)
    query = select(
        func.count().filter(is_ended & (jobs.error == "")), func.count().filter(is_ended & (jobs.error != ""))
    ).select_from(provisioner_jobs)
    succeeded, failed = (await tx.execute(query)).one()
    return int(succeeded), int(failed)


# ---- placement


async def _placement(scene: Scene, emit: Emit, options: Options, version: UUID) -> None:
    placed = options.count(PLACED, 20)
    rates = []
    lengths = [options.count(length, 2 * placed) for length in WAITING]
    for length in dict.fromkeys(lengths):
        note(f"placement with {length} waiting …")
        await scene.db.run(_fill, version, length + placed)
        pids = [*server_processes(scene.server), *tree(scene.postgres)]
        before = spent(pids)
        rate = await _place(scene, placed)
        rates.append(rate)
        used = spent(pids) - before
        name = f"jobs placed with {length} waiting, {TAKERS} daemons that fail each at once"
        emit(f"{name}: jobs a second", rate, "1/s", 100, better="higher")
        emit(f"{name}: CPU of server and Postgres, a job", used / placed, "ms", None)
    name = f"rate of placement with {lengths[-1]} waiting, beside {lengths[0]}"
    emit(name, rates[-1] / rates[0], "x", 0.9, better="higher")


async def _fill(tx: Tx, version: UUID, length: int) -> None:
    """Let so many jobs wait: imports of versions that have the archive of `version`."""
    jobs, versions = provisioner_jobs, template_versions
    waiting = (jobs.c.started_at.is_(None)) & (jobs.c.completed_at.is_(None))
    there = int((await tx.execute(select(func.count()).where(waiting))).scalar_one())
    model = (await tx.execute(select(versions).where(versions.c.id == version))).one()
    archive = (await tx.execute(select(jobs.c.file_id).where(jobs.c.id == model.job_id))).scalar_one()
    now, rows, versions_of = datetime.now(UTC), [], []
    for _ in range(length - there):
        job, own = uuid4(), uuid4()
        times = {"created_at": now, "updated_at": now}
        common = {"organization_id": model.organization_id, **times}
        rows.append(
            {
                "id": job,
                "initiator_id": model.created_by,
                "provisioner": "echo",
                "file_id": archive,
                "type": "template_version_import",
                "input": {"template_version_id": str(own)},
                "tags": {"scope": "organization", "owner": "", **LANE},
                **common,
            }
        )
        made = {"id": own, "name": f"w-{own.hex[:20]}", "job_id": job, "created_by": model.created_by}
        versions_of.append({**made, "template_id": model.template_id, **common})
    if rows:
        await tx.execute(insert(jobs), rows)
        await tx.execute(insert(versions), versions_of)


async def _place(scene: Scene, count: int) -> float:
    """Jobs a second, from the first request to the end of the last job."""
    remaining = iter(range(count))
    policy = DialPolicy(scene.place.url, Secret(scene.token), proxies={})
    began = 0.0

    async def take(daemon: FakeDaemon) -> None:
        for _ in remaining:
            await daemon.fail(await daemon.acquire(), "taken by the benchmark")

    async with contextlib.AsyncExitStack() as stack:
        daemons = []
        for number in range(TAKERS):
            path = serve_path(name=f"taker-{number}", kinds=("echo",), tags=LANE)
            websocket = await connect_websocket(policy, path)
            daemons.append(FakeDaemon(await stack.enter_async_context(open_session(websocket, role="client"))))
        began = time.monotonic()
        with trio.fail_after(LIMIT):
            async with trio.open_nursery() as nursery:
                for daemon in daemons:
                    nursery.start_soon(take, daemon)
        return count / (time.monotonic() - began)
