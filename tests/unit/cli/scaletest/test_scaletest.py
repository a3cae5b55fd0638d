"""Load on a deployment: bounded, measured, and cleaned up exactly."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio
import trio.testing

from coder.base.errors import CoderError
from coder.cli.scaletest import dashboard, traffic
from coder.cli.scaletest.ledger import FILE, Ledger, new_names
from coder.cli.scaletest.runs import ScaletestRun, chosen_range, percentiles, run_all
from coder.net.policy import DialPolicy
from tests.kit.agents.real_agent import running_agent
from tests.kit.agents.scripted_agent import workspace_world as agent_world
from tests.kit.programs.command_line import Result, run_cli
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import workspace_world


async def scaletest(world: World, home: Path, words: str, code: int = 0) -> Result:
    env = {"CODER_URL": world.url, "CODER_SESSION_TOKEN": world.token, "CODER_CONFIG_DIR": str(home)}
    result = await run_cli(["exp", "scaletest", *words.split()], home=home, env=env)
    assert result.code == code, result.stderr + result.stdout
    return result


async def names_of(world: World) -> tuple[set[str], set[str]]:
    """Return the existing workspaces and users."""
    workspaces = (await world.get("/api/v2/workspaces")).json()["workspaces"]
    users = (await world.get("/api/v2/users")).json()["users"]
    return {workspace["name"] for workspace in workspaces}, {user["username"] for user in users}


async def test_cleanup_deletes_exactly_what_was_created(tmp_path: Path) -> None:
    async with workspace_world() as (world, _):
        template = world.extra["template"]
        body = {"template_id": template["id"], "name": "scaletest-mine"}
        assert (await world.post("/api/v2/users/me/workspaces", body)).status_code == 201
        before = await names_of(world)
        out = tmp_path / "out.json"
        make = f"create-workspaces -t {template['name']} -c 3 --concurrency 2 --no-wait-for-agents --no-cleanup"
        output = await scaletest(world, tmp_path, f"{make} --output text,json:{out}")
        assert "create-workspaces: 3 runs, 0 failed" in output.stdout
        result = json.loads(out.read_text())
        assert (result["total_runs"], result["total_pass"], result["total_fail"]) == (3, 3, 0)
        assert set(result["durations"]) == {"p50_ms", "p95_ms", "p99_ms", "max_ms"}
        assert all(run["error"] is None and run["metrics"]["build_ms"] > 0 for run in result["runs"].values())
        workspaces, users = await names_of(world)
        names = set(result["runs"])
        assert workspaces == before[0] | names and users == before[1] | names, "each has its own user"
        assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
        other_template = await scaletest(world, tmp_path, "cleanup --template other")
        assert "0 removed" in other_template.stderr
        cleaned_up = await scaletest(world, tmp_path, "cleanup --cleanup-concurrency 3")
        assert "6 removed, 0 could not be" in cleaned_up.stderr
        assert await names_of(world) == before
        assert "0 removed" in (await scaletest(world, tmp_path, "cleanup")).stderr
        # Cleaned up at the end; and with --use-host-login no user is created.
        await scaletest(
            world, tmp_path, f"create-workspaces -t {template['name']} --use-host-login --no-wait-for-agents"
        )
        assert await names_of(world) == before


async def test_traffic_through_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (name,) = new_names(1)
    scopes, pauses = list[trio.CancelScope](), list[float]()

    def begin(_seconds: float) -> trio.CancelScope:
        scopes.append(trio.CancelScope())
        return scopes[-1]

    async def rest(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            scopes[0].cancel()  # the time is over, however long the echoes took
        await trio.sleep(seconds)

    of_ticks = SimpleNamespace(current_time=trio.current_time, move_on_after=begin, sleep=rest)
    monkeypatch.setattr(traffic, "trio", of_ticks)
    async with agent_world(allow_workspace_renames=True) as view:
        world = view.world
        renamed = await world.patch(f"/api/v2/workspaces/{view.workspace['id']}", {"name": name})
        assert renamed.status_code == 204, renamed.text
        Ledger(tmp_path, world.url).record("workspace", "admin", name)
        Ledger(tmp_path, "http://other.example").record("workspace", "admin", name)
        async with running_agent(view, DialPolicy(world.url), tmp_path / "agent"):
            Ledger(tmp_path, world.url).record("workspace", "alice", new_names(1)[0])
            words = "workspace-traffic --use-host-login --output json"
            words += " --bytes-per-tick 100 --tick-interval 50ms"
            result = json.loads((await scaletest(world, tmp_path, words)).stdout)
    (run,) = result["runs"].values()
    figures = run["metrics"]
    assert (figures["ticks"], figures["bytes_written"], figures["bytes_read"]) == (3, 300, 300)
    assert all(0 <= pause <= 0.05 for pause in pauses)
    assert figures["echo"]["p50_ms"] > 0


async def test_visitors_of_the_dashboard(tmp_path: Path) -> None:
    """Each opens a page, also without time for a second one."""
    async with workspace_world() as (world, _):
        words = "dashboard --target-users 0:3 --concurrency 3 --job-timeout 1ms --output json"
        words += " --interval 400ms --jitter 200ms"
        result = json.loads((await scaletest(world, tmp_path, words)).stdout)
    assert set(result["runs"]) == {"visitor-0", "visitor-1", "visitor-2"} and result["total_fail"] == 0
    for run in result["runs"].values():
        assert [page["count"] for page in run["metrics"]["pages"].values()] == [1]


async def test_visitor_opens_pages_until_time_is_over(autojump_clock: trio.testing.MockClock) -> None:
    class Server:
        async def request(self, _method: str, _path: str, *, expect: tuple[int, ...]) -> None:
            assert 200 in expect
            await trio.sleep(0.1)

    options = SimpleNamespace(rand_seed=1, interval=timedelta(seconds=0.4), jitter=timedelta())
    run = ScaletestRun("visitor-0")
    await dashboard._visit(cast("Any", SimpleNamespace(options=options)), cast("Any", Server()), 0, 2.2, run)
    assert trio.current_time() == pytest.approx(2.1)
    pages = cast("dict[str, dict[str, float]]", run.figures["pages"])
    assert sum(page["count"] for page in pages.values()) == 5
    assert {page["p50_ms"] for page in pages.values()} == {100}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("create-workspaces", "--template is required"),
        ("create-workspaces -t x -c 0", "--count must be"),
        ("create-workspaces -t x --trace", "--trace is not supported"),
        ("workspace-traffic --ssh", "--ssh is not supported"),
        ("dashboard --cleanup-timeout 1m", "creates nothing to delete"),
        ("workspace-traffic --bytes-per-tick 100000", "bytes per tick"),
        ("dashboard --output csv", "neither text nor json"),
        ("dashboard --target-users three", "not a range"),
        ("dashboard --target-users 0:2 --concurrency 1000", "at a time"),
        ("dashboard --jitter 20s", "--jitter below it"),
    ],
)
async def test_unsupported_options_are_rejected_first(words: str, message: str, tmp_path: Path) -> None:
    env = {"CODER_URL": "http://127.0.0.1:9", "CODER_SESSION_TOKEN": "x"}
    result = await run_cli(["exp", "scaletest", *words.split()], home=tmp_path, env=env)
    assert result.code == 1 and message in result.stderr


async def test_concurrency_and_timeouts(autojump_clock: trio.testing.MockClock) -> None:
    running, peak = 0, 0

    async def work(seconds: float, _run: ScaletestRun) -> None:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        try:
            await trio.sleep(seconds)
            if seconds == 2:
                raise CoderError("x", "two is odd")
        finally:
            running -= 1

    def job(number: int) -> Any:
        async def do(run: ScaletestRun) -> None:
            await work(number, run)

        return f"run-{number}", do

    runs = await run_all([job(number) for number in (1, 2, 3, 50)], concurrency=2, timeout=100, job_timeout=10)
    assert peak == 2
    assert [(run.name, run.seconds, run.error) for run in runs] == [
        ("run-1", 1, ""),
        ("run-2", 2, "two is odd"),
        ("run-3", 3, ""),
        ("run-50", 10, "it timed out"),
    ]


def test_percentiles_use_nearest_rank() -> None:
    assert percentiles([]) == {}
    assert percentiles([0.004, 0.001, 0.003, 0.002]) == {"p50_ms": 2, "p95_ms": 4, "p99_ms": 4, "max_ms": 4}


@pytest.mark.parametrize(
    ("text", "expected"), [("", [0, 1, 2]), ("1:", [1, 2]), (":2", [0, 1]), ("2:99", [2]), ("9:", [])]
)
def test_ranges(text: str, expected: list[int]) -> None:
    assert list(chosen_range(text, "x", 3)) == expected
