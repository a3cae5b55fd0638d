"""The Agent service of one connected agent (docs/protocol/agents.md#calls): its groups of calls, in one table.

Errors are RpcErrors with upstream's words: some of them make a genuine agent reconnect, see there. A call that this
server does not offer (context) answers code 12, whereupon agents stop asking.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from google.protobuf.message import Message

from coder.coderd.services.agents.agent_access import find_current_agent
from coder.coderd.services.agents.agent_api.app_calls import AppCalls
from coder.coderd.services.agents.agent_api.call_table import Answer, CallGroup
from coder.coderd.services.agents.agent_api.configuration_calls import ConfigurationCalls
from coder.coderd.services.agents.agent_api.log_calls import LogCalls
from coder.coderd.services.agents.agent_api.state_calls import StateCalls
from coder.coderd.services.agents.agent_api.sub_agent_calls import SubAgentCalls
from coder.coderd.services.agents.agent_api.usage_calls import UsageCalls
from coder.coderd.services.agents.agent_api.vitals_calls import VitalsCalls
from coder.coderd.store.agents.agents import CurrentAgent
from coder.rpc.calls import Handler, Unary
from coder.rpc.errors import RpcError, unimplemented
from coder.rpc.proto import agent_pb2
from coder.rpc.services import AGENT, AGENT_REPORTS

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

GIVE_SECRETS = frozenset({"GetManifest", "CreateSubAgent", "ListSubAgents"})
"""Calls whose answer has a secret: the token is checked before each, not only every 15 seconds."""


_AGENT_GROUPS = (ConfigurationCalls, StateCalls, LogCalls, UsageCalls, AppCalls, SubAgentCalls)
_REPORT_GROUPS = (VitalsCalls,)


class AgentService(Mapping[str, Handler]):
    """Handlers of the service for an agent, by path.

    A handler is built when it is looked up: with those of twenty calls, mostly never made, a connected agent cost a
    third more objects.
    """

    __slots__ = ("_ctx", "_current", "_groups", "_others")

    def __init__(self, ctx: Context, current: CurrentAgent) -> None:
        self._ctx = ctx
        self._current = current
        self._others: dict[str, Handler] = {}
        self._groups: dict[str, tuple[CallGroup, ...]] = {
            AGENT: tuple(group(ctx, current) for group in _AGENT_GROUPS),
            AGENT_REPORTS: tuple(group(ctx, current) for group in _REPORT_GROUPS),
        }

    def add(self, handlers: Mapping[str, Handler]) -> None:
        """Add handlers; they replace those of the same path."""
        self._others.update(handlers)

    def __getitem__(self, path: str) -> Handler:
        if path in self._others:
            return self._others[path]
        service, slash, name = path.rpartition("/")
        if service + slash == AGENT and name == "PushContextState":
            return self._handler(name, _refuse, agent_pb2.PushContextStateRequest)
        for group in self._groups.get(service + slash, ()):
            found = group.calls().get(name)
            if found is not None:
                return self._handler(name, *found)
        raise KeyError(path)

    def __iter__(self) -> Iterator[str]:
        own = [AGENT + "PushContextState"]
        for prefix, groups in self._groups.items():
            for group in groups:
                own += (prefix + name for name in group.calls())
        return iter(dict.fromkeys([*own, *self._others]))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _handler(self, name: str, answer: Answer, request: type[Message]) -> Unary[Message]:
        return Unary(self._limited(name, self._checked(answer) if name in GIVE_SECRETS else answer), request)

    def _limited(self, name: str, answer: Answer) -> Answer:
        budgets = self._ctx.services.api.report_budgets

        async def answer_within_budget(request: Message) -> Message:
            await budgets.take(self._current.agent.id, name)
            return await answer(request)

        return answer_within_budget

    def _checked(self, answer: Answer) -> Answer:
        async def answer_if_valid(request: Message) -> Message:
            if await self._ctx.db.read(find_current_agent, self._current) is None:
                raise RpcError(0, "the agent's token is no longer valid")
            return await answer(request)

        return answer_if_valid


async def _refuse(_request: Message) -> Message:
    raise unimplemented()
