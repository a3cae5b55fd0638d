"""Tasks: made with their workspace, spoken to through their app, paused, resumed, gone with their workspace."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from coder.base.clock import FakeClock
from coder.coderd.services.tasks import task_conversation
from coder.coderd.services.workspaces.autobuilds import take_due_steps
from coder.coderd.store.tasks import tasks as task_store
from coder.domain.access.policy import SYSTEM
from coder.net.policy import DialPolicy
from coder.rpc.proto import agent_pb2
from tests.kit.agents.real_agent import running_agent
from tests.kit.agents.scripted_agent import AgentWorld, connected_agent, eventually
from tests.kit.api.api_description import check
from tests.kit.provisioners.scripted_provisioner import Answers
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import APP, TASK_TOKEN, TASKS, new_task, settled, task_world
from tests.kit.stand_ins.scripted_http_servers import SAID_AT, fake_app

DEFAULT = "/api/v2/organizations/default"


async def names(world: World, query: str = "", **rest: Any) -> list[str]:
    answer = await world.get(TASKS, params={"q": query}, **rest)
    assert answer.status_code == 200, answer.text
    check("TasksListResponse", answer.json())
    return [task["name"] for task in answer.json()["tasks"]]


async def test_a_conversation(tmp_path: Path) -> None:
    async with fake_app() as app, task_world(app.port) as (world, answers):
        task = await new_task(world, input="Fix the login")
        path = f"{TASKS}/me/{task['id']}"
        assert task["name"].startswith("fix-the-login-")
        assert (task["display_name"], task["initial_prompt"]) == ("Fix the login", "Fix the login")
        assert (task["status"], task["current_state"]["message"]) == ("initializing", "Agent is connecting")
        told = answers.seen[-1].workspace_build.metadata
        assert (told.task_id, told.task_prompt) == (task["id"], "Fix the login")
        assert (await world.post(f"{path}/send", {"input": "more"})).status_code == 409
        view_context = AgentWorld(world, None, UUID(task["workspace_agent_id"]), TASK_TOKEN)
        async with running_agent(view_context, DialPolicy(world.url), tmp_path / "agent"):

            async def active() -> Any:
                found = (await world.get(path)).json()
                return found if found["status"] == "active" else None

            found = await eventually(active)
            assert (found["current_state"], found["workspace_app_id"]) == (None, APP)
            app.say("agent", "What shall I do?")
            assert (await world.post(f"{path}/send", {"input": "more of it"})).status_code == 204
            logs = (await world.get(f"{path}/logs")).json()
            check("TaskLogsResponse", logs)
            assert logs == {
                "logs": [
                    {"id": 0, "content": "What shall I do?", "type": "output", "time": SAID_AT},
                    {"id": 1, "content": "more of it", "type": "input", "time": SAID_AT},
                ]
            }
            app.status = "running"
            busy = await world.post(f"{path}/send", {"input": "now"})
            assert (busy.status_code, busy.json()["message"]) == (409, "Task app is not ready to accept input.")
            assert (await world.post(f"{path}/send", {"input": ""})).status_code == 400
            app.broken = True
            assert (await world.post(f"{path}/send", {"input": "now"})).status_code == 502
            assert (await world.get(f"{path}/logs")).status_code == 502
            app.broken = False
            await task_conversation.remember(world.ctx, SYSTEM, UUID(world.user_id), task["id"])
            kept = await world.ctx.db.read(task_store.get_snapshot, UUID(task["id"]))
            assert kept is not None, "whoever pauses keeps what was said"
            assert [line["content"] for line in kept.messages] == ["What shall I do?", "more of it"]
            await _progress(world, path)
        await _pause_and_resume(world, answers, path, task)


async def _progress(world: World, path: str) -> None:
    """What the app says of itself is the task's state, and news to its owner who asked for them."""
    template = "8c5a4d12-9f7e-4b3a-a1c8-6e4f2d9b5a7c"  # Task Completed; off until somebody wants it
    wanted = {"template_disabled_map": {template: False}}
    assert (await world.put("/api/v2/users/me/notifications/preferences", wanted)).status_code == 200
    for state, shown in (
        ("working", "working"),
        ("complete", "complete"),
        ("complete", "complete"),
        ("failure", "failed"),
    ):
        said = {"app_slug": "chat", "state": state, "message": f"now {state}", "uri": "https://example.com"}
        answer = await world.patch("/api/v2/workspaceagents/me/app-status", said, token=TASK_TOKEN)
        assert answer.status_code == 200, answer.text
        current = (await world.get(path)).json()["current_state"]
        assert (current["state"], current["message"], current["uri"]) == (shown, f"now {state}", "https://example.com")

    async def told() -> Any:
        found = (await world.get("/api/v2/notifications/inbox")).json()["notifications"]
        return [item["title"] for item in found if "complete" in item["title"]]

    assert await eventually(told) == ['Task "Fix the login" is complete']


async def _pause_and_resume(world: World, answers: Answers, path: str, task: Any) -> None:
    left = {"messages": [{"id": 4, "role": "agent", "content": "so far", "time": SAID_AT}]}
    snapshot = f"/api/v2/workspaceagents/me/tasks/{task['id']}/log-snapshot"
    assert (await world.post(f"{snapshot}?format=agentapi", left)).status_code == 401, "people are no agents"
    assert (await world.post(snapshot, left, token=TASK_TOKEN)).status_code == 400
    big = {"messages": [{"id": 4, "role": "agent", "content": "x" * 70_000}]}
    assert (await world.post(f"{snapshot}?format=agentapi", big, token=TASK_TOKEN)).status_code == 413
    bad = {"messages": [{"id": "four"}]}
    assert (await world.post(f"{snapshot}?format=agentapi", bad, token=TASK_TOKEN)).status_code == 400
    other = f"/api/v2/workspaceagents/me/tasks/{uuid4()}/log-snapshot?format=agentapi"
    assert (await world.post(other, left, token=TASK_TOKEN)).status_code == 404
    odd = {"messages": [{"id": 1, "content": "a\0b", "role": "ag\0ent", "time": SAID_AT}]}
    assert (await world.post(f"{snapshot}?format=agentapi", odd, token=TASK_TOKEN)).status_code == 204
    assert (await world.post(f"{snapshot}?format=agentapi", left, token=TASK_TOKEN)).status_code == 204
    paused = await world.post(f"{path}/pause")
    assert (paused.status_code, paused.json()["workspace_build"]["reason"]) == (202, "task_manual_pause")
    await settled(world, task["workspace_id"])
    found = (await world.get(path)).json()
    assert (found["status"], found["current_state"], found["workspace_status"]) == ("paused", None, "stopped")
    logs = (await world.get(f"{path}/logs")).json()
    assert logs.pop("snapshot_at")
    assert logs == {
        "logs": [{"id": 4, "content": "so far", "type": "output", "time": SAID_AT}],
        "snapshot": True,
    }
    assert (await world.post(f"{path}/pause")).status_code == 409
    assert (await world.patch(f"{path}/input", {"input": " "})).status_code == 400
    assert (await world.patch(f"{path}/input", {"input": "Fix the logout"})).status_code == 204
    resumed = await world.post(f"{path}/resume")
    assert (resumed.status_code, resumed.json()["workspace_build"]["reason"]) == (202, "task_resume")
    await settled(world, task["workspace_id"])
    assert answers.seen[-1].workspace_build.metadata.task_prompt == "Fix the logout"
    found = (await world.get(path)).json()
    assert (found["current_state"]["message"], found["initial_prompt"]) == ("Agent is connecting", "Fix the logout")

    async def told() -> Any:
        titles = [item["title"] for item in (await world.get("/api/v2/notifications/inbox")).json()["notifications"]]
        return [title for title in titles if "paused" in title or "goes on" in title][:2] if len(titles) > 2 else None

    assert sorted(await eventually(told)) == ['Task "Fix the login" goes on', 'Task "Fix the login" is paused']


async def test_who_may_see_and_do() -> None:
    async with task_world() as (world, _):
        alice, token = await world.member("alice")
        _, bob = await world.member("bob")
        task = await new_task(world, token=token, name="job", display_name="A job")
        version = world.extra["template"]["active_version_id"]
        for user, who in (("alice", bob), ("me", bob), ("alice", "")):
            for reference in (task["id"], "job"):
                expected = 401 if not who else 404
                path = f"{TASKS}/{user}/{reference}"
                assert (await world.get(path, token=who)).status_code == expected
                assert (await world.delete(path, token=who)).status_code == expected
                for verb, body in (("send", {"input": "x"}), ("pause", None), ("resume", None)):
                    assert (await world.post(f"{path}/{verb}", body, token=who)).status_code == expected
                assert (await world.patch(f"{path}/input", {"input": "x"}, token=who)).status_code == expected
                assert (await world.get(f"{path}/logs", token=who)).status_code == expected
        made = await world.post(f"{TASKS}/alice", {"template_version_id": version, "input": "x"}, token=bob)
        assert made.status_code == 403
        for root in (TASKS, "/api/experimental/tasks"):
            assert (await world.get(f"{root}/alice/job")).json()["id"] == task["id"]
            assert (await world.get(f"{root}/me/{task['id']}")).status_code == 404, "it is alice's"
        assert await names(world, token=bob) == []
        assert await names(world) == await names(world, "owner:alice") == await names(world, "alice") == ["job"]
        assert await names(world, "owner:me") == await names(world, f"owner:{uuid4()}") == []
        assert await names(world, "owner:me status:initializing organization:default", token=token) == ["job"]
        assert await names(world, "status:paused") == []
        refused = await world.get(TASKS, params={"q": "owner:nobody status:odd colour:red"})
        assert refused.status_code == 400
        assert [item["field"] for item in refused.json()["validations"]] == ["owner", "status", "colour"]
        hidden = await world.get(TASKS, params={"q": "owner:alice"}, token=bob)
        assert hidden.status_code == 400
        asked = {
            "mine": {
                "action": "delete",
                "object": {"resource_type": "task", "owner_id": alice, "organization_id": world.organization_id},
            }
        }
        for who, expected in ((token, True), (bob, False)):
            assert (await world.post("/api/v2/authcheck", {"checks": asked}, token=who)).json() == {"mine": expected}


CONVERSATION: dict[str, dict[str, tuple[int, int]]] = {
    # state: caller -> what send and logs answer
    "initializing": {
        "owner": (409, 200),
        "organization-admin": (404, 404),
        "alice": (409, 200),
        "task-key": (404, 404),
        "connect-key": (409, 200),
        "read-key": (403, 404),
        "bob": (404, 404),
    },
    "active": {
        "owner": (204, 200),
        "organization-admin": (404, 404),
        "alice": (204, 200),
        "task-key": (404, 404),
        "connect-key": (204, 200),
        "read-key": (403, 404),
        "bob": (404, 404),
    },
    "paused": {
        "owner": (409, 200),
        "organization-admin": (404, 404),
        "alice": (409, 200),
        "task-key": (404, 404),
        "connect-key": (409, 200),
        "read-key": (403, 404),
        "bob": (404, 404),
    },
}


async def _speakers(world: World) -> dict[str, str]:
    """Tokens of those who try to speak with alice's task."""
    tokens = {"owner": world.token}
    _, tokens["alice"] = await world.member("alice")
    _, tokens["bob"] = await world.member("bob")
    admin, tokens["organization-admin"] = await world.member("manager")
    assert (await world.put(f"{DEFAULT}/members/{admin}/roles", {"roles": ["organization-admin"]})).status_code == 200
    for name, scopes in (
        ("task-key", ["task:read", "task:update", "user:read"]),
        ("connect-key", ["task:read", "task:update", "user:read", "workspace:application_connect"]),
        ("read-key", ["task:read", "user:read"]),
    ):
        made = await world.post("/api/v2/users/me/keys/tokens", {"scopes": scopes}, token=tokens["alice"])
        assert made.status_code == 201, made.text
        tokens[name] = made.json()["key"]
    return tokens


async def test_a_conversation_asks_for_application_connect(tmp_path: Path) -> None:
    """Also where it is read from what was left behind: else pausing the task would open it."""
    wrong = []
    async with fake_app() as app, task_world(app.port) as (world, _):
        tokens = await _speakers(world)
        task = await new_task(world, token=tokens["alice"])
        path = f"{TASKS}/alice/{task['id']}"

        async def ask(state: str) -> None:
            assert (await world.get(path)).json()["status"] == state
            for caller, expected in CONVERSATION[state].items():
                sent = await world.post(f"{path}/send", {"input": f"by {caller}"}, token=tokens[caller])
                read = await world.get(f"{path}/logs", token=tokens[caller])
                if (sent.status_code, read.status_code) != expected:
                    wrong.append(f"{state} {caller}: {sent.status_code} {sent.text} {read.status_code} {read.text}")

        async def active() -> bool:
            return bool((await world.get(path)).json()["status"] == "active")

        await ask("initializing")
        view_context = AgentWorld(world, None, UUID(task["workspace_agent_id"]), TASK_TOKEN)
        async with running_agent(view_context, DialPolicy(world.url), tmp_path / "agent"):
            await eventually(active)
            await ask("active")
            heard = [line["content"] for line in app.messages]
            assert (await world.post(f"{path}/pause", token=tokens["organization-admin"])).status_code == 202
        await settled(world, task["workspace_id"])
        await ask("paused")
        kept = (await world.get(f"{path}/logs", token=tokens["alice"])).json()
        dormant = await world.put(f"/api/v2/workspaces/{task['workspace_id']}/dormant", {"dormant": True})
        assert dormant.status_code == 200, dormant.text
        asleep = await world.get(f"{path}/logs", token=tokens["alice"])
        assert asleep.json() == kept, "who may wake the workspace reads what was said before"
    assert not wrong, "\n".join(wrong)
    assert heard == ["by owner", "by alice", "by connect-key"]
    assert [line["content"] for line in kept["logs"]] == heard, "also when somebody else pauses"


async def test_owners_kept_out_of_workspaces_hear_no_tasks() -> None:
    async with task_world(disable_owner_workspace_access=True) as (world, _):
        _, token = await world.member("alice")
        task = await new_task(world, token=token)
        for user, who, expected in (("alice", world.token, (404, 404)), ("alice", token, (409, 200))):
            path = f"{TASKS}/{user}/{task['id']}"
            sent = await world.post(f"{path}/send", {"input": "x"}, token=who)
            assert (sent.status_code, (await world.get(f"{path}/logs", token=who)).status_code) == expected
            assert (await world.get(path, token=who)).status_code == 200


async def test_a_list_shows_what_can_be_opened() -> None:
    """A role may deny what is one's own."""
    async with task_world() as (world, _):
        bob, token = await world.member("bob")
        made = await new_task(world, token=token)
        denial = {"negate": True, "resource_type": "task", "action": "read"}
        none: dict[str, Any] = {"site_permissions": [], "user_permissions": [], "organization_member_permissions": []}
        role = {"name": "blind", "display_name": "", "organization_permissions": [denial], **none}
        assert (await world.post(f"{DEFAULT}/members/roles", role)).status_code == 200

        async def seen() -> tuple[int, int]:
            opened = await world.get(f"{TASKS}/bob/{made['id']}", token=token)
            listed = await world.get(TASKS, token=token)
            return opened.status_code, listed.json()["count"]

        assert await seen() == (200, 1)
        for roles, what in ((["blind"], (404, 0)), ([], (200, 1))):
            assert (await world.put(f"{DEFAULT}/members/{bob}/roles", {"roles": roles})).status_code == 200
            assert await seen() == what


async def test_names_pages_and_bad_bodies() -> None:
    async with task_world() as (world, _):
        version = world.extra["template"]["active_version_id"]
        await new_task(world, name="one", display_name="One")
        taken = await world.post(f"{TASKS}/me", {"template_version_id": version, "input": "x", "name": "One"})
        assert (taken.status_code, taken.json()["message"]) == (409, 'Workspace "One" already exists.')
        generated = await new_task(world, input="…")
        assert generated["name"].startswith("task-")
        for body, status in (
            ({"template_version_id": version, "input": "x", "name": "x" * 33}, 400),
            ({"template_version_id": version, "input": "a\x00b"}, 400),
            ({"template_version_id": version, "input": " "}, 400),
            ({"template_version_id": version, "input": "x", "display_name": "y" * 65}, 400),
            ({"input": "x"}, 400),
            ({"template_version_id": str(uuid4()), "input": "x"}, 404),
        ):
            assert (await world.post(f"{TASKS}/me", body)).status_code == status, body
        assert (await world.post(f"{TASKS}/nobody", {"template_version_id": version, "input": "x"})).status_code == 404
        page = await world.get(TASKS, params={"limit": "1", "offset": "1"})
        assert ([task["name"] for task in page.json()["tasks"]], page.json()["count"]) == (["one"], 2)
        assert (await world.get(f"{TASKS}/me/a%00b")).status_code == 404


async def test_a_task_goes_with_its_workspace_and_leaves_entries() -> None:
    async with task_world() as (world, _):
        task = await new_task(world, name="one")
        workspace = f"/api/v2/workspaces/{task['workspace_id']}"
        assert (await world.get(workspace)).json()["task_id"] == task["id"]
        gone = await world.delete(f"{TASKS}/me/one")
        assert (gone.status_code, gone.content) == (202, b"")
        found = await settled(world, task["workspace_id"])
        assert (found["latest_build"]["status"], found["task_id"]) == ("deleted", task["id"])
        assert (await world.get(f"{TASKS}/me/{task['id']}")).status_code == 404
        again = await new_task(world, name="one")
        made = await world.post(f"/api/v2/workspaces/{again['workspace_id']}/builds", {"transition": "delete"})
        assert made.status_code == 201
        await settled(world, again["workspace_id"])
        assert await names(world) == []
        log = (await world.get("/api/v2/audit", params={"q": "resource_type:task", "limit": 10})).json()["audit_logs"]
        assert [(entry["action"], entry["resource_target"], entry["is_deleted"]) for entry in log] == [
            ("create", "one", True),
            ("delete", "one", True),
            ("create", "one", True),
        ]
        assert log[-1]["diff"]["prompt"]["new"] == "do the thing"
        others = (await world.get("/api/v2/audit", params={"q": "resource_type:workspace", "limit": 10})).json()
        assert [entry["action"] for entry in others["audit_logs"]] == ["create", "create"]


async def test_an_idle_task_pauses_by_itself() -> None:
    clock = FakeClock(datetime(2026, 1, 6, 8, 0, 30, tzinfo=UTC))
    async with task_world(clock=clock, session_duration=timedelta(days=30)) as (world, _):
        template = world.extra["template"]["id"]
        assert (await world.patch(f"/api/v2/templates/{template}", {"default_ttl_ms": 3_600_000})).status_code == 200
        task = await new_task(world)
        clock.advance(7200)
        await take_due_steps(world.ctx)
        found = await settled(world, task["workspace_id"])
        assert found["latest_build"]["reason"] == "task_auto_pause"
        assert (await world.get(f"{TASKS}/me/{task['id']}")).json()["status"] == "paused"


async def test_an_agent_that_is_gone() -> None:
    async with task_world() as (world, _):
        task = await new_task(world)
        view_context = AgentWorld(world, None, UUID(task["workspace_agent_id"]), TASK_TOKEN)
        async with connected_agent(view_context) as link:
            ready = agent_pb2.UpdateLifecycleRequest(lifecycle=agent_pb2.Lifecycle(state=agent_pb2.Lifecycle.READY))
            await link.call("UpdateLifecycle", ready, agent_pb2.Lifecycle)

        async def lost() -> bool:
            return bool((await view_context.agent())["status"] == "disconnected")

        await eventually(lost)
        answer = await world.get(f"{TASKS}/me/{task['id']}/logs")
        assert (answer.status_code, answer.json()["message"]) == (502, "The task's agent is not connected.")
        assert json.loads(answer.content)["detail"]
