"""The table of an agent's calls: handlers are built when they are looked up."""

from __future__ import annotations

import gc
from types import FunctionType, SimpleNamespace
from typing import Any, cast

import pytest
from google.protobuf.message import Message

from coder.coderd.services.agents.agent_api.agent_service import GIVE_SECRETS, AgentService
from coder.rpc.calls import Unary
from coder.rpc.proto import agent_pb2
from coder.rpc.services import AGENT, AGENT_REPORTS

CONTEXT = cast("Any", SimpleNamespace(services=SimpleNamespace(api=SimpleNamespace(report_budgets=None))))
CURRENT = cast("Any", SimpleNamespace())


async def _echo(request: Message) -> Message:
    return request


def test_every_listed_path_has_its_handler() -> None:
    service = AgentService(CONTEXT, CURRENT)
    paths = list(service)
    assert len(paths) == len(set(paths)) == len(service) == 20
    assert {AGENT + name for name in GIVE_SECRETS} | {AGENT_REPORTS + "ReportVitals"} < set(paths)
    assert all(isinstance(service[path], Unary) for path in paths)


@pytest.mark.parametrize(
    "path", ["", "GetManifest", AGENT, AGENT + "ReportVitals", AGENT_REPORTS + "GetManifest", f"x{AGENT}GetManifest"]
)
def test_unknown_path_has_no_handler(path: str) -> None:
    service = AgentService(CONTEXT, CURRENT)
    assert service.get(path) is None
    assert path not in service


def test_added_handler_replaces_the_own_one() -> None:
    service = AgentService(CONTEXT, CURRENT)
    own = Unary(_echo, agent_pb2.GetManifestRequest)
    service.add({AGENT + "GetManifest": own, "/other/Call": own})
    assert service[AGENT + "GetManifest"] is service["/other/Call"] is own
    assert len(list(service)) == 21


def test_connected_agent_holds_no_handlers() -> None:
    before = _handlers()  # of an earlier test: a server that has not gone yet
    known = set(map(id, before))
    services = [AgentService(CONTEXT, CURRENT) for _ in range(100)]
    assert [value for value in _handlers() if id(value) not in known] == []
    assert len(services) == 100


def _handlers() -> list[object]:
    return [value for value in gc.get_objects() if isinstance(value, (Unary, FunctionType)) and _is_handler(value)]


def _is_handler(value: object) -> bool:
    return isinstance(value, Unary) or "answer_within_budget" in getattr(value, "__qualname__", "")
