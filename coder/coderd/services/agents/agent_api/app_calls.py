"""Calls by which an agent reports on its applications: health, and status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.services.agents.agent_api.agent_changes import notify_agent_change
from coder.coderd.services.agents.agent_api.call_table import CallTable, call
from coder.coderd.services.agents.agent_api.message_fields import uuid_untrusted
from coder.coderd.services.agents.app_statuses import AppReport, report_app_status
from coder.coderd.store.agents import agent_apps as app_store
from coder.coderd.store.agents.agents import CurrentAgent
from coder.rpc.errors import RpcError
from coder.rpc.proto import agent_pb2

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


class AppCalls:
    """Health and status calls of an agent."""

    def __init__(self, ctx: Context, current: CurrentAgent) -> None:
        self._ctx = ctx
        self._current = current

    def calls(self) -> CallTable:
        """Return the calls of this group by name."""
        return {
            "BatchUpdateAppHealths": call(self.batch_update_app_healths, agent_pb2.BatchUpdateAppHealthRequest),
            "UpdateAppStatus": call(self.update_app_status, agent_pb2.UpdateAppStatusRequest),
        }

    async def batch_update_app_healths(
        self, request: agent_pb2.BatchUpdateAppHealthRequest
    ) -> agent_pb2.BatchUpdateAppHealthResponse:
        if request.updates:
            await self._store_healths(request.updates)
        return agent_pb2.BatchUpdateAppHealthResponse()

    async def update_app_status(self, request: agent_pb2.UpdateAppStatusRequest) -> agent_pb2.UpdateAppStatusResponse:
        await self._report_status(request)
        return agent_pb2.UpdateAppStatusResponse()

    async def _store_healths(self, updates: Sequence[agent_pb2.BatchUpdateAppHealthRequest.HealthUpdate]) -> None:
        """Store healths. Raises RpcError for an application of another agent or without a health check."""
        healths: dict[UUID, str] = {}
        for update in updates:
            if update.health not in agent_pb2.AppHealth.values() or not update.health:
                raise RpcError(0, f"unknown health status: {update.health}")
            healths[uuid_untrusted(update.id)] = agent_pb2.AppHealth.Name(update.health).lower()
        await self._ctx.db.run(_store_app_healths, self._current, healths)

    async def _report_status(self, request: agent_pb2.UpdateAppStatusRequest) -> None:
        """Store a status. Raises Invalid for a message over 160 characters or an unknown application."""
        state = agent_pb2.UpdateAppStatusRequest.AppStatusState.Name(request.state).lower()
        report = AppReport(request.slug, state, request.message, request.uri)
        await report_app_status(self._ctx, self._current, report)


async def _store_app_healths(tx: Tx, current: CurrentAgent, healths: dict[UUID, str]) -> None:
    known = await app_store.list_app_owners(tx, list(healths))
    for app_id, health in healths.items():
        owner = known.get(app_id)
        if owner is None or owner[0] != current.agent.id:
            raise RpcError(0, f'workspace app ID "{app_id}" not found')
        if not owner[1]:
            raise RpcError(0, f'workspace app "{app_id}" does not have healthchecks enabled')
        await app_store.update_app_health(tx, app_id, health)
    await notify_agent_change(tx, current, "app_health")
