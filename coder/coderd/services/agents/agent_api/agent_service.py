"""The Agent service of one connected agent (docs/protocol/agents.md#calls): its groups of calls, in one table.

Errors are RpcErrors with upstream's words: some of them make a genuine agent reconnect, see there. A call that this
server does not offer (context) answers code 12, whereupon agents stop asking.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from google.protobuf.message import Message

from coder.coderd.services.agents.agent_access import find_current_agent
from coder.coderd.services.agents.agent_api.app_calls import AppCalls
from coder.coderd.services.agents.agent_api.call_table import CallTable
from coder.coderd.services.agents.agent_api.configuration_calls import ConfigurationCalls
from coder.coderd.services.agents.agent_api.log_calls import LogCalls
from coder.coderd.services.agents.agent_api.state_calls import StateCalls
from coder.coderd.services.agents.agent_api.sub_agent_calls import SubAgentCalls
from coder.coderd.services.agents.agent_api.usage_calls import UsageCalls
from coder.coderd.services.agents.agent_api.vitals_calls import VitalsCalls
from coder.coderd.store.agents.agents import CurrentAgent
from coder.rpc.calls import Handler, Handlers, Unary
from coder.rpc.errors import RpcError, unimplemented
from coder.rpc.proto import agent_pb2
from coder.rpc.services import AGENT, AGENT_REPORTS

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

GIVE_SECRETS = frozenset({"GetManifest", "CreateSubAgent", "ListSubAgents"})
"""Calls whose answer has a secret: the token is checked before each, not only every 15 seconds."""


class AgentService:
    """Handlers of the service for an agent."""

    def __init__(self, ctx: Context, current: CurrentAgent) -> None:
        self._ctx = ctx
        self._current = current

    def handlers(self) -> Handlers:
        table: CallTable = {"PushContextState": (_refuse, agent_pb2.PushContextStateRequest)}
        for group in (ConfigurationCalls, StateCalls, LogCalls, UsageCalls, AppCalls, SubAgentCalls):
            table |= group(self._ctx, self._current).calls()
        named = {AGENT + name: call for name, call in table.items()}
        named |= {AGENT_REPORTS + name: call for name, call in VitalsCalls(self._ctx, self._current).calls().items()}
        return {path: self._handler(path.rpartition("/")[2], *call) for path, call in named.items()}

    def _handler(self, name: str, answer: Callable[[Any], Awaitable[Message]], request: type[Message]) -> Handler:
        return Unary(self._limited(name, self._checked(answer) if name in GIVE_SECRETS else answer), request)

    def _limited(self, name: str, answer: Callable[[Any], Awaitable[Message]]) -> Callable[[Any], Awaitable[Message]]:
        budgets = self._ctx.services.api.report_budgets

        async def answer_within_budget(request: Any) -> Message:
            await budgets.take(self._current.agent.id, name)
            return await answer(request)

        return answer_within_budget

    def _checked(self, answer: Callable[[Any], Awaitable[Message]]) -> Callable[[Any], Awaitable[Message]]:
        async def answer_if_valid(request: Any) -> Message:
            if await self._ctx.db.read(find_current_agent, self._current) is None:
                raise RpcError(0, "the agent's token is no longer valid")
            return await answer(request)

        return answer_if_valid


async def _refuse(_request: Message) -> Message:
    raise unimplemented()
