"""Provisioning: how fast a build is taken and done, beside terraform by hand; many daemons; what an idle one costs.

The template is the bundled `local-process`. By hand means `terraform init`, `plan` and `apply` in a directory that is
warm, with the same provider already running: the hardest peer there is, since it starts no provider either.
BENCH_SOURCE=1 runs from the source tree instead of the single binary.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import Any

import trio

from coder.provisionerd.executors.terraform import agent_scripts
from coder.provisionerd.terraform import environment as env_of
from coder.provisionerd.terraform.provider.serving import serve_provider
from coder.rpc.proto import provisioner_pb2 as pb
from tests.bench.first import ROOT, Place, build, end, note, prepare, row, rss, wait
from tests.kit.provisioners.scripted_job_server import echo_archive

DAEMONS, BUILDS = 30, 60
_ENDED = {"succeeded", "failed", "canceled"}
_LOOK = 0.05
"""Seconds between two looks at a job. All times are the server's own, so looking oftener would only take the processor
from what is measured: a look costs the server several milliseconds, and its daemons share its process."""


def measure(quick: bool = False) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """All rows of `scripts/bench provision`."""
    if not shutil.which("terraform"):
        return [], {"everything": "terraform is not installed"}
    folder = Path(tempfile.mkdtemp(prefix="coder-bench-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        binary = _source(folder) if os.environ.get("BENCH_SOURCE") else build()
        return _measure(Place(binary, folder), rounds=4 if quick else 10, daemons=10 if quick else DAEMONS)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _source(folder: Path) -> Path:
    path = folder / "coder"
    path.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec "{sys.executable}" -m coder "$@"\n')
    path.chmod(0o755)
    return path


def _measure(place: Place, rounds: int, daemons: int) -> tuple[list[dict[str, Any]], dict[str, str]]:
    rows: list[dict[str, Any]] = []
    note("server …")
    with place.server():
        prepare(place)
        api = Api(place)
        template = place.folder / "local-process"
        place.coder("templates", "init", "--id", "local-process", str(template))
        rows += _push(place, template, rounds)
        rows += _builds(place, api, template, rounds)
        rows += _connectable(place, api, rounds)
    note("server without daemons of its own …")
    place.env["CODER_PROVISIONER_DAEMONS"] = "0"
    with place.server():
        rows += _many(place, Api(place), daemons, 2 * daemons)
    return rows, {}


class Api:
    """The server's HTTP API, signed in."""

    def __init__(self, place: Place) -> None:
        self._url = place.url
        self._token = place.coder("login", "token").stdout.decode().strip()
        self.me = self.get("/api/v2/users/me")

    def call(self, method: str, path: str, body: Any = None, *, raw: bytes | None = None, kind: str = "") -> Any:
        data = raw if raw is not None else None if body is None else json.dumps(body).encode()
        headers = {"Coder-Session-Token": self._token, "Content-Type": kind or "application/json"}
        request = urllib.request.Request(f"{self._url}{path}", data=data, headers=headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or b"null")

    def get(self, path: str) -> Any:
        return self.call("GET", path)

    def post(self, path: str, body: Any) -> Any:
        return self.call("POST", path, body)

    def ended(self, path: str) -> Any:
        """The build or version once its job has ended."""
        while (found := self.get(path))["job"]["status"] not in _ENDED:
            time.sleep(_LOOK)
        if found["job"]["status"] != "succeeded":
            raise RuntimeError(found["job"].get("error", "the job was canceled"))
        return found


def _at(text: str) -> float:
    head, _, tail = text.rstrip("Z").partition(".")
    return datetime.fromisoformat(f"{head}.{tail[:6]:0<6}+00:00").timestamp()


def _push(place: Place, template: Path, rounds: int) -> list[dict[str, Any]]:
    note("templates push …")
    sleeper = place.folder / "sleeper"
    sleeper.write_text("#!/bin/sh\nexec sleep 600\n")
    sleeper.chmod(0o755)
    variables = ["--variable", f"data_dir={place.folder / 'data'}"]
    push = ["templates", "push", "-d", str(template), "-y", *variables]

    def once() -> float:
        began = time.perf_counter()
        place.coder(*push, "real", "--variable", f"coder_binary={place.binary}")
        return time.perf_counter() - began

    found = statistics.median(once() for _ in range(rounds))
    place.coder(*push, "asleep", "--variable", f"coder_binary={sleeper}")
    return [row("templates push, wall median", found, "s", 1.2)]


def _builds(place: Place, api: Api, template: Path, rounds: int) -> list[dict[str, Any]]:
    """Start builds and terraform by hand, one after the other."""
    note("start builds beside terraform by hand …")
    place.coder("create", "asleep", "--template=asleep", "-y")
    workspace = api.get("/api/v2/users/me/workspace/asleep")
    ours: list[float] = []
    taken: list[float] = []
    theirs: list[tuple[float, float]] = []

    def build(transition: str) -> Any:
        made = api.post(f"/api/v2/workspaces/{workspace['id']}/builds", {"transition": transition})
        return api.ended(f"/api/v2/workspacebuilds/{made['id']}")["job"]

    async def run() -> None:
        async with by_hand(place, template) as hand:
            for _ in range(rounds):
                build("stop")
                job = build("start")
                ours.append(_at(job["completed_at"]) - _at(job["created_at"]))
                taken.append(_at(job["started_at"]) - _at(job["created_at"]))
                theirs.append(await hand("start"))
                await hand("stop")

    trio.run(run)
    build("delete")
    ours_median = statistics.median(ours)
    whole = statistics.median(init + rest for init, rest in theirs)
    same = statistics.median(rest for _, rest in theirs)
    start = "start build, init skipped because the provider is ours"
    return [
        row("request to job acquired, median", statistics.median(taken) * 1000, "ms", 50),
        {
            **row(f"{start}: request to end, median", ours_median, "s", None),
            "peer": "terraform init, plan, apply by hand in a warm directory",
            "peer_value": round(whole, 3),
        },
        row(f"{start}, beside init, plan and apply by hand", ours_median / whole, "x", 1.25),
        row(f"{start}, beside plan and apply by hand", ours_median / same, "x", None),
    ]


@asynccontextmanager
async def by_hand(place: Place, template: Path) -> AsyncIterator[Any]:
    """Seconds of (init, plan and apply) for a transition, the provider running beside."""
    folder = place.folder / "by-hand"
    shutil.copytree(template, folder)
    async with serve_provider() as provider:

        async def apply(transition: str) -> tuple[float, float]:
            metadata = pb.Metadata(
                coder_url=place.url,
                workspace_name="hand",
                workspace_owner="hand",
                workspace_id="aaaaaaaa-0000-4000-8000-000000000001",
                workspace_transition=pb.START if transition == "start" else pb.STOP,
            )
            provider.environment = env_of.job_variables(metadata, agent_scripts())
            env = env_of.inherited(os.environ) | dict(provider.environment)
            env |= {"TF_REATTACH_PROVIDERS": provider.reattach}
            variables = [f"-var=data_dir={place.folder / 'hand-data'}", f"-var=coder_binary={place.folder / 'sleeper'}"]
            began = time.perf_counter()
            at = {}
            for words in (
                ["init"],
                ["plan", "-out=plan.out", *variables],
                ["apply", "-auto-approve", "plan.out"],
            ):
                at[words[0]] = time.perf_counter()
                await trio.run_process(
                    ["terraform", words[0], "-no-color", "-input=false", *words[1:]],
                    cwd=folder,
                    env=env,
                    capture_stdout=True,
                    capture_stderr=True,
                )
            return at["plan"] - began, time.perf_counter() - at["plan"]

        await apply("start")
        await apply("stop")
        yield apply


def _connectable(place: Place, api: Api, rounds: int) -> list[dict[str, Any]]:
    note("create to connectable …")
    template = next(one for one in api.get("/api/v2/templates") if one["name"] == "real")
    found = []
    for number in range(rounds):
        body = {"name": f"w{number}", "template_id": template["id"]}
        made = api.post("/api/v2/users/me/workspaces", body)
        began = time.perf_counter()
        wait(lambda ident=made["id"]: _agent_connected(api, ident))  # type: ignore[misc]
        found.append(time.perf_counter() - began)
        deleting = api.post(f"/api/v2/workspaces/{made['id']}/builds", {"transition": "delete"})
        api.ended(f"/api/v2/workspacebuilds/{deleting['id']}")
    return [row("create, first answer to agent connected, median", statistics.median(found), "s", 1.2)]


def _agent_connected(api: Api, workspace: str) -> bool:
    latest = api.get(f"/api/v2/workspaces/{workspace}")["latest_build"]
    agents = [agent for one in latest["resources"] for agent in one.get("agents") or []]
    if latest["job"]["status"] == "failed":
        raise RuntimeError(latest["job"]["error"])
    return bool(agents) and agents[0]["status"] == "connected"


# ---- many daemons


@contextmanager
def _daemons(place: Place, api: Api, count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    organization = api.me["organization_ids"][0]
    with (place.folder / "daemons.log").open("ab") as log, nullcontext([]) as started:
        try:
            for number in range(count):
                words = [
                    "provisioner",
                    "start",
                    "--name",
                    f"d{number}",
                    "--cache-dir",
                    str(place.folder / f"d{number}"),
                ]
                started.append(
                    subprocess.Popen(
                        [str(place.binary), *words],
                        env={**place.env, "CODER_URL": place.url},
                        stdout=log,
                        stderr=log,
                        stdin=subprocess.DEVNULL,
                        start_new_session=True,
                    )
                )
            path = f"/api/v2/organizations/{organization}/provisionerdaemons?limit=100"
            wait(lambda: sum(one["name"].startswith("d") for one in api.get(path)) >= count, 120)
            yield started
        finally:
            for process in started:
                end(process)


def _many(place: Place, api: Api, daemons: int, builds: int) -> list[dict[str, Any]]:
    note(f"{daemons} daemons …")
    with _daemons(place, api, daemons) as processes:
        version = _echo_version(api)
        template = api.post(
            f"/api/v2/organizations/{version['organization_id']}/templates",
            {"name": "echo", "template_version_id": version["id"]},
        )
        rows = _idle_cost(processes)
        note(f"{builds} builds …")
        made = [
            api.post("/api/v2/users/me/workspaces", {"name": f"e{number}", "template_id": template["id"]})
            for number in range(builds)
        ]
        began = time.perf_counter()
        again = []
        for one in made:
            api.ended(f"/api/v2/workspacebuilds/{one['latest_build']['id']}")
        for one in made:
            again.append(api.post(f"/api/v2/workspaces/{one['id']}/builds", {"transition": "stop"}))
        jobs = [api.ended(f"/api/v2/workspacebuilds/{one['id']}")["job"] for one in again]
        took = time.perf_counter() - began
        rows += _shares(jobs, daemons, builds, took, api)
    return rows


def _echo_version(api: Api) -> Any:
    files = api.call("POST", "/api/v2/files", raw=echo_archive(), kind="application/x-tar")
    body = {"storage_method": "file", "file_id": files["hash"], "provisioner": "echo", "tags": {}}
    made = api.post(f"/api/v2/organizations/{api.me['organization_ids'][0]}/templateversions", body)
    return api.ended(f"/api/v2/templateversions/{made['id']}")


def _shares(jobs: list[Any], daemons: int, builds: int, took: float, api: Api) -> list[dict[str, Any]]:
    """How long each job stood in the queue although its daemon was free, and whether one ran twice."""
    last: dict[str, float] = {}
    gaps = []
    for job in sorted(jobs, key=lambda one: _at(one["started_at"])):
        free = max(last.get(job["worker_id"], 0.0), _at(job["created_at"]))
        gaps.append(max(0.0, _at(job["started_at"]) - free))
        last[job["worker_id"]] = _at(job["completed_at"])
    twice = 0
    for job in jobs:
        logs = api.get(f"/api/v2/workspacebuilds/{job['input']['workspace_build_id']}/logs")
        twice += sum(line["stage"] == "Setting up" for line in logs) != 1
    note(f"{len(last)} daemons took part, {took:.1f} s")
    name = f"{builds} echo builds on {daemons} daemons"
    return [
        row(f"{name}: scheduling gap, median", statistics.median(gaps) * 1000, "ms", 150),
        row(f"{name}: scheduling gap, longest", max(gaps) * 1000, "ms", 150),
        row(f"{name}: jobs run twice", twice, "jobs", 0),
    ]


def _idle_cost(processes: list[subprocess.Popen[bytes]]) -> list[dict[str, Any]]:
    note("idle daemons (10 s) …")
    time.sleep(2)
    before = [_cpu(process.pid) for process in processes]
    time.sleep(10)
    spent = [after - first for first, after in zip(before, map(_cpu, [one.pid for one in processes]), strict=True)]
    memory = statistics.median(rss(process.pid) for process in processes)
    return [
        row("idle daemon RSS, median", memory, "MiB", 60),
        row("idle daemon CPU, median", statistics.median(spent) / 10 * 100, "% of a core", 0.2),
    ]


def _cpu(pid: int) -> float:
    """Seconds of processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
