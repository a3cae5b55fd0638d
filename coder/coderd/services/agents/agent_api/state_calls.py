"""Calls by which an agent reports its state: startup, lifecycle, metadata and completed scripts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.services.agents import ready_times
from coder.coderd.services.agents.agent_api.agent_changes import notify_agent_change, update_agent
from coder.coderd.services.agents.agent_api.call_table import CallTable, call
from coder.coderd.services.agents.agent_api.message_fields import clean_text, time_of, uuid_untrusted
from coder.coderd.services.agents.report_batches import MetadataReport
from coder.coderd.store.agents import agent_scripts as script_store
from coder.coderd.store.agents.agents import AgentChanges, CurrentAgent
from coder.coderd.store.workspaces.change_feed import Kind as Change
from coder.rpc.errors import RpcError
from coder.rpc.proto import agent_pb2

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

MAX_VALUE = 2048
"""Bytes of a metadata value or error."""
MAX_KEYS = 6144
"""Bytes of all metadata keys of one request."""
_SEMVER = re.compile(r"v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_LifecycleState = agent_pb2.Lifecycle.State


class StateCalls:
    """State calls of an agent."""

    def __init__(self, ctx: Context, current: CurrentAgent) -> None:
        self._ctx = ctx
        self._current = current
        self._startup: AgentChanges | None = None
        "The last startup that this connection stored or found; None before the first report."

    def calls(self) -> CallTable:
        """Return the calls of this group by name."""
        return {
            "UpdateLifecycle": call(self.update_lifecycle, agent_pb2.UpdateLifecycleRequest),
            "UpdateStartup": call(self.update_startup, agent_pb2.UpdateStartupRequest),
            "BatchUpdateMetadata": call(self.batch_update_metadata, agent_pb2.BatchUpdateMetadataRequest),
            "ScriptCompleted": call(self.script_completed, agent_pb2.WorkspaceAgentScriptCompletedRequest),
        }

    async def update_startup(self, request: agent_pb2.UpdateStartupRequest) -> agent_pb2.Startup:
        await self._store_startup(request.startup)
        return request.startup

    async def update_lifecycle(self, request: agent_pb2.UpdateLifecycleRequest) -> agent_pb2.Lifecycle:
        await self._store_lifecycle(request.lifecycle)
        return request.lifecycle

    async def batch_update_metadata(
        self, request: agent_pb2.BatchUpdateMetadataRequest
    ) -> agent_pb2.BatchUpdateMetadataResponse:
        await self._store_metadata(request.metadata)
        return agent_pb2.BatchUpdateMetadataResponse()

    async def script_completed(
        self, request: agent_pb2.WorkspaceAgentScriptCompletedRequest
    ) -> agent_pb2.WorkspaceAgentScriptCompletedResponse:
        await self._store_timing(request.timing)
        return agent_pb2.WorkspaceAgentScriptCompletedResponse()

    async def _store_startup(self, startup: agent_pb2.Startup) -> None:
        """Store the startup. Raises RpcError for a version that is no semver with a leading v, or a bad subsystem."""
        if not _SEMVER.fullmatch(startup.version):
            raise RpcError(0, f'invalid agent semver version "{startup.version}"')
        if 0 in startup.subsystems:
            raise RpcError(0, 'parse agent subsystem: "SUBSYSTEM_UNSPECIFIED"')
        names = {agent_pb2.Startup.Subsystem.Name(value).lower() for value in startup.subsystems}
        values: AgentChanges = {
            "version": startup.version,
            "expanded_directory": clean_text(startup.expanded_directory),
            "subsystems": sorted(names),
        }
        agent, known = self._current.agent, self._startup
        if known is None:
            known = {"version": agent.version, "expanded_directory": agent.expanded_directory}
            known["subsystems"] = sorted(agent.subsystems)
        if values != known:  # else the agent returned, and nothing has to be written
            await self._change("startup", {**values, "updated_at": self._ctx.clock.now()})
        self._startup = values

    async def _store_lifecycle(self, lifecycle: agent_pb2.Lifecycle) -> None:
        """Store the lifecycle state. Raises RpcError for an unknown state."""
        if lifecycle.state not in _LifecycleState.values() or not lifecycle.state:
            raise RpcError(0, f"unknown lifecycle state: {lifecycle.state}")
        state = _LifecycleState.Name(lifecycle.state).lower()
        changed_at = time_of(lifecycle.changed_at)
        values: AgentChanges = {"lifecycle_state": state, "updated_at": self._ctx.clock.now()}
        if state == "starting":
            values |= {"started_at": changed_at, "ready_at": None}
        elif state in ready_times.ENDED:
            values |= {"ready_at": changed_at}
            ready_time = await self._ctx.db.run(_end_start, self._current, values, changed_at)
            if ready_time is not None:
                ready_time.observe(self._ctx.services.metrics)
            return
        await self._change("lifecycle", values)

    async def _store_metadata(self, results: Sequence[agent_pb2.Metadata]) -> None:
        """Store metadata within the limit. Raises RpcError afterwards when keys were dropped."""
        results_by_key: dict[str, tuple[str, str]] = {}
        size = 0
        dropped = False
        for item in results:
            size += len(item.key.encode())
            if size > MAX_KEYS:
                dropped = True
                continue
            results_by_key[clean_text(item.key)] = _trimmed_result(item.result)
        report = MetadataReport(self._current, results_by_key, self._ctx.clock.now())
        await self._ctx.services.api.report_batches.metadata.add(report)
        if dropped:
            raise RpcError(0, f"metadata keys of {size} bytes exceeded {MAX_KEYS} bytes")

    async def _store_timing(self, timing: agent_pb2.Timing) -> None:
        """Store the timing of a script. Raises RpcError for a script of another agent."""
        script_id = uuid_untrusted(timing.script_id)
        if not timing.HasField("start") or not timing.HasField("end"):
            raise RpcError(0, "script start and end time are required")
        if time_of(timing.start) > time_of(timing.end):
            raise RpcError(0, "script start time cannot be after end time")
        await self._ctx.db.run(_insert_timing, self._current, script_id, timing)

    async def _change(self, kind: Change, values: AgentChanges) -> None:
        await self._ctx.db.run(update_agent, self._current, kind, values)


async def _end_start(
    tx: Tx, current: CurrentAgent, values: AgentChanges, ended_at: datetime
) -> ready_times.ReadyTime | None:
    await update_agent(tx, current, "lifecycle", values)
    if current.agent.ready_at is not None:
        return None  # it returned after an earlier start, the first of which was measured
    return await ready_times.measure(tx, current, ended_at)


async def _insert_timing(tx: Tx, current: CurrentAgent, script_id: UUID, timing: agent_pb2.Timing) -> None:
    scripts = await script_store.list_scripts(tx, [current.agent.id])
    if script_id not in {script.id for script in scripts}:
        raise RpcError(0, f'script "{script_id}" is not one of this agent')
    await script_store.insert_script_timing(
        tx,
        script_id,
        started_at=time_of(timing.start),
        ended_at=time_of(timing.end),
        exit_code=timing.exit_code,
        stage=agent_pb2.Timing.Stage.Name(timing.stage).lower(),
        status=agent_pb2.Timing.Status.Name(timing.status).lower(),
    )
    await notify_agent_change(tx, current, "lifecycle")


def _trimmed_result(result: agent_pb2.WorkspaceAgentMetadata.Result) -> tuple[str, str]:
    value, error = clean_text(result.value).strip(), clean_text(result.error)
    if len(value.encode()) > MAX_VALUE:
        error = f"value of {len(value.encode())} bytes exceeded {MAX_VALUE} bytes"
        value = value.encode()[:MAX_VALUE].decode(errors="ignore")
    if len(error.encode()) > MAX_VALUE:
        error = f"error of {len(error.encode())} bytes exceeded {MAX_VALUE} bytes"
    return value, error
