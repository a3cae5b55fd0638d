"""Calls by which an agent gets its configuration: the manifest, banners, and the monitoring of its resources."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.services.agents.agent_access import may_read_user_data_in
from coder.coderd.services.agents.agent_api.call_table import CallTable, call
from coder.coderd.services.agents.agent_manifest import build_manifest, monitoring_configuration
from coder.coderd.services.agents.resource_monitors import take_readings
from coder.coderd.services.people import user_secrets
from coder.coderd.store.agents import agent_apps as app_store
from coder.coderd.store.agents import agent_metadata as metadata_store
from coder.coderd.store.agents import agent_scripts as script_store
from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.agents.agent_apps import AppRow
from coder.coderd.store.agents.agent_metadata import MetadataRow
from coder.coderd.store.agents.agent_scripts import ScriptRow
from coder.coderd.store.agents.agents import CurrentAgent
from coder.coderd.store.people import user_secrets as secret_store
from coder.coderd.store.people.user_secrets import UserSecretRow
from coder.coderd.store.site import site_settings
from coder.rpc.proto import agent_pb2

if TYPE_CHECKING:
    from coder.coderd.config.settings import ServerConfig
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


class ConfigurationCalls:
    """Configuration calls of an agent."""

    def __init__(self, ctx: Context, current: CurrentAgent) -> None:
        self._ctx = ctx
        self._current = current

    def calls(self) -> CallTable:
        """Return the calls of this group by name."""
        return {
            "GetManifest": call(self.get_manifest, agent_pb2.GetManifestRequest),
            "GetServiceBanner": call(self.get_service_banner, agent_pb2.GetServiceBannerRequest),
            "GetAnnouncementBanners": call(self.get_announcement_banners, agent_pb2.GetAnnouncementBannersRequest),
            "GetResourcesMonitoringConfiguration": call(
                self.get_monitoring,
                agent_pb2.GetResourcesMonitoringConfigurationRequest,
            ),
            "PushResourcesMonitoringUsage": call(self.push_monitoring, agent_pb2.PushResourcesMonitoringUsageRequest),
        }

    async def get_manifest(self, _request: agent_pb2.GetManifestRequest) -> agent_pb2.Manifest:
        ctx, current = self._ctx, self._current
        apps, scripts, metadata, children, secrets = await ctx.db.read(_read_parts, ctx.config, current)
        manifest = build_manifest(ctx, current, apps, scripts, metadata, children)
        manifest.secrets.extend(user_secrets.open_secrets(ctx, secrets))
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
        return monitoring_configuration(self._current)

    async def push_monitoring(
        self, request: agent_pb2.PushResourcesMonitoringUsageRequest
    ) -> agent_pb2.PushResourcesMonitoringUsageResponse:
        await take_readings(self._ctx, self._current, request.datapoints)
        return agent_pb2.PushResourcesMonitoringUsageResponse()


async def _read_parts(
    tx: Tx, config: ServerConfig, current: CurrentAgent
) -> tuple[list[AppRow], list[ScriptRow], list[MetadataRow], list[UUID], list[UserSecretRow]]:
    agent = current.agent
    apps = [detail.app for detail in await app_store.list_apps(tx, [agent.id])]
    apps.sort(key=lambda app: (app.display_order, app.position))
    scripts = await script_store.list_scripts(tx, [agent.id])
    metadata = await metadata_store.list_metadata(tx, agent.id)
    children = [child.id for child in await agent_store.list_sub_agents(tx, agent.id)] if agent.devcontainers else []
    secrets: list[UserSecretRow] = []
    if await may_read_user_data_in(tx, config, current):
        secrets = await secret_store.list_secrets(tx, current.owner_id, enabled_only=True)
    return apps, scripts, metadata, children, secrets
