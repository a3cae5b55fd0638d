"""The build report of a template: counts, times by stage, errors, agents that never connected, and who sees what."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from coder.api.templates.build_report import ReportedBuild
from coder.base.clock import FakeClock
from coder.coderd.services.templates.build_report import first_line, group_errors
from coder.rpc.proto import provisioner_pb2 as pb
from tests.kit.provisioners.scripted_provisioner import Answers, agent, connected_daemon, resource
from tests.kit.server.workspaces import create, new_workspace, settled, without_daemon, workspace_world

ERROR = "\nError: no capacity in eu\nmore of it"


def _timing(stage: str, start: float, end: float) -> Any:
    timing = pb.Timing(action="create", source="terraform", resource=stage, stage=stage, state=pb.COMPLETED)
    base = datetime(2026, 1, 6, tzinfo=UTC).timestamp()
    for field, moment in (("start", start), ("end", end)):
        getattr(timing, field).FromMicroseconds(int((base + moment) * 1_000_000))
    return timing


def _build(job: Any) -> dict[str, Any]:
    if job.workspace_build.metadata.workspace_name.startswith("bad"):
        return {"error": ERROR}
    timings = [_timing("plan", 0, 2), _timing("plan", 1, 4), _timing("apply", 4, 5)]
    return {"state": b"{}", "resources": [resource("box", agents=[agent()])], "timings": timings}


async def test_report_of_a_template() -> None:
    clock = FakeClock(datetime.now(UTC))
    answers = Answers(import_=lambda job: {"start_resources": [resource("box", agents=[agent()])]}, build=_build)
    async with workspace_world(answers, clock=clock) as (world, _):
        template = world.extra["template"]["id"]
        await new_workspace(world, "good")
        clock.advance(1)
        await new_workspace(world, "bad-one")
        clock.advance(1)
        _, alice = await world.member("alice")
        made = await create(world, "bad-two", token=alice)
        await settled(world, made.json()["id"])
        _, auditor = await world.member("auditor", ["auditor"])
        path = f"/api/v2/templates/{template}/build-report"
        clock.advance(300)  # the agent's time to connect is two minutes

        report = (await world.get(path)).json()
        (version,) = report["versions"]
        assert (version["active"], version["succeeded"], version["failed"], version["canceled"]) == (True, 1, 2, 0)
        assert version["never_connected"] == 1
        stages = {stage["stage"]: (stage["samples"], stage["p50_ms"]) for stage in version["stages"]}
        assert {"plan": (1, 4000), "apply": (1, 1000)}.items() <= stages.items()
        assert list(stages) == ["queue", "plan", "apply", "total"]
        (error,) = report["errors"]
        assert (error["error"], error["count"]) == ("Error: no capacity in eu", 2)
        assert [build["workspace_name"] for build in error["builds"]] == ["bad-two", "bad-one"]
        assert [build["never_connected"] for build in report["unconnected"]] == [["main"]]
        assert [build["status"] for build in report["latest"]] == ["failed", "failed", "succeeded"]
        assert (report["builds"], report["limited"]) == (3, False)

        # An auditor may view insights, but no workspaces: figures only.
        seen = (await world.get(path, token=auditor)).json()
        assert seen["versions"] == report["versions"]
        assert (seen["errors"], seen["unconnected"], seen["latest"]) == ([], [], [])
        assert (await world.get(path, token=alice)).status_code == 404


async def test_report_quotes_log_for_exit_status() -> None:
    """Terraform says only in its log why it failed; a framed line and the quoted template are not the reason."""
    reasons = {"status": "terraform apply: exit status 1", "reason": "no quota in eu"}

    def build(job: Any) -> dict[str, Any]:
        return {"error": reasons[job.workspace_build.metadata.workspace_name]}

    answers = Answers(build=build, errors=lambda job: ("╷", "", "  28:   condition = false", "Error: image refused"))
    async with workspace_world(answers) as (world, _):
        for name in reasons:
            await new_workspace(world, name)
        report = (await world.get(f"/api/v2/templates/{world.extra['template']['id']}/build-report")).json()
        assert {error["error"] for error in report["errors"]} == {"Error: image refused", "no quota in eu"}


async def test_canceled_build_with_error_is_no_failure() -> None:
    async with workspace_world() as (world, _):
        await without_daemon(world)
        made = (await create(world, "ws")).json()
        async with connected_daemon(world) as daemon:
            job = await daemon.acquire()
            canceled = await world.patch(f"/api/v2/workspacebuilds/{made['latest_build']['id']}/cancel")
            assert canceled.status_code == 200, canceled.text
            await daemon.fail(job, "terraform apply: exit status 1")
        report = (await world.get(f"/api/v2/templates/{world.extra['template']['id']}/build-report")).json()
    (version,) = report["versions"]
    assert (version["succeeded"], version["failed"], version["canceled"]) == (0, 0, 1)
    assert report["errors"] == []
    assert [build["status"] for build in report["latest"]] == ["canceled"]


@pytest.mark.parametrize(
    ("error", "line"), [("", ""), (" \n\t\n", ""), ("\n  Error: x \nmore", "Error: x"), ("y" * 400, "y" * 300)]
)
def test_first_line_of_error(error: str, line: str) -> None:
    assert first_line(error) == line


def test_commonest_error_comes_first() -> None:
    def failed(error: str, number: int) -> ReportedBuild:
        return ReportedBuild(
            workspace_owner_name="ana",
            workspace_name="ws",
            build_number=number,
            template_version_id=uuid4(),
            template_version_name="v",
            transition="start",
            created_at=datetime.now(UTC),
            status="failed",
            duration_ms=None,
            error=error,
            never_connected=[],
        )

    builds = [failed("rare", 99), *(failed("common", number) for number in range(9, 0, -1))]
    assert [
        (group.error, group.count, [build.build_number for build in group.builds]) for group in group_errors(builds)
    ] == [
        ("common", 9, [9, 8, 7, 6, 5]),
        ("rare", 1, [99]),
    ]
