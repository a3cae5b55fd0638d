"""Calls by which an agent creates, lists and deletes the agents of its dev containers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coder.coderd.services.agents import sub_agents
from coder.coderd.services.agents.agent_api.call_table import CallTable, call
from coder.coderd.services.agents.agent_api.message_fields import uuid_untrusted
from coder.coderd.store.agents.agents import CurrentAgent
from coder.rpc.proto import agent_pb2

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


class SubAgentCalls:
    """Sub-agent calls of an agent."""

    def __init__(self, ctx: Context, current: CurrentAgent) -> None:
        self._ctx = ctx
        self._current = current

    def calls(self) -> CallTable:
        """Return the calls of this group by name."""
        return {
            "CreateSubAgent": call(self.create_sub_agent, agent_pb2.CreateSubAgentRequest),
            "DeleteSubAgent": call(self.delete_sub_agent, agent_pb2.DeleteSubAgentRequest),
            "ListSubAgents": call(self.list_sub_agents, agent_pb2.ListSubAgentsRequest),
        }

    async def create_sub_agent(self, request: agent_pb2.CreateSubAgentRequest) -> agent_pb2.CreateSubAgentResponse:
        return await sub_agents.create_sub_agent(self._ctx, self._current, request)

    async def list_sub_agents(self, _request: agent_pb2.ListSubAgentsRequest) -> agent_pb2.ListSubAgentsResponse:
        return await sub_agents.list_sub_agents(self._ctx, self._current)

    async def delete_sub_agent(self, request: agent_pb2.DeleteSubAgentRequest) -> agent_pb2.DeleteSubAgentResponse:
        await sub_agents.delete_sub_agent(self._ctx, self._current, uuid_untrusted(request.id))
        return agent_pb2.DeleteSubAgentResponse()
