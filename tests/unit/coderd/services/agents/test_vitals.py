"""Readings of agents' machines and their health indicators, through the API."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from google.protobuf.empty_pb2 import Empty
from google.protobuf.wrappers_pb2 import StringValue

from coder.rpc.errors import INVALID_ARGUMENT, RpcError
from coder.rpc.services import AGENT_REPORTS
from tests.kit.agents.scripted_agent import AgentWorld, connected_agent, eventually, workspace_world

NOW = datetime.now(UTC).isoformat()


def event(kind: str, **data: Any) -> dict[str, Any]:
    return {"at": NOW, "kind": kind, "data": data}


async def report(scene: AgentWorld, *events: dict[str, Any], **reading: Any) -> int:
    body = {"sent_at": datetime.now(UTC).isoformat(), "events": list(events), **reading}
    answer = await scene.world.post("/api/v2/workspaceagents/me/vitals", body, token=scene.token)
    return answer.status_code


async def indicators_of(scene: AgentWorld) -> dict[str, Any]:
    answer = await scene.world.get(f"/api/v2/workspaceagents/{scene.agent_id}/lights")
    assert answer.status_code == 200, answer.text
    answer_body: dict[str, Any] = answer.json()
    return answer_body


async def _status(scene: AgentWorld, status: str) -> bool:
    return bool((await scene.agent())["status"] == status)


NO_REPORTS: list[dict[str, Any]] = [
    {"events": [event("exploded")]},
    {"events": [event("started")] * 201},
    {"events": [{"at": "yesterday", "kind": "started", "data": {}}]},
    {"disk_used": "all"},
]


async def test_invalid_report_rejected() -> None:
    async with workspace_world() as scene:
        for invalid in NO_REPORTS:
            body = {"sent_at": NOW, **invalid}
            answer = await scene.world.post("/api/v2/workspaceagents/me/vitals", body, token=scene.token)
            assert answer.status_code == 400, f"{list(invalid)}: {answer.text}"


async def test_reports_on_session() -> None:
    """The call accepts and rejects what the route does."""
    async with workspace_world() as scene, connected_agent(scene) as agent:

        async def call(document: str) -> int:
            try:
                await agent.session.call(AGENT_REPORTS + "ReportVitals", StringValue(value=document), Empty)
            except RpcError as error:
                return error.number
            return 0

        body = {"sent_at": NOW, "events": [event("started")], "disk_used": 99, "disk_total": 100}
        assert await call(json.dumps(body)) == 0
        assert (await indicators_of(scene))["host"]["status"] == "bad"
        invalid = [json.dumps({"sent_at": NOW, **report}) for report in NO_REPORTS]
        nul = json.dumps({"sent_at": NOW, "events": [event("started", previous="\0")]})
        for document in (*invalid, nul, "", "[" * 100_000, '"\\ud800"', " " * (257 << 10)):
            assert await call(document) == INVALID_ARGUMENT, document[:60]


async def test_health_indicators_and_permissions() -> None:
    async with workspace_world() as scene:
        before = await indicators_of(scene)
        assert {name: light["status"] for name, light in before.items()} == dict.fromkeys(
            ("host", "agent", "path"), "unknown"
        )
        async with connected_agent(scene):
            await eventually(lambda: _status(scene, "connected"))
            reading = {"disk_used": 99, "disk_total": 100, "memory_used": 1, "memory_total": 4, "load": 0.1, "cores": 2}
            more = {"uptime_s": 86400.0, "reboot_pending": True, "direct": 0, "relayed": 1}
            assert await report(scene, **reading, **more) == 204
            indicators = await indicators_of(scene)
            assert indicators["host"]["status"] == "bad" and indicators["path"]["status"] == "warning"
            values = {value["name"]: value for value in indicators["host"]["values"]}
            assert values["disk"]["status"] == "bad" and values["disk"]["age_seconds"] < 60
            assert values["memory"]["status"] == "good"
            assert (values["pending reboot"]["value"], values["pending reboot"]["status"]) == ("yes", "warning")
            assert await report(scene, disk_used=-1, disk_total=100) == 204
            values_by_name = {value["name"]: value for value in (await indicators_of(scene))["host"]["values"]}
            assert values_by_name["disk"]["status"] == "unknown"
        _, stranger = await scene.world.member()
        for path in ("lights", "disconnects"):
            answer = await scene.world.get(f"/api/v2/workspaceagents/{scene.agent_id}/{path}", token=stranger)
            assert answer.status_code == 404
