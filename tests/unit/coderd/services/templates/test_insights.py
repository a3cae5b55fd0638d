"""Figures counted from what agents report."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from coder.base.clock import FakeClock
from coder.rpc.proto import agent_pb2
from tests.kit.agents.scripted_agent import connected_agent
from tests.kit.agents.scripted_agent import workspace_world as agent_world
from tests.kit.api.api_description import check
from tests.kit.provisioners.scripted_provisioner import new_template
from tests.kit.server.server_in_process import running_coderd

NOON = datetime(2026, 1, 6, 12, 0, 10, tzinfo=UTC)


async def test_daily_users_require_view_insights() -> None:
    async with running_coderd(first_user=True) as world:
        template = (await new_template(world))["id"]
        listed, admin = await world.member("listed")
        roles = {
            "member": [],
            "user-admin": ["user-admin"],
            "auditor": ["auditor"],
            "template-admin": ["template-admin"],
        }
        tokens = {name: (await world.member(f"a-{name}", names))[1] for name, names in roles.items()}
        tokens |= {"owner": world.token, "listed": admin}
        path = f"/api/v2/templates/{template}"
        assert (await world.patch(f"{path}/acl", {"user_perms": {listed: "admin"}})).status_code == 200
        for name, scopes in (("reader", ["template:read"]), ("author", ["coder:templates.author"])):
            made = await world.post("/api/v2/users/me/keys/tokens", {"scopes": scopes})
            tokens[name] = made.json()["key"]
        got = {name: (await world.get(f"{path}/daus", token=token)).status_code for name, token in tokens.items()}
        refused = {"member": 404, "user-admin": 404, "reader": 404}
        assert got.pop("reader") in {403, 404}
        assert got == {name: refused.get(name, 200) for name in got}


async def test_insights_of_short_session() -> None:
    clock = FakeClock(NOON)
    async with (
        agent_world(clock=clock, session_duration=timedelta(days=3)) as view_context,
        connected_agent(view_context) as agent,
    ):
        world = view_context.world
        for _ in range(6):  # two reports a minute
            stats = agent_pb2.Stats(
                connection_count=1, session_count_ssh=1, connection_median_latency_ms=20, rx_bytes=10, tx_bytes=5
            )
            await agent.call("UpdateStats", agent_pb2.UpdateStatsRequest(stats=stats), agent_pb2.UpdateStatsResponse)
            clock.advance(30)

        async def get(path: str, **params: Any) -> Any:
            answer = await world.get(f"/api/v2/{path}", params=params)
            assert answer.status_code == 200, answer.text
            return answer.json()

        window = {"start_time": "2026-01-06T00:00:00Z", "end_time": "2026-01-06T13:00:00Z"}
        for time in ("0001-01-01T00:00:00+23:59", "2026-01-06T00:00:00", "20260106T000000Z"):
            refused = await world.get("/api/v2/insights/templates", params={**window, "start_time": time})
            assert refused.status_code == 400 and "parsing time" in refused.json()["validations"][0]["detail"], time
        template = view_context.workspace["template_id"]
        activity = await get("insights/user-activity", **window)
        check("UserActivityInsightsResponse", activity)
        assert [(user["username"], user["seconds"]) for user in activity["report"]["users"]] == [("admin", 180)]
        assert activity["report"]["template_ids"] == [template]
        latency = await get("insights/user-latency", **window, template_ids=template)
        assert latency["report"]["users"][0]["latency_ms"] == {"p50": 20, "p95": 20}
        usage = await get("insights/templates", **window, interval="day")
        check("TemplateInsightsResponse", usage)
        apps = {app["slug"]: app["seconds"] for app in usage["report"]["apps_usage"]}
        assert apps == {"ssh": 180, "vscode": 0, "jetbrains": 0, "reconnecting-pty": 0, "sftp": 0}
        assert [day["active_users"] for day in usage["interval_reports"]] == [1]
        for path in ("insights/daus", f"templates/{template}/daus"):
            assert (await get(path))["entries"][-1] == {"date": "2026-01-06", "amount": 1}
        assert (await get("insights/daus", tz_offset=13))["entries"][-1] == {"date": "2026-01-07", "amount": 1}
        found = await get("deployment/stats")
        check("DeploymentStats", found)
        assert found["workspaces"]["running"] == 1 and found["session_count"]["ssh"] == 1
        assert (found["workspaces"]["rx_bytes"], found["workspaces"]["tx_bytes"]) == (60, 30)


async def test_status_counts_and_disabled_usage() -> None:
    clock = FakeClock(NOON)
    settings: dict[str, Any] = {
        "clock": clock,
        "session_duration": timedelta(days=9),
        "stats_collection_usage_stats_enable": False,
    }
    async with running_coderd(first_user=True, **settings) as world:
        user_id, _ = await world.member()
        clock.advance(86400)
        assert (await world.put(f"/api/v2/users/{user_id}/status/suspend")).status_code == 200
        clock.advance(86400)
        answer = await world.get("/api/v2/insights/user-status-counts", params={"timezone": "Asia/Kathmandu"})
        counts = answer.json()["status_counts"]
        last = {status: [day["count"] for day in days[-3:]] for status, days in counts.items()}
        assert last["active"] == [0, 2, 1] and last["suspended"] == [0, 0, 1]
        assert counts["active"][-1]["date"] == "2026-01-08T00:00:00+05:45"
        assert (await world.get("/api/v2/insights/daus")).status_code == 404


async def test_insights_need_permission_per_template() -> None:
    async with agent_world() as view_context:
        world, template = view_context.world, view_context.workspace["template_id"]
        user_id, of_organization = await world.member()
        members = f"/api/v2/organizations/{world.organization_id}/members/{user_id}/roles"
        assert (await world.put(members, {"roles": ["organization-admin"]})).status_code == 200
        _, plain = await world.member()
        window = {"start_time": "2020-01-05T00:00:00Z", "end_time": "2020-01-06T00:00:00Z"}
        for name in ("templates", "user-activity", "user-latency"):
            for token, ids, status in (
                (of_organization, template, 200),
                (of_organization, "", 404),  # every template of every organization
                (of_organization, f"{template},{uuid4()}", 404),
                (plain, template, 404),
                (world.token, f"{template},{uuid4()}", 200),  # as recorded: administrators see that it was not used
                (world.token, template, 200),
            ):
                params = window | ({"template_ids": ids} if ids else {})
                answer = await world.get(f"/api/v2/insights/{name}", token=token, params=params)
                assert answer.status_code == status, (name, ids, answer.text)
