"""Every listed template is sent for its real cause, by mail and to the inbox.

Each story causes events and names the expected templates; the last test compares them with the list.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from coder.base.clock import FakeClock
from coder.coderd.services.templates.rollout_watch import watch_rollouts
from coder.coderd.services.workspaces.autobuilds import take_due_steps
from coder.coderd.services.workspaces.autostop_reminders import remind
from coder.coderd.services.workspaces.builds.build_reports import report
from coder.coderd.services.workspaces.prebuild_reconciliation import reconcile
from coder.domain.notifications.notification_templates import TEMPLATES
from coder.domain.notifications.own_templates import ROLLOUT_STOPPED
from coder.domain.templates.rollouts import bucket_of
from coder.rpc.proto import agent_pb2
from coder.rpc.proto import provisioner_pb2 as pb
from tests.kit.agents.scripted_agent import AgentWorld, connected_agent, eventually
from tests.kit.agents.scripted_agent import workspace_world as agent_world
from tests.kit.provisioners.scripted_provisioner import Answers, agent, ended, new_version, resource
from tests.kit.server.server_in_process import World, running_coderd
from tests.kit.server.workspaces import (
    TASK_TOKEN,
    TASKS,
    build,
    build_answer,
    create,
    new_task,
    parameters,
    settled,
    task_world,
    workspace_world,
)
from tests.kit.stand_ins.notification_receivers import Mailbox, mail_server

LEFT_OUT = ("AI ", "Chat", "User Approaching AI", "User Reached AI")
"""Templates listed by upstream for features that this server lacks."""
TUESDAY = datetime(2026, 1, 6, 8, 0, 30, tzinfo=UTC)
HOUR_MS = 3_600_000
IDS = {template.id: template.name for template in TEMPLATES}
Story = Callable[[dict[str, Any], Mailbox], Awaitable[None]]
NAMES = ["people", "workspaces", "templates", "rollouts", "resources", "prebuilds", "failures", "tasks"]
STORIES: dict[str, tuple[Story, frozenset[str]]] = {}


def story(*names: str) -> Callable[[Story], Story]:
    """Register a story by its name, with the templates it sends."""

    def register(told: Story) -> Story:
        STORIES[told.__name__] = (told, frozenset(names))
        return told

    return register


@pytest.mark.parametrize("name", NAMES)
async def test_story(name: str) -> None:
    told, _ = STORIES[name]
    with mail_server() as (box, address):
        await told({"email_smarthost": address, "email_from": "coder@example.com"}, box)


def test_stories_cover_every_template() -> None:
    names = {template.name for template in TEMPLATES if not template.name.startswith(LEFT_OUT)}
    assert set().union(*(told for _, told in STORIES.values())) == names


async def wants_all(world: World, **rest: Any) -> None:
    """Enable templates that are off by default."""
    expected = {"template_disabled_map": {str(template.id): False for template in TEMPLATES}}
    answer = await world.put("/api/v2/users/me/notifications/preferences", expected, **rest)
    assert answer.status_code == 200, answer.text


async def arrived(world: World, box: Mailbox, name: str) -> None:
    """Whether all messages of the story are in inboxes and went out by mail with the same title."""
    expected = STORIES[name][1]

    async def look() -> bool:
        titles: dict[str, set[str]] = {}
        for template_id, title in await world.ctx.db.read(_inboxes):
            titles.setdefault(IDS[template_id], set()).add(title)
        mailed = {str(mail["Subject"]) for _, _, mail in box.mails}
        world.extra["missing"] = [item for item in expected if not titles.get(item, set()) & mailed]
        return not world.extra["missing"]

    try:
        await eventually(look)
    except Exception as error:
        raise AssertionError(f"missing: {world.extra['missing']}") from error


async def _inboxes(tx: Any) -> list[tuple[UUID, str]]:
    return [(row[0], row[1]) for row in await tx.execute(text("SELECT template_id, title FROM inbox_notifications"))]


@story(
    "User account created",
    "User account suspended",
    "User account activated",
    "User account deleted",
    "Your account has been suspended",
    "Your account has been activated",
    "One-Time Passcode",
    "Troubleshooting Notification",
    "Custom Notification",
)
async def people(settings: dict[str, Any], box: Mailbox) -> None:
    async with running_coderd(first_user=True, **settings) as world:
        user_id, _ = await world.member("maria")
        assert (await world.post("/api/v2/users/otp/request", {"email": "a@b.c"})).status_code == 204
        assert (await world.post("/api/v2/notifications/test")).status_code == 204
        custom = {"content": {"title": "One", "message": "**1**"}}
        assert (await world.post("/api/v2/notifications/custom", custom)).status_code == 204
        for verb in ("suspend", "activate"):
            assert (await world.put(f"/api/v2/users/{user_id}/status/{verb}")).status_code == 200
        assert (await world.delete(f"/api/v2/users/{user_id}")).status_code == 200
        await arrived(world, box, "people")


@asynccontextmanager
async def maria_world(
    settings: dict[str, Any], clock: FakeClock | None = None
) -> AsyncIterator[tuple[World, Answers, str]]:
    """Yield a server on which an administrator and maria have enabled every template."""
    async with workspace_world(clock=clock, session_duration=timedelta(days=90), **settings) as (world, answers):
        _, token = await world.member("maria")
        await wants_all(world)
        await wants_all(world, token=token)
        yield world, answers, token


async def change_template(world: World, **body: Any) -> None:
    answer = await world.patch(f"/api/v2/templates/{world.extra['template']['id']}", body)
    assert answer.status_code == 200, answer.text


async def next_version(world: World) -> str:
    """Create and activate another version of the template."""
    template_id = world.extra["template"]["id"]
    version = str((await new_version(world, template_id=template_id))["id"])
    await ended(world, f"/api/v2/templateversions/{version}")
    answer = await world.patch(f"/api/v2/templates/{template_id}/versions", {"id": version})
    assert answer.status_code == 200, answer.text
    return version


@story(
    "Workspace Created",
    "Workspace Autostop Reminder",
    "Workspace Manually Updated",
    "Workspace Updated Automatically",
    "Workspace Marked as Dormant",
    "Workspace Marked for Deletion",
    "Workspace Deleted",
)
async def workspaces(settings: dict[str, Any], box: Mailbox) -> None:
    clock = FakeClock(TUESDAY)
    async with maria_world(settings, clock) as (world, _, token):
        await change_template(world, time_til_autostop_notify_ms=HOUR_MS)
        schedule = {"autostart_schedule": "CRON_TZ=UTC 0 8 * * *", "automatic_updates": "always"}
        created = await create(world, "hers", token=token, ttl_ms=2 * HOUR_MS, **schedule)
        assert created.status_code == 201, created.text
        workspace_id = created.json()["id"]
        await settled(world, workspace_id)
        assert await remind(world.ctx) == 0, "two hours are left"
        clock.advance(1.5 * 3600)
        assert [await remind(world.ctx), await remind(world.ctx)] == [1, 0], "once for a deadline"
        await build(world, workspace_id, "stop")
        version = await next_version(world)
        path = f"/api/v2/workspaces/{workspace_id}/builds"
        expected = {"transition": "start", "template_version_id": version}
        assert (await world.post(path, expected, token=token)).status_code == 201
        await settled(world, workspace_id)
        await build(world, workspace_id, "stop")
        await next_version(world)
        clock.advance(22.5 * 3600)
        assert [taken.step.reason for taken in await take_due_steps(world.ctx)] == ["autostart"]
        await settled(world, workspace_id)
        await build(world, workspace_id, "stop")
        assert (await world.put(f"/api/v2/workspaces/{workspace_id}/dormant", {"dormant": True})).status_code == 200
        await change_template(world, time_til_dormant_autodelete_ms=48 * HOUR_MS)
        await build(world, workspace_id, "delete")
        await arrived(world, box, "workspaces")


@story("Template Deprecated", "Template Deleted")
async def templates(settings: dict[str, Any], box: Mailbox) -> None:
    async with maria_world(settings) as (world, _, token):
        created = await create(world, "hers", token=token)
        await settled(world, created.json()["id"])
        await change_template(world, deprecation_message="use another")
        await build(world, created.json()["id"], "delete")
        _, other = await world.member("otto", roles=["owner"])
        answer = await world.delete(f"/api/v2/templates/{world.extra['template']['id']}", token=other)
        assert answer.status_code == 200, answer.text
        await arrived(world, box, "templates")


@story("Template Rollout Stopped")
async def rollouts(settings: dict[str, Any], box: Mailbox) -> None:
    """Its starter and the template's author are notified, once each; a starter who left the organization is not."""
    async with maria_world(settings) as (world, answers, _):
        tina, token = await world.member("tina", roles=["template-admin"])
        template_id = world.extra["template"]["id"]
        created = await create(world, "box")
        await settled(world, created.json()["id"])
        version = str((await new_version(world, template_id=template_id))["id"])
        await ended(world, f"/api/v2/templateversions/{version}")
        answers.build = lambda job: _FAILS
        body = {"template_version_id": version, "stages": [99, 100], "failure_percent": 40, "minimum_builds": 1}
        path = f"/api/v2/templates/{template_id}/rollouts"
        for leaves, notified in ((False, 2), (True, 3)):
            rollout = (await world.post(path, body, token=token)).json()
            while bucket_of(UUID(rollout["id"]), UUID(created.json()["id"])) >= 99:
                await world.patch(path, {"rollout_id": rollout["id"], "action": "rollback", "percent": 99})
                rollout = (await world.post(path, body, token=token)).json()
            if leaves:
                assert (await world.put(f"/api/v2/users/{tina}/roles", {"roles": []})).status_code == 200
                member = f"/api/v2/organizations/{world.organization_id}/members/{tina}"
                assert (await world.delete(member)).status_code == 204
            await build(world, created.json()["id"], "start", template_version_id=version)
            assert await watch_rollouts(world.ctx) == [UUID(template_id)] and await watch_rollouts(world.ctx) == []
            await eventually(partial(_has_inboxes, world, ROLLOUT_STOPPED, notified))
            await world.patch(path, {"rollout_id": rollout["id"], "action": "rollback", "percent": 99})
        await arrived(world, box, "rollouts")


async def _has_inboxes(world: World, template_id: UUID, count: int) -> bool:
    sent = [template for template, _ in await world.ctx.db.read(_inboxes) if template == template_id]
    assert len(sent) <= count
    return len(sent) == count


@story("Workspace Out Of Memory", "Workspace Out Of Disk")
async def resources(settings: dict[str, Any], box: Mailbox) -> None:
    watched = pb.ResourcesMonitoring(
        memory=pb.MemoryResourceMonitor(enabled=True, threshold=80),
        volumes=[pb.VolumeResourceMonitor(path="/home", enabled=True, threshold=90)],
    )
    async with agent_world(agent_fields={"resources_monitoring": watched}, **settings) as view_context:
        world = view_context.world
        async with connected_agent(view_context) as item:
            expected = await item.call(
                "GetResourcesMonitoringConfiguration",
                agent_pb2.GetResourcesMonitoringConfigurationRequest(),
                agent_pb2.GetResourcesMonitoringConfigurationResponse,
            )
            assert (expected.memory.enabled, [volume.path for volume in expected.volumes]) == (True, ["/home"])
            await _push(item, expected.config.num_datapoints, memory=85, volume=95)
            await arrived(world, box, "resources")
            await _push(item, expected.config.num_datapoints, memory=10, volume=10)
            await _push(item, expected.config.num_datapoints, memory=85, volume=95)
        assert len(await world.ctx.db.read(_inboxes)) == 2, "quiet for half an hour"


async def _push(item: Any, count: int, *, memory: int, volume: int) -> None:
    request = agent_pb2.PushResourcesMonitoringUsageRequest()
    for _ in range(count):
        point = request.datapoints.add()
        point.memory.used, point.memory.total = memory, 100
        point.volumes.add(volume="/home", used=volume, total=100)
    await item.call("PushResourcesMonitoringUsage", request, agent_pb2.PushResourcesMonitoringUsageResponse)


def _prebuild_import(job: Any) -> dict[str, Any]:
    preset = pb.Preset(
        name="EU", parameters=[pb.PresetParameter(name="region", value="eu")], prebuild=pb.Prebuild(instances=1)
    )
    return {
        "start_resources": [resource("box", agents=[agent()])],
        "rich_parameters": parameters(),
        "presets": [preset],
    }


@story("Prebuilt Workspace Resource Replaced", "Prebuild Failure Limit Reached")
async def prebuilds(settings: dict[str, Any], box: Mailbox) -> None:
    def claimed(job: Any) -> dict[str, Any]:
        metadata = job.workspace_build.metadata
        if metadata.workspace_transition != pb.START:
            return {"state": b""}
        tokens = [item.token for item in metadata.running_agent_auth_tokens]
        result = {
            "state": b"{}",
            "resources": [resource("box", agents=[agent(token=tokens[0] if tokens else TASK_TOKEN)])],
        }
        replaced = [pb.ResourceReplacement(resource="docker_container.box", paths=["env"])] if tokens else []
        return {**result, "resource_replacements": replaced}

    clock = FakeClock(TUESDAY)
    answers = Answers(import_=_prebuild_import, build=claimed)
    limit = {"workspace_prebuilds_failure_hard_limit": 2}
    async with workspace_world(answers, clock=clock, **limit, **settings) as (world, _):
        version = world.extra["template"]["active_version_id"]
        preset = (await world.get(f"/api/v2/templateversions/{version}/presets")).json()[0]["ID"]
        assert (await reconcile(world.ctx)).created == 1
        await _ready(world, await _prebuilt(world, 1))
        answers.build = lambda job: claimed(job) if job.workspace_build.metadata.workspace_owner == "admin" else _FAILS
        created = await create(world, "mine", template_version_preset_id=preset)
        assert created.status_code == 201, created.text
        await settled(world, created.json()["id"])
        for number in (1, 2):
            assert (await reconcile(world.ctx)).created == 1
            await _failed(world, number)
            assert (await reconcile(world.ctx)).created == 0, "too early, or too often"
            clock.advance(3 * 60)
        assert (await reconcile(world.ctx)).created == 0, "too often"
        await arrived(world, box, "prebuilds")
        titles = [title for _, title in await world.ctx.db.read(_inboxes)]
        assert sum("keep failing" in title for title in titles) == 1


_FAILS = {"error": "no quota left in the cloud"}
_PREBUILT = text(
    """SELECT w.id, j.error <> '' FROM workspaces w JOIN workspace_builds b ON b.id = w.latest_build_id
    JOIN provisioner_jobs j ON j.id = b.job_id
    WHERE w.name LIKE 'prebuild-%' AND NOT w.deleted AND j.completed_at IS NOT NULL"""
)


async def _prebuilt(world: World, count: int, *, failed: bool = False) -> str:
    async def look() -> Any:
        async def read(tx: Any) -> list[Any]:
            return [row[0] for row in await tx.execute(_PREBUILT) if row[1] == failed]

        result = await world.ctx.db.read(read)
        return result if len(result) >= count else None

    return str((await eventually(look))[0])


async def _failed(world: World, count: int) -> None:
    await _prebuilt(world, count, failed=True)


async def _ready(world: World, workspace_id: str) -> None:
    workspace = await settled(world, workspace_id)
    agent_id = workspace["latest_build"]["resources"][0]["agents"][0]["id"]
    async with connected_agent(AgentWorld(world, workspace, UUID(agent_id), TASK_TOKEN)) as item:
        lifecycle = agent_pb2.Lifecycle(state=agent_pb2.Lifecycle.READY)
        await item.call("UpdateLifecycle", agent_pb2.UpdateLifecycleRequest(lifecycle=lifecycle), agent_pb2.Lifecycle)


@story("Workspace Manual Build Failed", "Workspace Autobuild Failed", "Report: Workspace Builds Failed")
async def failures(settings: dict[str, Any], box: Mailbox) -> None:
    clock = FakeClock(TUESDAY)
    async with maria_world(settings, clock) as (world, answers, token):
        await world.member("tina", roles=["template-admin"])
        assert await report(world.ctx) == 0, "a week begins"
        created = await create(world, "hers", token=token, ttl_ms=2 * HOUR_MS)
        workspace_id = created.json()["id"]
        await settled(world, workspace_id)
        answers.build = lambda job: _FAILS
        await build(world, workspace_id, "start")
        answers.build = build_answer
        await build(world, workspace_id, "start")
        answers.build = lambda job: _FAILS
        clock.advance(3 * 3600)
        assert [taken.step.reason for taken in await take_due_steps(world.ctx)] == ["autostop"]
        await settled(world, workspace_id)
        clock.advance(timedelta(days=7).total_seconds())
        assert [await report(world.ctx), await report(world.ctx)] == [2, 0], "the owner and tina"
        await arrived(world, box, "failures")
        words = next(str(mail.get_body(("plain",))) for _, _, mail in box.mails if "report" in str(mail["Subject"]))
        assert "2 of 4 builds failed" in words and "maria/hers #4" in words


@story("Task Working", "Task Idle", "Task Completed", "Task Failed", "Task Paused", "Task Resumed")
async def tasks(settings: dict[str, Any], box: Mailbox) -> None:
    async with task_world(**settings) as (world, _):
        await wants_all(world)
        task = await new_task(world, input="Fix the login")
        for state in ("idle", "working", "complete", "failure"):
            said = {"app_slug": "chat", "state": state, "message": f"now {state}", "uri": ""}
            answer = await world.patch("/api/v2/workspaceagents/me/app-status", said, token=TASK_TOKEN)
            assert answer.status_code == 200, answer.text
        for verb in ("pause", "resume"):
            assert (await world.post(f"{TASKS}/me/{task['id']}/{verb}")).status_code == 202
            await settled(world, task["workspace_id"])
        await arrived(world, box, "tasks")
