"""Each metric family changes when its cause happens: one server, one cause after the other."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import trio
from sqlalchemy import text

from coder.base.secret import Secret
from coder.coderd.services.proxies.proxy_health import check_proxies
from coder.coderd.services.site.retention import purge_due
from coder.coderd.services.telemetry.fault_metrics import FAULTS
from coder.coderd.services.workspaces.autobuilds import take_due_steps
from coder.coderd.store.workspaces.port_shares import PortShareRow, put_port_share
from coder.net.dial import DialPolicy
from coder.net.websocket import connect_websocket
from coder.rpc.proto import agent_pb2
from coder.rpc.proto import provisioner_pb2 as pb
from tests.kit.agents.real_agent import exchange, running_overlay_agent
from tests.kit.agents.scripted_agent import AgentWorld, connected_agent, eventually, start_workspace
from tests.kit.provisioners.scripted_provisioner import connected_daemon, new_template
from tests.kit.server.server_in_process import World, running_coderd


@dataclass
class Scene:
    world: World
    machine: AgentWorld | None = None

    @property
    def started(self) -> AgentWorld:
        assert self.machine is not None
        return self.machine

    async def families(self) -> dict[str, list[str]]:
        """Lines by family."""
        result: dict[str, list[str]] = {}
        lines: list[str] = []
        for line in (await self.world.ctx.services.metrics.exposition()).splitlines():
            if line.startswith("# TYPE "):
                lines = result.setdefault(line.split()[2], [])
            elif not line.startswith("#"):
                lines.append(line)
        return result


Cause = Callable[[Scene], AbstractAsyncContextManager[Any]]


@asynccontextmanager
async def new_user_logs_in(scene: Scene) -> AsyncIterator[None]:
    _, token = await scene.world.member("carla")
    await scene.world.get("/api/v2/users/me", token=token)
    yield


@asynccontextmanager
async def a_job_runs(scene: Scene) -> AsyncIterator[None]:
    async with connected_daemon(scene.world) as daemon:
        await new_template(scene.world, "waiting")
        job = await daemon.acquire()
        yield
        await daemon.fail(job, "no more of this")


@asynccontextmanager
async def a_workspace_is_built(scene: Scene) -> AsyncIterator[None]:
    app = pb.App(slug="code", display_name="Code", url="http://localhost:1", healthcheck=pb.Healthcheck(url="http://x"))
    scene.machine = await start_workspace(scene.world, {"apps": [app]})
    yield


@asynccontextmanager
async def its_agent_reports(scene: Scene) -> AsyncIterator[None]:
    stats = agent_pb2.Stats(
        connection_count=1,
        connection_median_latency_ms=7,
        rx_bytes=3,
        tx_bytes=4,
        session_count_ssh=1,
        session_count_vscode=1,
        session_count_jetbrains=1,
        session_count_reconnecting_pty=1,
        connections_by_proto={"TCP": 1},
    )
    async with connected_agent(scene.started) as item:
        await item.call("UpdateStats", agent_pb2.UpdateStatsRequest(stats=stats), agent_pb2.UpdateStatsResponse)
        for state in (agent_pb2.Lifecycle.STARTING, agent_pb2.Lifecycle.READY):
            lifecycle = agent_pb2.Lifecycle(state=state, changed_at=_now())
            request = agent_pb2.UpdateLifecycleRequest(lifecycle=lifecycle)
            await item.call("UpdateLifecycle", request, agent_pb2.Lifecycle)
        yield


def _now() -> Any:
    from google.protobuf.timestamp_pb2 import Timestamp

    now = Timestamp()
    now.FromDatetime(datetime.now(UTC))
    return now


@asynccontextmanager
async def its_agent_is_dialled(scene: Scene) -> AsyncIterator[None]:
    async with running_overlay_agent(scene.started):
        with trio.fail_after(60):
            dialer = scene.world.ctx.agent_dialer
            assert dialer is not None
            await exchange(await dialer.dial(scene.started.agent_id, 7))
        yield


@asynccontextmanager
async def a_page_watches(scene: Scene) -> AsyncIterator[None]:
    path = f"/api/v2/workspaces/{scene.started.workspace['id']}/watch-ws"
    watch = await connect_websocket(DialPolicy(scene.world.url, token=Secret(scene.world.token)), path)
    async with watch, trio.open_nursery() as nursery:
        await watch.receive_message()
        nursery.start_soon(watch.receive_message)  # reading answers pings
        yield
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def an_inbox_is_watched(scene: Scene) -> AsyncIterator[None]:
    policy = DialPolicy(scene.world.url, token=Secret(scene.world.token))
    async with await connect_websocket(policy, "/api/v2/notifications/inbox/watch"):
        yield


@asynccontextmanager
async def page_is_closed(scene: Scene) -> AsyncIterator[None]:
    async with a_page_watches(scene):
        pass
    yield


@asynccontextmanager
async def a_message_is_sent(scene: Scene) -> AsyncIterator[None]:
    await scene.world.post("/api/v2/notifications/test")
    yield


@asynccontextmanager
async def notices_are_lost(scene: Scene) -> AsyncIterator[None]:
    async def cut(tx: Any) -> None:
        sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        await tx.execute(text(f"{sql} AND query LIKE '%LISTEN%' AND pid <> pg_backend_pid()"))

    await scene.world.ctx.db.run(cut)
    yield


@asynccontextmanager
async def the_loops_take_a_turn(scene: Scene) -> AsyncIterator[None]:
    ctx, workspace = scene.world.ctx, UUID(scene.started.workspace["id"])
    over = ctx.clock.now() - timedelta(days=9)
    await ctx.db.run(put_port_share, PortShareRow(workspace, "main", 8080, "public", "http", over))
    await check_proxies(ctx)
    await take_due_steps(ctx)
    await purge_due(ctx)
    yield


DERP = "coder_derp_server_"
CAUSES: dict[Cause, str] = {
    new_user_logs_in: """coderd_api_requests_processed_total coderd_api_request_latencies_seconds
        coderd_api_total_user_count coderd_api_active_users_duration_hour coderd_license_active_users
        coder_pubsub_messages_total""",
    a_job_runs: """coderd_provisionerd_num_daemons coderd_provisionerd_jobs_current
        coderd_provisioner_job_queue_wait_seconds coderd_api_concurrent_websockets""",
    a_workspace_is_built: """coderd_api_workspace_latest_build coderd_workspace_latest_build_status coderd_agents_up
        coderd_agents_connections coderd_agents_apps coderd_provisionerd_job_timings_seconds
        coderd_provisionerd_workspace_build_timings_seconds coderd_workspace_builds_total
        coderd_workspace_builds_enqueued_total coderd_workspace_creation_total
        coderd_workspace_creation_duration_seconds coder_pubsub_received_bytes_total""",
    its_agent_reports: """coderd_agents_first_connection_seconds coderd_template_workspace_build_duration_seconds
        coderd_agentstats_connection_count coderd_agentstats_connection_median_latency_seconds
        coderd_agentstats_rx_bytes coderd_agentstats_tx_bytes coderd_agentstats_session_count_jetbrains
        coderd_agentstats_session_count_reconnecting_pty coderd_agentstats_session_count_ssh
        coderd_agentstats_session_count_vscode""",
    its_agent_is_dialled: f"""coderd_agents_connection_latencies_seconds {DERP}accepts_total {DERP}clients
        {DERP}clients_local {DERP}connections {DERP}home_connections {DERP}home_moves_in_total
        {DERP}packets_received_total {DERP}packets_received_kind_total {DERP}packets_sent_total
        {DERP}bytes_received_total {DERP}bytes_sent_total""",
    a_page_watches: "coderd_api_websocket_probes_total",
    an_inbox_is_watched: """coder_pubsub_current_events coder_pubsub_current_subscribers
        coder_pubsub_subscribes_total""",
    page_is_closed: "coderd_api_websocket_durations_seconds",
    a_message_is_sent: """coderd_notifications_dispatch_attempts_total coderd_notifications_inflight_dispatches
        coderd_notifications_dispatcher_send_seconds coderd_notifications_queued_seconds""",
    notices_are_lost: "coder_pubsub_disconnections_total",
    the_loops_take_a_turn: """coderd_proxyhealth_health_check_duration_seconds
        coderd_lifecycle_autobuild_execution_duration_seconds coderd_dbpurge_iteration_duration_seconds
        coderd_dbpurge_records_purged_total""",
}
"""Families that change, by cause."""

ELSEWHERE = {
    **dict.fromkeys((name for name, *_ in FAULTS), "test_fault_metrics.py"),
    "coder_pubsub_connected": "whether, not how much",
    "coderd_build_info": "it says the version, always 1",
    "coderd_license_errors": "always 0",
    "coderd_license_warnings": "always 0",
    "coderd_license_user_limit_enabled": "always 0",
    "coderd_prometheusmetrics_agents_execution_seconds": "each scrape moves it",
    "promhttp_metric_handler_requests_total": "each scrape moves it",
    "coderd_api_concurrent_requests": "there while a request is answered: test_health.py asks from within one",
    "promhttp_metric_handler_requests_in_flight": "1 in every scrape",
    **dict.fromkeys(
        (f"go_sql_{name}_connections" for name in ("max_open", "open", "in_use", "idle")),
        "test_database_connections_are_counted",
    ),
    **dict.fromkeys(
        (
            f"process_{name}"
            for name in (
                "cpu_seconds_total",
                "max_fds",
                "network_receive_bytes_total",
                "network_transmit_bytes_total",
                "open_fds",
                "resident_memory_bytes",
                "start_time_seconds",
                "virtual_memory_bytes",
                "virtual_memory_max_bytes",
            )
        ),
        "the kernel's figures, there at every scrape",
    ),
    **dict.fromkeys(
        (
            f"{DERP}{name}"
            for name in (
                "clients_remote",
                "got_ping_total",
                "home_moves_out_total",
                "packets_dropped_reason_total",
                "packets_dropped_total",
                "packets_dropped_type_total",
                "packets_forwarded_in_total",
                "packets_forwarded_out_total",
                "peer_gone_disconnected_total",
                "peer_gone_not_here_total",
                "sent_pong_total",
                "unknown_frames_total",
                "watchers",
            )
        ),
        "counted by the relay: tests/unit/mesh/drivers/test_derp_server.py and test_derp.py",
    ),
}
"""Other families, each with a reason."""


async def test_families_count_their_events() -> None:
    named = [name for names in CAUSES.values() for name in names.split()]
    assert len(named) == len(set(named))
    async with running_coderd(first_user=True, prometheus_collect_agent_stats=True) as world:
        assert {*named, *ELSEWHERE} == set(world.ctx.services.metrics.families)
        assert not ELSEWHERE.keys() & set(named)
        scene = Scene(world)
        still: dict[str, list[str]] = {}
        for cause, names in CAUSES.items():
            before, missing = await scene.families(), set(names.split())

            async def moved(before: dict[str, list[str]] = before, missing: set[str] = missing) -> bool:
                now = await scene.families()
                missing -= {name for name in missing if now.get(name, []) != before.get(name, [])}
                return not missing

            async with cause(scene):
                try:
                    await eventually(moved)
                except trio.TooSlowError:
                    still[cause.__name__] = sorted(missing)
        assert still == {}


async def test_database_connections_are_counted() -> None:
    async with running_coderd(postgres_conn_max_open=3) as world:
        pool = world.ctx.db.pool

        async def look(_tx: Any) -> tuple[int, int, int]:
            result = pool()
            return result.limit, result.in_use, result.in_use + result.idle

        most, in_use, there = await world.ctx.db.run(look)
        assert most == 3 and 1 <= in_use <= there <= 3
        view = await world.ctx.services.metrics.exposition()
        assert 'go_sql_max_open_connections{db_name="coder"} 3' in view
