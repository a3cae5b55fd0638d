"""Templates, workspaces, prebuilt workspaces and tasks, built by a provisioner that the test scripts.

async with workspace_world() as (world, answers):
    workspace = await new_workspace(world, "ws")

async with world_with_preset() as (world, answers, preset_id):
    await reconcile(world.ctx)
    (ahead,) = await eventually(lambda: prebuilt(world))

async with task_world() as (world, answers):
    task = await new_task(world)
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import trio

from coder.coderd.store.workspaces import prebuilds as store
from coder.rpc.proto import agent_pb2
from coder.rpc.proto import provisioner_pb2 as pb
from tests.kit.agents.scripted_agent import AgentWorld, connected_agent
from tests.kit.api.api_description import check
from tests.kit.provisioners.scripted_provisioner import (
    Answers,
    agent,
    ended,
    job_ended,
    new_template,
    resource,
    working_daemon,
)
from tests.kit.server.server_in_process import FIRST_USER_ONLY, Filling, World, running_coderd

TOKEN = "11111111-2222-4333-8444-555555555555"
"""The token every start of a test workspace gives its agent."""


def parameters() -> list[pb.RichParameter]:
    """The parameters of the recorded template `full`."""
    return [
        pb.RichParameter(
            name="region",
            display_name="Region",
            type="string",
            default_value="eu",
            order=1,
            form_type=pb.RADIO,
            options=[pb.RichParameterOption(name="Europe", value="eu"), pb.RichParameterOption(name="US", value="us")],
        ),
        pb.RichParameter(
            name="cpu",
            type="number",
            mutable=True,
            default_value="2",
            order=2,
            form_type=pb.INPUT,
            validation_min=1,
            validation_max=8,
            validation_monotonic="increasing",
        ),
        pb.RichParameter(name="debug", type="bool", mutable=True, ephemeral=True, default_value="false", order=3),
    ]


def full_agent(token: str = TOKEN, **rest: Any) -> pb.Agent:
    """An agent with an app, a script and a metadata item."""
    return agent(
        token=token,
        env={"STAGE": "test"},
        apps=[
            pb.App(
                slug="web",
                display_name="Web",
                url="http://localhost:9099",
                sharing_level=pb.AUTHENTICATED,
                healthcheck=pb.Healthcheck(url="http://localhost:9099/healthz", interval=5, threshold=3),
            ),
            pb.App(slug="pub", url="http://localhost:9100", subdomain=True, sharing_level=pb.PUBLIC),
        ],
        scripts=[
            pb.Script(
                display_name="Startup Script",
                icon="/emojis/25b6-fe0f.png",
                script="echo start",
                run_on_start=True,
                log_path="coder-startup-script.log",
            )
        ],
        metadata=[pb.Agent.Metadata(key="load", display_name="Load", script="echo 1", interval=5, timeout=1)],
        **rest,
    )


def build_answer(job: Any) -> dict[str, Any]:
    """A start makes a box with an agent and a disk; the disk outlives a stop, nothing a delete."""
    transition = job.workspace_build.metadata.workspace_transition
    disk = resource("disk")
    disk.metadata.add(key="size", value="10 GB")
    if transition == pb.DESTROY:
        return {"state": b"", "resources": []}
    if transition == pb.STOP:
        return {"state": b'{"stopped":true}', "resources": [disk]}
    return {"state": b'{"version":4}', "resources": [resource("box", agents=[full_agent()]), disk]}


def external_answer(job: Any) -> dict[str, Any]:
    """A workspace whose machine somebody attaches by hand."""
    if job.workspace_build.metadata.workspace_transition != pb.START:
        return {"state": b"{}", "resources": []}
    return {"state": b"{}", "resources": [resource("main", "coder_external_agent", agents=[agent(token=TOKEN)])]}


def _import_full(_job: Any) -> dict[str, Any]:
    return {"start_resources": [resource("box", agents=[agent()])], "rich_parameters": parameters()}


async def _new_full_template(world: World) -> Any:
    template = await new_template(world, "full")
    with trio.fail_after(60):
        await ended(world, f"/api/v2/templateversions/{template['active_version_id']}")
    return template


async def _fill(world: World) -> dict[str, Any]:
    async with working_daemon(world, Answers(import_=_import_full)) as answers:
        return {"template": await _new_full_template(world), "imports": answers.seen}


FULL_TEMPLATE = Filling("full_template", _fill)
"""The template `full`, as its default answers import it: an import takes four times as long as a server's start."""


@contextlib.asynccontextmanager
async def workspace_world(answers: Answers | None = None, **settings: Any) -> AsyncIterator[tuple[World, Answers]]:
    """A server with the template `full`, and a daemon that builds its workspaces.

    Workspaces are made ahead when a test says so: on a slow machine the loop's minute passes in the middle of it.
    """
    settings.setdefault("workspace_prebuilds_reconciliation_interval", timedelta(days=1))
    chosen = answers or Answers(import_=_import_full, build=build_answer)
    filling = FIRST_USER_ONLY if answers else FULL_TEMPLATE
    async with (
        running_coderd(first_user=True, filling=filling, **settings) as world,
        _daemon(world, chosen) as scope,
    ):
        world.extra["daemon"] = scope  # cancel it, and jobs wait
        if "template" in world.extra:
            chosen.seen.extend(world.extra.pop("imports"))
        else:
            world.extra["template"] = await _new_full_template(world)
        yield world, chosen


@contextlib.asynccontextmanager
async def _daemon(world: World, answers: Answers) -> AsyncIterator[trio.CancelScope]:
    async def run(task_status: trio.TaskStatus[trio.CancelScope]) -> None:
        with trio.CancelScope() as scope:
            async with working_daemon(world, answers):
                task_status.started(scope)
                await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        yield await nursery.start(run)
        nursery.cancel_scope.cancel()


async def without_daemon(world: World) -> None:
    """Sends the daemon away: jobs wait from here on."""
    world.extra["daemon"].cancel()
    with trio.fail_after(60):
        while world.ctx.services.api.job_queue._groups:
            await trio.sleep(0.01)


async def create(world: World, name: str, *, user: str = "me", **body: Any) -> Any:
    """The answer to creating a workspace, whatever it is."""
    wanted = {"name": name, "template_id": world.extra["template"]["id"], **body}
    token = wanted.pop("token", None)
    return await world.post(f"/api/v2/users/{user}/workspaces", wanted, token=token)


async def new_workspace(world: World, name: str = "ws", **body: Any) -> Any:
    """A workspace whose first build ended."""
    answer = await create(world, name, **body)
    assert answer.status_code == 201, answer.text
    return await settled(world, answer.json()["id"])


async def build(world: World, workspace_id: str, transition: str, **body: Any) -> Any:
    """Queues a build and waits for its end; returns the workspace."""
    answer = await world.post(f"/api/v2/workspaces/{workspace_id}/builds", {"transition": transition, **body})
    assert answer.status_code == 201, answer.text
    return await settled(world, workspace_id)


async def settled(world: World, workspace_id: str) -> Any:
    """The workspace once its latest job ended."""
    with trio.fail_after(60):
        while True:
            answer = await world.get(f"/api/v2/workspaces/{workspace_id}", params={"include_deleted": "true"})
            assert answer.status_code == 200, answer.text
            job = answer.json()["latest_build"]["job"]
            if job["status"] not in {"pending", "running", "canceling"}:
                return answer.json()
            await job_ended(world, job["id"])


def _import(instances: int) -> Any:
    preset = pb.Preset(
        name="EU",
        parameters=[pb.PresetParameter(name="region", value="eu")],
        prebuild=pb.Prebuild(instances=instances, expiration_policy=pb.ExpirationPolicy(ttl=3600)),
    )
    return lambda job: {
        "start_resources": [resource("box", agents=[agent()])],
        "rich_parameters": parameters(),
        "presets": [preset],
    }


def _build(job: Any) -> dict[str, Any]:
    metadata = job.workspace_build.metadata
    if metadata.workspace_transition != pb.START:
        return {"state": b""}
    tokens = [one.token for one in metadata.running_agent_auth_tokens]
    first = TOKEN if metadata.workspace_owner == "prebuilds" else str(uuid4())  # no two workspaces have the same
    return {"state": b"{}", "resources": [resource("box", agents=[agent(token=tokens[0] if tokens else first)])]}


@asynccontextmanager
async def world_with_preset(instances: int = 1, **settings: Any) -> AsyncIterator[tuple[World, Answers, str]]:
    answers = Answers(import_=_import(instances), build=_build)
    async with workspace_world(answers, **settings) as (world, _):
        version = world.extra["template"]["active_version_id"]
        presets = (await world.get(f"/api/v2/templateversions/{version}/presets")).json()
        yield world, answers, presets[0]["ID"]


async def prebuilt(world: World) -> list[UUID]:
    found = await world.ctx.db.read(store.list_existing)
    return [one.id for ones in found.values() for one in ones if one.is_running]


async def listens(world: World) -> bool:
    listeners = world.ctx.db._listeners
    return listeners is not None and store.CLAIMED in str(vars(listeners))


async def make_ready(world: World, workspace_id: UUID) -> None:
    """Its agent comes up and says so."""
    workspace = await settled(world, str(workspace_id))
    agent_id = workspace["latest_build"]["resources"][0]["agents"][0]["id"]
    async with connected_agent(AgentWorld(world, workspace, UUID(agent_id), TOKEN)) as one:
        lifecycle = agent_pb2.Lifecycle(state=agent_pb2.Lifecycle.READY)
        await one.call("UpdateLifecycle", agent_pb2.UpdateLifecycleRequest(lifecycle=lifecycle), agent_pb2.Lifecycle)


APP = "7c6b6b60-1111-4222-8333-944444444444"
TASK_TOKEN = "22222222-2222-4333-8444-555555555555"
TASKS = "/api/v2/tasks"


@contextlib.asynccontextmanager
async def task_world(port: int = 19097, **settings: Any) -> AsyncIterator[tuple[World, Answers]]:
    """A server whose template carries out tasks."""

    def build(job: Any) -> dict[str, Any]:
        speaks = [pb.AITask(id=str(uuid4()), app_id=APP)]
        if job.workspace_build.metadata.workspace_transition != pb.START:
            return {"state": b"{}", "ai_tasks": speaks}
        app = pb.App(id=APP, slug="chat", url=f"http://localhost:{port}")
        return {
            "state": b"{}",
            "ai_tasks": speaks,
            "resources": [resource("box", agents=[agent(token=TASK_TOKEN, apps=[app])])],
        }

    answers = Answers(
        import_=lambda job: {"start_resources": [resource("box", agents=[agent()])], "has_ai_tasks": True}, build=build
    )
    async with workspace_world(answers, **settings) as found:
        yield found


async def new_task(world: World, user: str = "me", **body: Any) -> Any:
    """A task whose workspace's first build ended, as it is told then."""
    wanted = {"template_version_id": world.extra["template"]["active_version_id"], "input": "do the thing", **body}
    token = wanted.pop("token", None)
    answer = await world.post(f"{TASKS}/{user}", wanted, token=token)
    assert answer.status_code == 201, answer.text
    check("Task", answer.json())
    await settled(world, answer.json()["workspace_id"])
    found = await world.get(f"{TASKS}/{user}/{answer.json()['id']}", token=token)
    check("Task", found.json())
    return found.json()
