"""The health report, the debug routes and the metrics."""

from __future__ import annotations

import re
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from functools import partial
from types import SimpleNamespace
from typing import cast

import pytest
import trio

from coder.agent.counters import FAMILIES as FORWARDED_BY_OURS
from coder.appproxy.metrics.metric_families import Family, exposition
from coder.base.secret import Secret
from coder.coderd.config.settings import ServerConfig
from coder.coderd.services.foundation.context import Context
from coder.coderd.services.foundation.this_process import ThisProcess
from coder.coderd.services.site import health
from coder.coderd.services.site.health import HealthReports
from coder.coderd.services.site.health_settings import SECTIONS
from coder.coderd.services.telemetry.fault_metrics import FAULTS
from coder.coderd.services.telemetry.metrics import _PROCESSES, Metrics
from coder.net.dial import DialPolicy
from coder.net.websocket import connect_websocket
from coder.rpc.proto import agent_pb2
from tests.kit.agents.scripted_agent import connected_agent
from tests.kit.agents.scripted_agent import workspace_world as agent_world
from tests.kit.api.api_description import check
from tests.kit.api.http_clients import http_client
from tests.kit.paths import DATA, ROOT
from tests.kit.server.server_in_process import running_coderd
from tests.kit.server.workspaces import new_workspace, workspace_world

SHAPES = {
    "access_url": "AccessURLReport",
    "websocket": "WebsocketReport",
    "database": "DatabaseReport",
    "workspace_proxy": "WorkspaceProxyReport",
    "provisioner_daemons": "ProvisionerDaemonsReport",
}
RECORDED = DATA / "api" / "recorded" / "metrics.tsv"


async def test_sections_can_be_dismissed() -> None:
    async with running_coderd(first_user=True, health_check_threshold_database=timedelta(minutes=1)) as world:
        report = (await world.get("/api/v2/debug/health")).json()
        # not the whole report: the schema takes the map of regions for a list
        for name, kind in SHAPES.items():
            check(kind, report[name])
        check("DERPRegionReport", report["derp"]["regions"]["999"])
        sections = ("derp", "access_url", "websocket", "database", "workspace_proxy", "provisioner_daemons")
        assert {name: report[name]["severity"] for name in sections} == {
            **dict.fromkeys(sections, "ok"),
            "provisioner_daemons": "error",
        }
        assert not report["healthy"]
        assert report["provisioner_daemons"]["error"] == "EPD01: No active provisioner daemons found!"
        assert report["derp"]["regions"]["999"]["node_reports"][0]["can_exchange_messages"]
        settings = "/api/v2/debug/health/settings"
        expected = {"dismissed_healthchecks": ["ProvisionerDaemons"]}
        assert (await world.put(settings, expected)).status_code == 200
        assert (await world.put(settings, expected)).status_code == 204
        assert (await world.put(settings, {"dismissed_healthchecks": ["Moon"]})).status_code == 500
        for nothing, view in (({}, None), ({"dismissed_healthchecks": []}, [])):
            for status in (200, 204):
                answer = await world.put(settings, nothing)
                assert answer.status_code == status
                assert status == 204 or answer.json() == {"dismissed_healthchecks": view}
            assert (await world.get(settings)).json() == {"dismissed_healthchecks": []}
        assert (await world.put(settings, expected)).status_code == 200
        for force in ("false", "true"):  # of a cached report, too
            report = (await world.get("/api/v2/debug/health", params={"force": force})).json()
            assert report["healthy"] and report["provisioner_daemons"]["dismissed"], force
        assert (await world.put(settings, {"dismissed_healthchecks": list(SECTIONS)})).status_code == 200
        report = (await world.get("/api/v2/debug/health", params={"force": "true"})).json()
        assert (report["healthy"], report["severity"]) == (True, "ok")
        assert report["provisioner_daemons"]["severity"] == "error", "it is still checked"
        assert (await world.put(settings, expected)).status_code == 200
        simple = (await world.get("/api/v2/debug/health", params={"format": "simple"})).json()
        assert simple["healthy"] and simple["derp"] and not simple["provisioner_daemons"]
        text = await world.get("/api/v2/debug/health", params={"format": "text"})
        assert text.headers["content-type"] == "text/plain; charset=utf-8"
        lines = [line.partition(": ") for line in text.text.splitlines()]
        assert [name for name, _, _ in lines] == ["time", "healthy", "derp", "access_url", "websocket", "database"]
        assert lines[0][2] == f"{report['time'][:19]}Z" and {value for _, _, value in lines[1:]} == {"true"}
        _, token = await world.member()
        for path in ("health", "metrics", "pprof/cmdline", "expvar", "coordinator", "ws"):
            assert (await world.get(f"/api/v2/debug/{path}", token=token)).status_code == 403
            assert (await world.get(f"/api/v2/debug/{path}", token="")).status_code == 401


async def test_forced_reports_are_shared(monkeypatch: pytest.MonkeyPatch, autojump_clock: None) -> None:
    """A report that began after the request also answers it: five concurrent requests cause two reports."""
    created = []

    async def make(_ctx: Context, _token: Secret) -> object:
        await trio.sleep(30)
        created.append(trio.current_time())
        return SimpleNamespace(time=datetime(2026, 1, 6, tzinfo=UTC))

    async def nothing(_ctx: Context) -> list[str]:
        raise OSError("the database is away")

    monkeypatch.setattr(health, "make_report", make)
    monkeypatch.setattr(health, "dismissed", nothing)
    monkeypatch.setattr(health, "with_dismissed", lambda report, ignored: (report, ignored))
    config = SimpleNamespace(health_check_refresh=timedelta(minutes=10))
    clock = SimpleNamespace(now=lambda: datetime(2026, 1, 6, tzinfo=UTC))
    reports = HealthReports(cast("Context", SimpleNamespace(config=config, clock=clock)))
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(partial(reports.get, Secret("x"), force=True))
            await trio.sleep(1)
    assert len(created) == 2
    await reports.get(Secret("x"))
    assert len(created) == 2, "the cached report is valid for ten minutes"
    await reports.get(Secret("x"), force=True)
    assert len(created) == 3


async def test_unreachable_access_url() -> None:
    async with running_coderd(first_user=True, access_url="http://127.0.0.1:9") as world:
        report = (await world.get("/api/v2/debug/health")).json()
        assert not report["access_url"]["healthy"] and report["access_url"]["error"].startswith("EACS03")
        assert not report["websocket"]["healthy"] and not report["derp"]["healthy"]


UPSTREAMS_NAME = 'coderd_api_total_user_count non-histogram and non-summary metrics should not have "_count" suffix'
"""The only complaint of Prometheus' linter: dashboards and alerts use the metric by this name."""


def check_with_promtool(text: str) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        return
    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    said = [line for line in (checked.stdout + checked.stderr).splitlines() if line.strip()]
    assert set(said) <= {UPSTREAMS_NAME}, said
    assert checked.returncode in {0, 3}  # 3: the linter found problems


async def test_metrics_are_upstreams() -> None:
    rows = [line.split("\t") for line in RECORDED.read_text().splitlines()[1:]]
    recorded = {row[0]: (row[1], tuple(filter(None, row[2].split(",")))) for row in rows}
    async with workspace_world(prometheus_enable=True, prometheus_address="127.0.0.1:0") as (world, _):
        await new_workspace(world)
        async with http_client() as client:
            url = f"http://127.0.0.1:{world.ctx.services.metrics_port}"
            answer = await client.get(url)
            assert (await client.get(f"{url}/other")).status_code == 404
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        own = {name for name, *_ in FAULTS}
        for family in world.ctx.services.metrics.families.values():
            assert family.name in own or (family.kind, tuple(sorted(family.labels))) == recorded[family.name], (
                family.name
            )
    text = answer.text
    result = {match[1] for match in re.finditer(r"^# TYPE (\S+) ", text, re.MULTILINE)}
    assert len(result) > 40
    check_with_promtool(text)
    template = 'template_name="full"'
    assert re.search(rf'coderd_workspace_builds_total\{{status="success",{template},.*START"\}} 1', text)
    assert 'coderd_api_total_user_count{status="active"} 1' in text
    assert 'method="POST",path="/api/v2/users/login"} 1' in text
    assert 'path="/api/v2/workspaces/{workspace}"' in text and "/api/v2/workspaces/0" not in text


@pytest.mark.parametrize("name", [name for name, *_ in (*FAULTS, *_PROCESSES)])
def test_own_families_are_documented(name: str) -> None:
    assert f"| `{name}` |" in (ROOT / "docs/guides/metrics.md").read_text()


def test_recorded_families_are_served() -> None:
    recorded = {line.split("\t")[0] for line in RECORDED.read_text().splitlines()[1:]}
    page = (ROOT / "docs" / "guides" / "metrics.md").read_text()
    left_out = re.findall(r"^- `(\w+)`$", page, re.MULTILINE)
    config = ServerConfig(prometheus_collect_agent_stats=True, prometheus_collect_db_metrics=True)
    served = set(Metrics(cast("Context", SimpleNamespace(config=config, process=ThisProcess()))).families) | set(
        FORWARDED_BY_OURS
    )
    assert len(left_out) == len(set(left_out)) and served & set(left_out) == set()
    assert recorded == (served & recorded) | set(left_out)


async def test_open_streams_are_counted() -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world)
        metrics = world.ctx.services.metrics
        policy = DialPolicy(world.url, token=Secret(world.token))
        watching, coordinating = "/api/v2/workspaces/{workspace}/watch-ws", "/api/v2/tailnet"
        async with (
            await connect_websocket(policy, f"/api/v2/workspaces/{workspace['id']}/watch-ws") as watch,
            await connect_websocket(policy, "/api/v2/tailnet?version=2.0"),
        ):
            await watch.receive_message()
            probed = f'coderd_api_websocket_probes_total{{path="{watching}",result="success"}} 1'
            async with trio.open_nursery() as nursery:
                nursery.start_soon(watch.receive_message)  # reading answers pings
                with trio.fail_after(60):
                    while probed not in await metrics.exposition():
                        await trio.sleep(0.02)
                nursery.cancel_scope.cancel()
            text = await metrics.exposition()
            for path in (watching, coordinating):
                assert f'coderd_api_concurrent_websockets{{path="{path}"}} 1' in text
                assert f'coderd_api_websocket_durations_seconds_count{{path="{path}"}}' not in text
            view = (await world.get("/api/v2/debug/metrics")).text
            assert 'coderd_api_concurrent_requests{method="GET",path="/api/v2/debug/metrics"} 1' in view
            assert "promhttp_metric_handler_requests_in_flight 1" in view
        with trio.fail_after(60):
            while {watching, coordinating} & set(metrics_open(text)):
                await trio.sleep(0.02)
                text = await metrics.exposition()
        for path in (watching, coordinating):
            assert f'coderd_api_websocket_durations_seconds_count{{path="{path}"}} 1' in text
        assert (
            'coderd_workspace_creation_total{organization_name="coder",preset_name="",template_name="full"} 1' in text
        )
        waited = 'build_reason="initiator",job_type="workspace_build",provisioner_type="echo",transition="start"'
        assert f"coderd_provisioner_job_queue_wait_seconds_count{{{waited}}} 1" in text
        for name in ("receive", "transmit"):
            assert f"process_network_{name}_bytes_total" in text
        assert "coder_pubsub_connected 1" in text and "coder_pubsub_current_subscribers 0" not in text


def metrics_open(text: str) -> list[str]:
    return re.findall(r'^coderd_api_concurrent_websockets\{path="([^"]+)"\}', text, re.MULTILINE)


def test_the_text_form() -> None:
    counter = Family("a_total", "counter", "Words.", ("label",))
    counter.add('say "hi"\n\\')
    times = Family("b_seconds", "histogram", "Times.", (), (0.1, 1.0))
    for value in (0.05, 0.1, 0.5, 7):
        times.observe(value)
    assert exposition([times, counter]) == (
        "# HELP a_total Words.\n# TYPE a_total counter\n"
        'a_total{label="say \\"hi\\"\\n\\\\"} 1.0\n'
        "# HELP b_seconds Times.\n# TYPE b_seconds histogram\n"
        'b_seconds_bucket{le="0.1"} 2.0\nb_seconds_bucket{le="1"} 3.0\nb_seconds_bucket{le="+Inf"} 4.0\n'
        "b_seconds_sum 7.65\nb_seconds_count 4.0\n"
    )


@pytest.mark.parametrize("collect", [True, False])
async def test_agent_metrics_are_forwarded(collect: bool) -> None:
    async with agent_world(prometheus_collect_agent_stats=collect) as machine:
        sent = agent_pb2.Stats.Metric(
            name="agent_sessions_total",
            type=agent_pb2.Stats.Metric.COUNTER,
            value=3,
            labels=[
                agent_pb2.Stats.Metric.Label(name="magic_type", value="ssh"),
                agent_pb2.Stats.Metric.Label(name="pty", value="yes"),
            ],
        )
        unknown = agent_pb2.Stats.Metric(name="no_kind", value=3)
        request = agent_pb2.UpdateStatsRequest(stats=agent_pb2.Stats(metrics=[sent, unknown]))
        async with connected_agent(machine) as item:
            await item.call("UpdateStats", request, agent_pb2.UpdateStatsResponse)
        text = await machine.world.ctx.services.metrics.exposition()
    template = r'template_name="[^"]+",username="admin",workspace_name="dev"'
    line = rf'^agent_sessions_total\{{agent_name="main",magic_type="ssh",pty="yes",{template}\}} 3.0$'
    assert bool(re.search(line, text, re.MULTILINE)) == collect
    assert "no_kind" not in text
