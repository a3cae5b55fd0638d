"""Agents on the real link: admission, responses, and their reports."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
import trio

from coder.coderd.services.agents import agent_connections, agent_logs
from coder.coderd.services.agents.agent_api.agent_service import GIVE_SECRETS
from coder.coderd.store.agents import agent_apps
from coder.coderd.store.agents import agents as agent_store
from coder.domain.agents.agents import MIN_LINE_BYTES
from coder.net.errors import HttpError
from coder.rpc.errors import RpcError
from coder.rpc.proto import agent_pb2, provisioner_pb2, tailnet_pb2
from coder.rpc.services import AGENT
from coder.rpc.session import Session, open_session
from tests.kit.agents.scripted_agent import AgentWorld, connected_agent, dial_link, eventually, workspace_world

RPC = "/api/v2/workspaceagents/me/rpc"


async def test_refusals_are_the_recorded_ones() -> None:
    async with workspace_world() as view_context:
        for token, query, status, message, detail in [
            ("", "2.10", 401, 'Cookie "coder_session_token" must be provided.', ""),
            ("short", "2.10", 401, "Workspace agent token invalid.", "An agent token must be a valid UUIDv4. (len 5)"),
            (
                str(uuid4()),
                "2.10",
                401,
                "Workspace agent not authorized.",
                "The agent cannot authenticate until the workspace provision job has been completed. "
                "If the job is no longer running, this agent is invalid.",
            ),
        ]:
            with pytest.raises(HttpError) as caught:
                await dial_link(view_context.world, f"{RPC}?version={query}", token=token)
            error = caught.value
            assert (error.status, error.message, error.detail) == (status, message, detail)
        for version, detail in [
            ("2.99", "server is at version 2.11, behind requested minor version 2.99"),
            ("3.0", "server is at version 2.11, behind requested major version 3.0"),
            ("abc", "invalid version string: abc"),
        ]:
            with pytest.raises(HttpError) as caught:
                await dial_link(view_context.world, f"{RPC}?version={version}", token=view_context.token)
            assert caught.value.message == "Unknown or unsupported API version"
            assert caught.value.validations == [{"field": "version", "detail": detail}]


async def _suspend_owner(view_context: AgentWorld) -> None:
    world = view_context.world
    _, boss = await world.member("boss", ["owner"])
    assert (await world.put("/api/v2/users/admin/roles", {"roles": []}, token=boss)).status_code == 200
    assert (await world.put("/api/v2/users/admin/status/suspend", {}, token=boss)).status_code == 200


async def _build_anew(view_context: AgentWorld) -> None:
    path = f"/api/v2/workspaces/{view_context.workspace['id']}/builds"
    assert (await view_context.world.post(path, {"transition": "stop"})).status_code == 201


async def _end_token(view_context: AgentWorld) -> None:
    async def write(tx: Any) -> None:
        await agent_store.update_agent(tx, view_context.agent_id, auth_token=uuid4())

    await view_context.world.ctx.db.run(write)


ENDS = {"its owner is suspended": _suspend_owner, "a newer build": _build_anew, "another token": _end_token}


@pytest.mark.parametrize("how", ENDS)
async def test_revoked_token_ends_its_links(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_connections, "CONNECTION_UPDATE_FREQUENCY", timedelta(seconds=0.05))
    async with workspace_world() as view_context, contextlib.AsyncExitStack() as links:
        path = f"{RPC}?version=2.10&role="
        sessions = {}
        for role in ("agent", "", "logstream", "spy"):
            websocket = await dial_link(view_context.world, path + role, token=view_context.token)
            sessions[role] = await links.enter_async_context(open_session(websocket, role="client"))
            manifest = await _manifest(sessions[role])
            assert UUID(bytes=manifest.agent_id) == view_context.agent_id
        await ENDS[how](view_context)
        with trio.fail_after(60):
            for session in sessions.values():
                await session.wait_closed()
        with pytest.raises(HttpError):
            await dial_link(view_context.world, path, token=view_context.token)


@pytest.mark.parametrize("how", ENDS)
async def test_ending_link_gives_no_secret(how: str) -> None:
    async with workspace_world() as view_context, connected_agent(view_context) as agent:
        await ENDS[how](view_context)
        with pytest.raises(RpcError, match="no longer valid"):
            await _manifest(agent.session)
        with pytest.raises(RpcError, match="no longer valid"):
            await agent.call("ListSubAgents", agent_pb2.ListSubAgentsRequest(), agent_pb2.ListSubAgentsResponse)


async def _manifest(session: Session) -> Any:
    return await session.call(f"{AGENT}GetManifest", agent_pb2.GetManifestRequest(), agent_pb2.Manifest)


def test_secret_calls_check_authorization() -> None:
    def names(message: Any, seen: frozenset[str] = frozenset()) -> set[str]:
        if message is None or message.full_name in seen:
            return set()
        inner = [names(field.message_type, seen | {message.full_name}) for field in message.fields]
        return {field.name for field in message.fields}.union(*inner)

    methods = agent_pb2.DESCRIPTOR.services_by_name["Agent"].methods
    giving = {method.name for method in methods if names(method.output_type) & {"auth_token", "secrets"}}
    assert giving == GIVE_SECRETS


async def test_connection_times_follow_the_connection() -> None:
    async with workspace_world() as view_context:
        assert (await view_context.agent())["status"] == "connecting"
        async with connected_agent(view_context):

            async def is_connected() -> Any:
                result = await view_context.agent()
                return result if result["status"] == "connected" else None

            result = await eventually(is_connected)
            assert result["api_version"] == "2.10"
            assert result["first_connected_at"] == result["last_connected_at"]

        async def is_disconnected() -> Any:
            return (await view_context.agent())["status"] == "disconnected"

        await eventually(is_disconnected)
        async with connected_agent(view_context):
            await eventually(is_connected)


async def test_second_connection_outlives_first() -> None:
    async with workspace_world() as view_context, trio.open_nursery() as nursery:

        async def is_connected() -> Any:
            return (await view_context.agent())["status"] == "connected"

        async with connected_agent(view_context) as first:
            await eventually(is_connected)
            async with connected_agent(view_context) as second:
                await second.call("GetManifest", agent_pb2.GetManifestRequest(), agent_pb2.Manifest)
                first.session.close("test")
                await first.websocket.aclose()
                for _ in range(20):
                    assert await is_connected()
        nursery.cancel_scope.cancel()


async def test_manifest() -> None:
    fields = {
        "env": {"A": "1"},
        "directory": "~/work",
        "apps": [
            provisioner_pb2.App(
                slug="web", display_name="Web", url="http://localhost:1", sharing_level=provisioner_pb2.AUTHENTICATED
            )
        ],
        "metadata": [
            provisioner_pb2.Agent.Metadata(key="load", display_name="Load", script="uptime", interval=10, timeout=2)
        ],
        "scripts": [provisioner_pb2.Script(display_name="S", script="echo s", run_on_start=True, timeout_seconds=60)],
        "resources_monitoring": provisioner_pb2.ResourcesMonitoring(
            memory=provisioner_pb2.MemoryResourceMonitor(enabled=True, threshold=80)
        ),
    }
    async with workspace_world(agent_fields=fields) as view_context, connected_agent(view_context) as agent:
        manifest = await agent.call("GetManifest", agent_pb2.GetManifestRequest(), agent_pb2.Manifest)
        assert UUID(bytes=manifest.agent_id) == view_context.agent_id
        assert (manifest.agent_name, manifest.workspace_name, manifest.owner_username) == ("main", "dev", "admin")
        assert dict(manifest.environment_variables) == {"A": "1"}
        assert manifest.directory == "~/work"
        assert manifest.derp_map.HasField("home_params")
        assert manifest.derp_map.regions[999].nodes[0].force_http
        assert [(app.slug, app.sharing_level, app.health) for app in manifest.apps] == [("web", 2, 1)]
        assert manifest.apps[0].HasField("healthcheck")
        assert [(s.script, s.run_on_start, s.timeout.seconds) for s in manifest.scripts] == [("echo s", True, 60)]
        assert (manifest.metadata[0].interval.nanos, manifest.metadata[0].timeout.nanos) == (10, 2)
        config = await agent.call(
            "GetResourcesMonitoringConfiguration",
            agent_pb2.GetResourcesMonitoringConfigurationRequest(),
            agent_pb2.GetResourcesMonitoringConfigurationResponse,
        )
        assert (config.config.num_datapoints, config.config.collection_interval_seconds) == (20, 10)
        assert config.memory.enabled


async def test_reports_are_stored_and_returned() -> None:
    fields = {
        "apps": [
            provisioner_pb2.App(
                slug="web",
                url="http://x",
                healthcheck=provisioner_pb2.Healthcheck(url="http://x/h", interval=1, threshold=1),
            )
        ],
        "metadata": [provisioner_pb2.Agent.Metadata(key="load", script="uptime", interval=10)],
    }
    pb = agent_pb2
    async with workspace_world(agent_fields=fields) as view_context, connected_agent(view_context) as agent:
        startup = pb.Startup(
            version="v2.34.0", expanded_directory="/home/dev", subsystems=[pb.Startup.ENVBOX, pb.Startup.ENVBOX]
        )
        assert await agent.call("UpdateStartup", pb.UpdateStartupRequest(startup=startup), pb.Startup) == startup
        for state in (pb.Lifecycle.STARTING, pb.Lifecycle.READY):
            lifecycle = pb.Lifecycle(state=state)
            lifecycle.changed_at.GetCurrentTime()
            await agent.call("UpdateLifecycle", pb.UpdateLifecycleRequest(lifecycle=lifecycle), pb.Lifecycle)
        manifest = await agent.call("GetManifest", pb.GetManifestRequest(), pb.Manifest)
        update = pb.BatchUpdateAppHealthRequest.HealthUpdate(id=manifest.apps[0].id, health=pb.HEALTHY)
        await agent.call(
            "BatchUpdateAppHealths",
            pb.BatchUpdateAppHealthRequest(updates=[update]),
            pb.BatchUpdateAppHealthResponse,
        )
        status = pb.UpdateAppStatusRequest(slug="web", state=pb.UpdateAppStatusRequest.WORKING, message="busy")
        await agent.call("UpdateAppStatus", status, pb.UpdateAppStatusResponse)
        view = await view_context.agent()
        assert (view["version"], view["expanded_directory"], view["subsystems"]) == (
            "v2.34.0",
            "/home/dev",
            ["envbox"],
        )
        assert view["lifecycle_state"] == "ready"
        assert view["started_at"] <= view["ready_at"]
        assert view["apps"][0]["health"] == "healthy"
        assert view["apps"][0]["statuses"][0]["message"] == "busy"

        batch = pb.BatchCreateLogsRequest(log_source_id=bytes(16), logs=[pb.Log(output="a\0b", level=pb.Log.WARN)])
        assert not (await agent.call("BatchCreateLogs", batch, pb.BatchCreateLogsResponse)).log_limit_exceeded
        logs = (await view_context.world.get(f"/api/v2/workspaceagents/{view_context.agent_id}/logs")).json()
        assert [(line["output"], line["level"]) for line in logs] == [("a❌b", "warn")]
        flood = pb.BatchCreateLogsRequest(log_source_id=bytes(16), logs=[pb.Log(output="x" * (1 << 20))])
        assert (await agent.call("BatchCreateLogs", flood, pb.BatchCreateLogsResponse)).log_limit_exceeded
        assert (await agent.call("BatchCreateLogs", batch, pb.BatchCreateLogsResponse)).log_limit_exceeded
        assert (await view_context.agent())["logs_overflowed"]


async def test_stats_and_unsupported_calls() -> None:
    pb = agent_pb2
    async with workspace_world() as view_context, connected_agent(view_context) as agent:
        answer = await agent.call("UpdateStats", pb.UpdateStatsRequest(), pb.UpdateStatsResponse)
        assert answer.report_interval.seconds == 30
        before = view_context.workspace["last_used_at"]
        stats = pb.Stats(connection_count=1, session_count_ssh=1, rx_bytes=5)
        await agent.call("UpdateStats", pb.UpdateStatsRequest(stats=stats), pb.UpdateStatsResponse)
        path = f"/api/v2/workspaces/{view_context.workspace['id']}"
        assert (await view_context.world.get(path)).json()["last_used_at"] == before, "written once a minute"
        assert await view_context.world.ctx.services.last_use.flush() == 1
        assert (await view_context.world.get(path)).json()["last_used_at"] > before
        with pytest.raises(RpcError) as caught:
            await agent.call("PushContextState", pb.PushContextStateRequest(), pb.PushContextStateResponse)
        assert caught.value.number == 12
        with pytest.raises(RpcError) as caught:
            await agent.session.call(
                "/coder.tailnet.v2.Tailnet/RefreshResumeToken",
                tailnet_pb2.RefreshResumeTokenRequest(),
                tailnet_pb2.RefreshResumeTokenResponse,
            )
        assert caught.value.number == 12
        for startup in (
            pb.Startup(version="2.34.0"),
            pb.Startup(version="v2.34.0", subsystems=[pb.Startup.SUBSYSTEM_UNSPECIFIED]),
        ):
            with pytest.raises(RpcError):
                await agent.call("UpdateStartup", pb.UpdateStartupRequest(startup=startup), pb.Startup)


async def test_empty_lines_fill_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = 3000
    monkeypatch.setattr(agent_logs, "MAX_LOGS_LENGTH", limit * MIN_LINE_BYTES)
    pb = agent_pb2
    async with workspace_world() as view_context, connected_agent(view_context) as agent:
        for count, is_full in ((limit, False), (1, True)):
            batch = pb.BatchCreateLogsRequest(log_source_id=bytes(16), logs=[pb.Log()] * count)
            answer = await agent.call("BatchCreateLogs", batch, pb.BatchCreateLogsResponse)
            assert answer.log_limit_exceeded == is_full
        logs = (await view_context.world.get(f"/api/v2/workspaceagents/{view_context.agent_id}/logs")).json()
        assert len(logs) == limit
        assert [line["id"] for line in logs] == sorted(line["id"] for line in logs)


async def test_app_keeps_newest_statuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_apps, "KEPT_STATUSES", 3)
    pb = agent_pb2
    fields = {"apps": [provisioner_pb2.App(slug="web", url="http://x")]}
    async with workspace_world(agent_fields=fields) as view_context, connected_agent(view_context) as agent:
        for number in range(5):
            status = pb.UpdateAppStatusRequest(slug="web", state=pb.UpdateAppStatusRequest.WORKING, message=str(number))
            await agent.call("UpdateAppStatus", status, pb.UpdateAppStatusResponse)
        view = await view_context.agent()
        assert [item["message"] for item in view["apps"][0]["statuses"]] == ["4", "3", "2"]


async def test_metadata_limits() -> None:
    pb = agent_pb2
    fields = {"metadata": [provisioner_pb2.Agent.Metadata(key="load", script="uptime", interval=10)]}
    async with workspace_world(agent_fields=fields) as view_context, connected_agent(view_context) as agent:
        result = pb.WorkspaceAgentMetadata.Result(value="v" * 3000)
        long_key = pb.Metadata(key="k" * 6200, result=result)
        request = pb.BatchUpdateMetadataRequest(metadata=[pb.Metadata(key="load", result=result), long_key])
        with pytest.raises(RpcError, match=r"metadata keys of 6204 bytes exceeded 6144 bytes"):
            await agent.call("BatchUpdateMetadata", request, pb.BatchUpdateMetadataResponse)
