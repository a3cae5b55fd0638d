"""Tasks: created with their workspace, conversation through their app, pause, resume, deletion."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from coder.base.clock import FakeClock
from coder.coderd.services.tasks import task_conversation
from coder.coderd.services.workspaces.autobuilds import take_due_steps
from coder.coderd.store.tasks import system_tasks
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


async def test_conversation(tmp_path: Path) -> None:
    async with fake_app() as app, task_world(app.port) as (world, answers):
        task = await new_task(world, input="Fix the login")
        path = f"{TASKS}/me/{task['id']}"
        assert task["name"].startswith("fix-the-login-")
        assert (task["display_name"], task["initial_prompt"]) == ("Fix the login", "Fix the login")
        assert (task["status"], task["current_state"]["message"]) == ("initializing", "Agent is connecting")
        metadata = answers.seen[-1].workspace_build.metadata
        assert (metadata.task_id, metadata.task_prompt) == (task["id"], "Fix the login")
        assert (await world.post(f"{path}/send", {"input": "more"})).status_code == 409
        view_context = AgentWorld(world, None, UUID(task["workspace_agent_id"]), TASK_TOKEN)
        async with running_agent(view_context, DialPolicy(world.url), tmp_path / "agent"):

            async def active() -> Any:
                current = (await world.get(path)).json()
                return current if current["status"] == "active" else None

            current = await eventually(active)
            assert (current["current_state"], current["workspace_app_id"]) == (None, APP)
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
            snapshot = await world.ctx.db.read(system_tasks.get_snapshot, UUID(task["id"]))
            assert snapshot is not None, "pausing keeps the conversation"
            assert [line["content"] for line in snapshot.messages] == ["What shall I do?", "more of it"]
            await _progress(world, path)
        await _pause_and_resume(world, answers, path, task)


async def _progress(world: World, path: str) -> None:
    """The app's reports become the task's state, and notifications for an owner who enabled them."""
    template = "8c5a4d12-9f7e-4b3a-a1c8-6e4f2d9b5a7c"  # Task Completed; off by default
    preferences = {"template_disabled_map": {template: False}}
    assert (await world.put("/api/v2/users/me/notifications/preferences", preferences)).status_code == 200
    for state, expected in (
        ("working", "working"),
        ("complete", "complete"),
        ("complete", "complete"),
        ("failure", "failed"),
    ):
        status = {"app_slug": "chat", "state": state, "message": f"now {state}", "uri": "https://example.com"}
        answer = await world.patch("/api/v2/workspaceagents/me/app-status", status, token=TASK_TOKEN)
        assert answer.status_code == 200, answer.text
        current = (await world.get(path)).json()["current_state"]
        assert (current["state"], current["message"], current["uri"]) == (
            expected,
            f"now {state}",
            "https://example.com",
        )

    async def completion_titles() -> Any:
        notifications = (await world.get("/api/v2/notifications/inbox")).json()["notifications"]
        return [item["title"] for item in notifications if "complete" in item["title"]]

    assert await eventually(completion_titles) == ['Task "Fix the login" is complete']


async def _pause_and_resume(world: World, answers: Answers, path: str, task: Any) -> None:
    messages = {"messages": [{"id": 4, "role": "agent", "content": "so far", "time": SAID_AT}]}
    snapshot = f"/api/v2/workspaceagents/me/tasks/{task['id']}/log-snapshot"
    assert (await world.post(f"{snapshot}?format=agentapi", messages)).status_code == 401, "users are not agents"
    assert (await world.post(snapshot, messages, token=TASK_TOKEN)).status_code == 400
    big = {"messages": [{"id": 4, "role": "agent", "content": "x" * 70_000}]}
    assert (await world.post(f"{snapshot}?format=agentapi", big, token=TASK_TOKEN)).status_code == 413
    invalid = {"messages": [{"id": "four"}]}
    assert (await world.post(f"{snapshot}?format=agentapi", invalid, token=TASK_TOKEN)).status_code == 400
    other = f"/api/v2/workspaceagents/me/tasks/{uuid4()}/log-snapshot?format=agentapi"
    assert (await world.post(other, messages, token=TASK_TOKEN)).status_code == 404
    with_nul = {"messages": [{"id": 1, "content": "a\0b", "role": "ag\0ent", "time": SAID_AT}]}
    assert (await world.post(f"{snapshot}?format=agentapi", with_nul, token=TASK_TOKEN)).status_code == 204
    assert (await world.post(f"{snapshot}?format=agentapi", messages, token=TASK_TOKEN)).status_code == 204
    paused = await world.post(f"{path}/pause")
    assert (paused.status_code, paused.json()["workspace_build"]["reason"]) == (202, "task_manual_pause")
    await settled(world, task["workspace_id"])
    current = (await world.get(path)).json()
    assert (current["status"], current["current_state"], current["workspace_status"]) == ("paused", None, "stopped")
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
    current = (await world.get(path)).json()
    assert (current["current_state"]["message"], current["initial_prompt"]) == ("Agent is connecting", "Fix the logout")

    async def pause_titles() -> Any:
        titles = [item["title"] for item in (await world.get("/api/v2/notifications/inbox")).json()["notifications"]]
        return [title for title in titles if "paused" in title or "goes on" in title][:2] if len(titles) > 2 else None

    assert sorted(await eventually(pause_titles)) == ['Task "Fix the login" goes on', 'Task "Fix the login" is paused']


async def test_task_permissions() -> None:
    async with task_world() as (world, _):
        alice, token = await world.member("alice")
        _, bob = await world.member("bob")
        task = await new_task(world, token=token, name="job", display_name="A job")
        version = world.extra["template"]["active_version_id"]
        for user, caller_token in (("alice", bob), ("me", bob), ("alice", "")):
            for reference in (task["id"], "job"):
                expected = 401 if not caller_token else 404
                path = f"{TASKS}/{user}/{reference}"
                assert (await world.get(path, token=caller_token)).status_code == expected
                assert (await world.delete(path, token=caller_token)).status_code == expected
                for verb, body in (("send", {"input": "x"}), ("pause", None), ("resume", None)):
                    assert (await world.post(f"{path}/{verb}", body, token=caller_token)).status_code == expected
                assert (await world.patch(f"{path}/input", {"input": "x"}, token=caller_token)).status_code == expected
                assert (await world.get(f"{path}/logs", token=caller_token)).status_code == expected
        created = await world.post(f"{TASKS}/alice", {"template_version_id": version, "input": "x"}, token=bob)
        assert created.status_code == 403
        for root in (TASKS, "/api/experimental/tasks"):
            assert (await world.get(f"{root}/alice/job")).json()["id"] == task["id"]
            assert (await world.get(f"{root}/me/{task['id']}")).status_code == 404, "it is alice's"
        assert await names(world, token=bob) == []
        assert await names(world) == await names(world, "owner:alice") == await names(world, "alice") == ["job"]
        assert await names(world, "owner:me") == await names(world, f"owner:{uuid4()}") == []
        assert await names(world, "owner:me status:initializing organization:coder", token=token) == ["job"]
        assert await names(world, "status:paused") == []
        refused = await world.get(TASKS, params={"q": "owner:unknown status:odd colour:red"})
        assert refused.status_code == 400
        assert [item["field"] for item in refused.json()["validations"]] == ["owner", "status", "colour"]
        hidden = await world.get(TASKS, params={"q": "owner:alice"}, token=bob)
        assert hidden.status_code == 400
        checks = {
            "mine": {
                "action": "delete",
                "object": {"resource_type": "task", "owner_id": alice, "organization_id": world.organization_id},
            }
        }
        for caller_token, expected in ((token, True), (bob, False)):
            assert (await world.post("/api/v2/authcheck", {"checks": checks}, token=caller_token)).json() == {
                "mine": expected
            }


CONVERSATION: dict[str, dict[str, tuple[int, int]]] = {
    # state: caller -> status of send and logs
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


async def _caller_tokens(world: World) -> dict[str, str]:
    """Return the tokens of all callers that try to use alice's task."""
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
        created = await world.post("/api/v2/users/me/keys/tokens", {"scopes": scopes}, token=tokens["alice"])
        assert created.status_code == 201, created.text
        tokens[name] = created.json()["key"]
    return tokens


async def test_conversation_requires_application_connect(tmp_path: Path) -> None:
    """A snapshot requires it, too: otherwise pausing the task would reveal its messages."""
    failures = []
    async with fake_app() as app, task_world(app.port) as (world, _):
        tokens = await _caller_tokens(world)
        task = await new_task(world, token=tokens["alice"])
        path = f"{TASKS}/alice/{task['id']}"

        async def check_state(state: str) -> None:
            assert (await world.get(path)).json()["status"] == state
            for caller, expected in CONVERSATION[state].items():
                sent = await world.post(f"{path}/send", {"input": f"by {caller}"}, token=tokens[caller])
                read = await world.get(f"{path}/logs", token=tokens[caller])
                if (sent.status_code, read.status_code) != expected:
                    failures.append(f"{state} {caller}: {sent.status_code} {sent.text} {read.status_code} {read.text}")

        async def active() -> bool:
            return bool((await world.get(path)).json()["status"] == "active")

        await check_state("initializing")
        view_context = AgentWorld(world, None, UUID(task["workspace_agent_id"]), TASK_TOKEN)
        async with running_agent(view_context, DialPolicy(world.url), tmp_path / "agent"):
            await eventually(active)
            await check_state("active")
            received = [line["content"] for line in app.messages]
            assert (await world.post(f"{path}/pause", token=tokens["organization-admin"])).status_code == 202
        await settled(world, task["workspace_id"])
        await check_state("paused")
        snapshot = (await world.get(f"{path}/logs", token=tokens["alice"])).json()
        dormant = await world.put(f"/api/v2/workspaces/{task['workspace_id']}/dormant", {"dormant": True})
        assert dormant.status_code == 200, dormant.text
        while_dormant = await world.get(f"{path}/logs", token=tokens["alice"])
        assert while_dormant.json() == snapshot, "a user who may activate the workspace reads the snapshot"
    assert not failures, "\n".join(failures)
    assert received == ["by owner", "by alice", "by connect-key"]
    assert [line["content"] for line in snapshot["logs"]] == received, "also when another user pauses"


async def test_tasks_hidden_with_owner_workspace_access_off() -> None:
    async with task_world(disable_owner_workspace_access=True) as (world, _):
        _, token = await world.member("alice")
        task = await new_task(world, token=token)
        for user, caller_token, expected in (("alice", world.token, (404, 404)), ("alice", token, (409, 200))):
            path = f"{TASKS}/{user}/{task['id']}"
            sent = await world.post(f"{path}/send", {"input": "x"}, token=caller_token)
            assert (sent.status_code, (await world.get(f"{path}/logs", token=caller_token)).status_code) == expected
            assert (await world.get(path, token=caller_token)).status_code == 200


async def test_list_contains_readable_tasks() -> None:
    """A role may deny users their own tasks."""
    async with task_world() as (world, _):
        bob, token = await world.member("bob")
        created = await new_task(world, token=token)
        denial = {"negate": True, "resource_type": "task", "action": "read"}
        empty: dict[str, Any] = {"site_permissions": [], "user_permissions": [], "organization_member_permissions": []}
        role = {"name": "blind", "display_name": "", "organization_permissions": [denial], **empty}
        assert (await world.post(f"{DEFAULT}/members/roles", role)).status_code == 200

        async def visible() -> tuple[int, int]:
            opened = await world.get(f"{TASKS}/bob/{created['id']}", token=token)
            listed = await world.get(TASKS, token=token)
            return opened.status_code, listed.json()["count"]

        assert await visible() == (200, 1)
        for roles, expected in ((["blind"], (404, 0)), ([], (200, 1))):
            assert (await world.put(f"{DEFAULT}/members/{bob}/roles", {"roles": roles})).status_code == 200
            assert await visible() == expected


async def test_names_pages_and_invalid_bodies() -> None:
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
        assert (await world.post(f"{TASKS}/unknown", {"template_version_id": version, "input": "x"})).status_code == 404
        page = await world.get(TASKS, params={"limit": "1", "offset": "1"})
        assert ([task["name"] for task in page.json()["tasks"]], page.json()["count"]) == (["one"], 2)
        assert (await world.get(f"{TASKS}/me/a%00b")).status_code == 404


async def test_task_deleted_with_workspace_is_audited() -> None:
    async with task_world() as (world, _):
        task = await new_task(world, name="one")
        workspace = f"/api/v2/workspaces/{task['workspace_id']}"
        assert (await world.get(workspace)).json()["task_id"] == task["id"]
        deleted = await world.delete(f"{TASKS}/me/one")
        assert (deleted.status_code, deleted.content) == (202, b"")
        workspace_shape = await settled(world, task["workspace_id"])
        assert (workspace_shape["latest_build"]["status"], workspace_shape["task_id"]) == ("deleted", task["id"])
        assert (await world.get(f"{TASKS}/me/{task['id']}")).status_code == 404
        again = await new_task(world, name="one")
        delete_build = await world.post(f"/api/v2/workspaces/{again['workspace_id']}/builds", {"transition": "delete"})
        assert delete_build.status_code == 201
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


async def test_idle_task_pauses_automatically() -> None:
    clock = FakeClock(datetime(2026, 1, 6, 8, 0, 30, tzinfo=UTC))
    async with task_world(clock=clock, session_duration=timedelta(days=30)) as (world, _):
        template = world.extra["template"]["id"]
        assert (await world.patch(f"/api/v2/templates/{template}", {"default_ttl_ms": 3_600_000})).status_code == 200
        task = await new_task(world)
        clock.advance(7200)
        await take_due_steps(world.ctx)
        workspace = await settled(world, task["workspace_id"])
        assert workspace["latest_build"]["reason"] == "task_auto_pause"
        assert (await world.get(f"{TASKS}/me/{task['id']}")).json()["status"] == "paused"


async def test_disconnected_agent() -> None:
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
