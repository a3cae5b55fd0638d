"""The Agent service of one connected agent (docs/protocol/agents.md#calls): requests in, answers out.

What is stored is `agent_reports.py`, the manifest `agent_manifest.py`. A call we do not offer (context) answers
code 12, whereupon agents stop asking.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from uuid import UUID

from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import Message

from coder.base.log import get_logger
from coder.coderd.services.agents import sub_agents
from coder.coderd.services.agents.agent_manifest import build_manifest, monitoring_configuration
from coder.coderd.services.agents.agent_reports import AgentReports, uuid_untrusted
from coder.coderd.services.agents.agents import find_again, gets_user_data
from coder.coderd.services.agents.report_budgets import ReportBudgets
from coder.coderd.services.agents.resource_monitors import take_readings
from coder.coderd.services.people import user_secrets
from coder.coderd.store.agents import agent_apps as app_store
from coder.coderd.store.agents import agent_metadata as metadata_store
from coder.coderd.store.agents import agent_scripts as script_store
from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.agents.agent_apps import AppRow
from coder.coderd.store.agents.agent_metadata import MetadataRow
from coder.coderd.store.agents.agent_scripts import ScriptRow
from coder.coderd.store.agents.agents import AgentPlace
from coder.coderd.store.site import site_settings
from coder.rpc.calls import Handlers, Unary
from coder.rpc.errors import RpcError, unimplemented
from coder.rpc.proto import agent_pb2
from coder.rpc.services import AGENT

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

MAX_BOUNDARY_LOGS = 1000
GIVE_SECRETS = frozenset({"GetManifest", "CreateSubAgent", "ListSubAgents"})
"""Calls whose answer holds a secret: the agent's right is looked at before each, not only every quarter of a minute."""

_log = get_logger("agents")


class AgentService:
    """The handlers for one agent."""

    def __init__(self, ctx: Context, place: AgentPlace) -> None:
        self._ctx = ctx
        self._place = place
        self._reports = AgentReports(ctx, place)

    def handlers(self) -> Handlers:
        pb = agent_pb2
        table: dict[str, tuple[Callable[[Any], Awaitable[Message]], type[Message]]] = {
            "GetManifest": (self.get_manifest, pb.GetManifestRequest),
            "GetServiceBanner": (self.get_service_banner, pb.GetServiceBannerRequest),
            "GetAnnouncementBanners": (self.get_announcement_banners, pb.GetAnnouncementBannersRequest),
            "UpdateStats": (self.update_stats, pb.UpdateStatsRequest),
            "UpdateLifecycle": (self.update_lifecycle, pb.UpdateLifecycleRequest),
            "BatchUpdateAppHealths": (self.batch_update_app_healths, pb.BatchUpdateAppHealthRequest),
            "UpdateStartup": (self.update_startup, pb.UpdateStartupRequest),
            "BatchUpdateMetadata": (self.batch_update_metadata, pb.BatchUpdateMetadataRequest),
            "BatchCreateLogs": (self.batch_create_logs, pb.BatchCreateLogsRequest),
            "ScriptCompleted": (self.script_completed, pb.WorkspaceAgentScriptCompletedRequest),
            "GetResourcesMonitoringConfiguration": (
                self.get_monitoring,
                pb.GetResourcesMonitoringConfigurationRequest,
            ),
            "PushResourcesMonitoringUsage": (self.push_monitoring, pb.PushResourcesMonitoringUsageRequest),
            "ReportConnection": (self.report_connection, pb.ReportConnectionRequest),
            "CreateSubAgent": (self.create_sub_agent, pb.CreateSubAgentRequest),
            "DeleteSubAgent": (self.delete_sub_agent, pb.DeleteSubAgentRequest),
            "ListSubAgents": (self.list_sub_agents, pb.ListSubAgentsRequest),
            "ReportBoundaryLogs": (self.report_boundary_logs, pb.ReportBoundaryLogsRequest),
            "UpdateAppStatus": (self.update_app_status, pb.UpdateAppStatusRequest),
            "PushContextState": (_refuse, pb.PushContextStateRequest),
        }
        return {
            AGENT + name: Unary(self._in_turn(name, self._by_right(fn) if name in GIVE_SECRETS else fn), request)
            for name, (fn, request) in table.items()
        }

    def _in_turn(self, name: str, answer: Callable[[Any], Awaitable[Message]]) -> Callable[[Any], Awaitable[Message]]:
        budgets = self._ctx.part(ReportBudgets)

        async def waited_for(request: Any) -> Message:
            await budgets.take(self._place.agent.id, name)
            return await answer(request)

        return waited_for

    def _by_right(self, answer: Callable[[Any], Awaitable[Message]]) -> Callable[[Any], Awaitable[Message]]:
        async def looked_at(request: Any) -> Message:
            if await self._ctx.db.read(find_again, self._place) is None:
                raise RpcError(0, "the agent's token is good no longer")
            return await answer(request)

        return looked_at

    # ---- what the agent is told

    async def get_manifest(self, _request: agent_pb2.GetManifestRequest) -> agent_pb2.Manifest:
        apps, scripts, metadata, children = await self._ctx.db.read(_read_parts, self._place.agent)
        manifest = build_manifest(self._ctx, self._place, apps, scripts, metadata, children)
        if await gets_user_data(self._ctx, self._place):
            manifest.secrets.extend(await user_secrets.for_workspace(self._ctx, self._place.owner_id))
        return manifest

    async def get_service_banner(self, _request: agent_pb2.GetServiceBannerRequest) -> agent_pb2.ServiceBanner:
        banners = await self._banners()
        if not banners:
            return agent_pb2.ServiceBanner()
        first = banners[0]
        return agent_pb2.ServiceBanner(
            enabled=first.enabled, message=first.message, background_color=first.background_color
        )

    async def get_announcement_banners(
        self, _request: agent_pb2.GetAnnouncementBannersRequest
    ) -> agent_pb2.GetAnnouncementBannersResponse:
        return agent_pb2.GetAnnouncementBannersResponse(announcement_banners=await self._banners())

    async def _banners(self) -> list[agent_pb2.BannerConfig]:
        stored = await self._ctx.db.read(site_settings.get_config, "announcement_banners")
        return [
            agent_pb2.BannerConfig(
                enabled=bool(banner.get("enabled")),
                message=str(banner.get("message") or ""),
                background_color=str(banner.get("background_color") or ""),
            )
            for banner in (json.loads(stored) if stored else [])
        ]

    async def get_monitoring(
        self, _request: agent_pb2.GetResourcesMonitoringConfigurationRequest
    ) -> agent_pb2.GetResourcesMonitoringConfigurationResponse:
        return monitoring_configuration(self._place)

    # ---- what the agent reports

    async def update_startup(self, request: agent_pb2.UpdateStartupRequest) -> agent_pb2.Startup:
        await self._reports.startup(request.startup)
        return request.startup

    async def update_lifecycle(self, request: agent_pb2.UpdateLifecycleRequest) -> agent_pb2.Lifecycle:
        await self._reports.lifecycle(request.lifecycle)
        return request.lifecycle

    async def update_stats(self, request: agent_pb2.UpdateStatsRequest) -> agent_pb2.UpdateStatsResponse:
        if request.HasField("stats") and request.stats.ByteSize():
            await self._reports.stats(request.stats)
        answer = agent_pb2.UpdateStatsResponse()
        answer.report_interval.FromTimedelta(self._ctx.config.agent_stats_refresh_interval)
        return answer

    async def batch_update_app_healths(
        self, request: agent_pb2.BatchUpdateAppHealthRequest
    ) -> agent_pb2.BatchUpdateAppHealthResponse:
        if request.updates:
            await self._reports.app_healths(request.updates)
        return agent_pb2.BatchUpdateAppHealthResponse()

    async def batch_update_metadata(
        self, request: agent_pb2.BatchUpdateMetadataRequest
    ) -> agent_pb2.BatchUpdateMetadataResponse:
        await self._reports.metadata(request.metadata)
        return agent_pb2.BatchUpdateMetadataResponse()

    async def batch_create_logs(self, request: agent_pb2.BatchCreateLogsRequest) -> agent_pb2.BatchCreateLogsResponse:
        stored = await self._reports.logs(request.log_source_id, request.logs)
        return agent_pb2.BatchCreateLogsResponse(log_limit_exceeded=not stored)

    async def script_completed(
        self, request: agent_pb2.WorkspaceAgentScriptCompletedRequest
    ) -> agent_pb2.WorkspaceAgentScriptCompletedResponse:
        await self._reports.script_completed(request.timing)
        return agent_pb2.WorkspaceAgentScriptCompletedResponse()

    async def push_monitoring(
        self, request: agent_pb2.PushResourcesMonitoringUsageRequest
    ) -> agent_pb2.PushResourcesMonitoringUsageResponse:
        await take_readings(self._ctx, self._place, request.datapoints)
        return agent_pb2.PushResourcesMonitoringUsageResponse()

    async def report_connection(self, request: agent_pb2.ReportConnectionRequest) -> Empty:
        """A session began or ended; goes to the connection log."""
        connection = request.connection
        connection_id = uuid_untrusted(connection.id)
        if connection_id.int == 0:
            raise RpcError(0, "connection ID is empty")
        if not connection.action or not connection.type:
            raise RpcError(0, "connection action and type must be specified")
        await self._reports.connection(connection_id, connection)
        return Empty()

    async def update_app_status(self, request: agent_pb2.UpdateAppStatusRequest) -> agent_pb2.UpdateAppStatusResponse:
        await self._reports.app_status(request)
        return agent_pb2.UpdateAppStatusResponse()

    async def report_boundary_logs(
        self, request: agent_pb2.ReportBoundaryLogsRequest
    ) -> agent_pb2.ReportBoundaryLogsResponse:
        """Re-emitted to our own log."""
        if len(request.logs) > MAX_BOUNDARY_LOGS:
            raise RpcError(0, f"too many boundary logs: {len(request.logs)} > {MAX_BOUNDARY_LOGS}")
        for entry in request.logs:
            _log.info(
                "boundary_request",
                agent=self._place.agent.id,
                decision="allow" if entry.allowed else "deny",
                method=entry.http_request.method,
                url=entry.http_request.url,
                rule=entry.http_request.matched_rule,
            )
        return agent_pb2.ReportBoundaryLogsResponse()

    # ---- sub agents

    async def create_sub_agent(self, request: agent_pb2.CreateSubAgentRequest) -> agent_pb2.CreateSubAgentResponse:
        return await sub_agents.create_sub_agent(self._ctx, self._place, request)

    async def list_sub_agents(self, _request: agent_pb2.ListSubAgentsRequest) -> agent_pb2.ListSubAgentsResponse:
        return await sub_agents.list_sub_agents(self._ctx, self._place)

    async def delete_sub_agent(self, request: agent_pb2.DeleteSubAgentRequest) -> agent_pb2.DeleteSubAgentResponse:
        await sub_agents.delete_sub_agent(self._ctx, self._place, uuid_untrusted(request.id))
        return agent_pb2.DeleteSubAgentResponse()


async def _refuse(_request: Message) -> Message:
    raise unimplemented()


async def _read_parts(
    tx: Tx, agent: agent_store.AgentRow
) -> tuple[list[AppRow], list[ScriptRow], list[MetadataRow], list[UUID]]:
    apps = [detail.app for detail in await app_store.list_apps(tx, [agent.id])]
    apps.sort(key=lambda app: (app.display_order, app.position))
    scripts = await script_store.list_scripts(tx, [agent.id])
    metadata = await metadata_store.list_metadata(tx, agent.id)
    children = [child.id for child in await agent_store.list_sub_agents(tx, agent.id)] if agent.devcontainers else []
    return apps, scripts, metadata, children
