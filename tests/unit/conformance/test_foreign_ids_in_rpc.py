"""Every id of every RPC message, generated from the protocols' descriptors: foreign ids are answered like unknown ones.

Callers are an agent, a client of the overlay, and provisioner daemons of their own and of the same organization.
Foreign objects belong to the other side: running, pending and finished. A new field must be added here.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import UUID, uuid4

from google.protobuf.empty_pb2 import Empty

from coder.coderd.store.agents.agent_scripts import list_scripts
from coder.coderd.store.agents.system_agents import get_agent
from coder.rpc.errors import RpcError
from coder.rpc.proto import agent_pb2, overlay_pb2, provisioner_pb2, provisionerd_pb2
from coder.rpc.session import Session, open_session
from tests.kit.agents.scripted_agent import dial_link
from tests.kit.api import id_fields
from tests.kit.provisioners.scripted_provisioner import FakeDaemon, connected_daemon, resource, upload
from tests.kit.server.server_in_process import World
from tests.kit.server.two_organizations import ForeignWorld, foreign_world

JOBS = ("waiting_job", "running_job", "job", "build_job")
PLACED: dict[str, tuple[str, ...]] = {
    "Agent.BatchUpdateAppHealths updates.id": ("app",),
    "Agent.BatchCreateLogs log_source_id": ("log_source",),
    "Agent.ScriptCompleted timing.script_id": ("script",),
    "Agent.ReportConnection connection.id": ("connection",),
    "Agent.CreateSubAgent id": ("agent",),
    "Agent.DeleteSubAgent id": ("agent",),
    "Tailnet.Coordinate add_tunnel.id": ("agent", "user"),
    "Tailnet.Coordinate remove_tunnel.id": ("agent",),
    "Tailnet.Coordinate ready_for_handshake.id": ("agent",),
    "Tailnet.WorkspaceUpdates workspace_owner_id": ("user",),
    "ProvisionerDaemon.CommitQuota job_id": JOBS,
    "ProvisionerDaemon.UpdateJob job_id": JOBS,
    "ProvisionerDaemon.FailJob job_id": JOBS,
    "ProvisionerDaemon.CompleteJob job_id": JOBS,
    "ProvisionerDaemon.DownloadFile file_id": ("file", "module_file"),
    "ProvisionerDaemon.CompleteJob result agents.id": ("agent",),
    "ProvisionerDaemon.CompleteJob result agents.apps.id": ("app",),
    "ProvisionerDaemon.CompleteJob result agents.devcontainers.id": ("agent",),
    "ProvisionerDaemon.CompleteJob result agents.devcontainers.subagent_id": ("agent",),
    "ProvisionerDaemon.CompleteJob result agents.devcontainers.apps.id": ("app",),
    "ProvisionerDaemon.CompleteJob result ai_tasks.id": ("build", "workspace"),
    "ProvisionerDaemon.CompleteJob result ai_tasks.sidebar_app.id": ("app",),
    "ProvisionerDaemon.CompleteJob result ai_tasks.app_id": ("app",),
}
NO_OBJECT = {
    "Agent.CreateSubAgent apps.slug": "a name below the agent itself",
    "Agent.UpdateAppStatus slug": "a name below the agent itself",
    "Agent.ReportBoundaryLogs session_id": "a number of the agent's own making, which is logged",
    "Agent.ReportBoundaryLogs confined_process_name": "a word for the log",
    "Agent.PushContextState aggregate_hash": "what the agent sent",
    "Agent.PushContextState resources.content_hash": "what the agent sent",
    "Tailnet.Coordinate update_self.node.id": "a number the node chose; its key identifies it",
    "ProvisionerDaemon.CompleteJob result agents.apps.slug": "a name below the agent",
    "ProvisionerDaemon.CompleteJob result agents.devcontainers.apps.slug": "a name below the agent",
    "ProvisionerDaemon.CompleteJob result agents.token": "a secret that authorizes its holder as the agent",
    "ProvisionerDaemon.CompleteJob result agents.instance_id": "a cloud's; see test_instance_identity.py",
    "ProvisionerDaemon.CompleteJob result external_auth_providers.id": "a name of the configuration",
    "ProvisionerDaemon.CompleteJob result module_files_hash": "of the worker's own upload; see test_provisioners.py",
    "ProvisionerDaemon.UploadFile data_upload.data_hash": "hash of the uploaded data",
    "ProvisionerDaemon.UploadFile chunk_piece.full_data_hash": "hash of the uploaded data",
    "Overlay.Join process": "random bytes of the daemon; its path is derived from its own id",
}
_AGENT = "/api/v2/workspaceagents/me/rpc?version=2.10&role=other"
"A program in the agent's place: the agent itself is not under test."
_TELEMETRY = "Tailnet.PostTelemetry "
"Accepted and dropped, whatever it contains."
_RESULT = re.compile(r"^(workspace_build|template_import|template_dry_run)\.((start_|stop_)?resources\.)?")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)")


def _id_place(method: str, path: str) -> str:
    short = _RESULT.sub("", path)
    return f"{method} {path}" if short == path else f"{method} result {short}"


def _id_places(method: str = "") -> list[tuple[str, str, tuple[str, ...]]]:
    """Return (method, path, kinds) of ids that refer to an object."""
    return [
        (name, path, PLACED[_id_place(name, path)])
        for name, paths in id_fields.id_fields().items()
        for path in paths
        if name.startswith(method) and _id_place(name, path) in PLACED
    ]


def test_every_message_id_is_covered() -> None:
    placed = {_id_place(name, path) for name, paths in id_fields.id_fields().items() for path in paths}
    known = {item for item in placed if item in PLACED or item in NO_OBJECT or item.startswith(_TELEMETRY)}
    assert not placed - known, "add these ids to PLACED or NO_OBJECT"
    assert not (PLACED.keys() | NO_OBJECT.keys()) - placed, "these fields do not exist"


# ---- requests


def _around(name: str) -> Any:
    """Return a request that is valid except for the id."""
    request: Any = id_fields.request_of(name)
    if name == "Agent.BatchUpdateAppHealths":
        request.updates.add(health=agent_pb2.HEALTHY)
    elif name == "Agent.BatchCreateLogs":
        request.logs.add(output="attack")
    elif name == "Agent.ScriptCompleted":
        request.timing.start.FromSeconds(1)
        request.timing.end.FromSeconds(2)
    elif name == "Agent.ReportConnection":
        request.connection.action, request.connection.type = agent_pb2.Connection.DISCONNECT, agent_pb2.Connection.SSH
        request.connection.reason = "attack"
    elif name == "ProvisionerDaemon.UpdateJob":
        request.logs.add(output="attack", stage="attack")
        request.workspace_state = b"attack"
    elif name == "ProvisionerDaemon.CommitQuota":
        request.daily_cost = 1
    elif name == "ProvisionerDaemon.FailJob":
        request.error = "attack"
        request.workspace_build.state = b"attack"
    elif name == "ProvisionerDaemon.CompleteJob":
        request.workspace_build.state = b"attack"
    elif name == "ProvisionerDaemon.DownloadFile":
        request.upload_type = provisioner_pb2.UPLOAD_TYPE_MODULE_FILES
    return request


async def _reply_to(name: str, path: str, value: UUID, open_: Callable[[], Any]) -> str:
    """Return everything answered to one request on its own connection, without the id."""
    request = _around(name)
    id_fields.put_in_message(request, path, value)
    method = id_fields.methods()[name]
    full, kind = f"/{method.containing_service.full_name}/{method.name}", id_fields.reply_type(name)
    heard: list[str] = []
    async with open_() as session:
        try:
            if method.client_streaming or method.server_streaming:
                async with session.open_stream(full, type(request), kind) as stream:
                    await stream.send(request)
                    if name == "Tailnet.Coordinate":
                        # The refusal of this request ends the stream.
                        end: Any = id_fields.request_of(name)
                        end.add_tunnel.id = uuid4().bytes
                        await stream.send(end)
                    async for message in stream:
                        heard.append(str(message))
            else:
                heard.append(str(await session.call(full, request, kind)))
        except RpcError as error:
            heard.append(f"refused: {error.number} {error.text}")
    return _UUID.sub("<uuid>", " | ".join(heard))


class _Askers:
    """Connections of the callers, opened again for each request."""

    def __init__(self, scene: ForeignWorld) -> None:
        self._found = scene

    @contextlib.asynccontextmanager
    async def agent(self) -> AsyncIterator[Session]:
        async with self._link(_AGENT, self._found.agent_token) as session:
            yield session

    @contextlib.asynccontextmanager
    async def client(self) -> AsyncIterator[Session]:
        async with self._link("/api/v2/tailnet?version=2.0", self._found.token) as session:
            yield session

    @contextlib.asynccontextmanager
    async def neighbour(self) -> AsyncIterator[Session]:
        async with self._link("/api/v2/tailnet?version=2.0", self._found.neighbour_token) as session:
            yield session

    @contextlib.asynccontextmanager
    async def one_client(self) -> AsyncIterator[Session]:
        path = f"/api/v2/workspaceagents/{self._found.mine['agent']}/coordinate?version=2.0"
        async with self._link(path, self._found.token) as session:
            yield session

    @contextlib.asynccontextmanager
    async def daemon(self) -> AsyncIterator[Session]:
        async with connected_daemon(
            self._found.world, token=self._found.token, organization="elsewhere", tags={"scope": "user"}, name="asks"
        ) as daemon:
            join = overlay_pb2.JoinRequest(process=bytes(16))
            await daemon.session.call("/coder.overlay.v1.Overlay/Join", join, overlay_pb2.JoinResponse)
            yield daemon.session

    @contextlib.asynccontextmanager
    async def daemon_at_home(self) -> AsyncIterator[Session]:
        async with connected_daemon(
            self._found.world, token=self._found.neighbour_token, tags={"scope": "user"}, name="asks"
        ) as daemon:
            yield daemon.session

    @contextlib.asynccontextmanager
    async def _link(self, path: str, token: str) -> AsyncIterator[Session]:
        websocket = await dial_link(self._found.world, path, token=token)
        async with open_session(websocket, role="client") as session:
            yield session


async def test_foreign_ids_look_unknown() -> None:
    async with foreign_world() as scene, _foreign_objects(scene) as foreign:
        askers, wrong = _Askers(scene), []
        before = await _state(scene, foreign)
        table = {
            "Agent.": (askers.agent,),
            "Tailnet.": (askers.client, askers.neighbour, askers.one_client, askers.agent, askers.daemon),
            "ProvisionerDaemon.": (askers.daemon, askers.daemon_at_home),
        }
        for service, openers in table.items():
            for name, path, kinds in _id_places(service):
                if " result " in _id_place(name, path):
                    continue
                for opener in openers:
                    unknown = await _reply_to(name, path, uuid4(), opener)
                    for kind in kinds:
                        response = await _reply_to(name, path, UUID(foreign[kind]), opener)
                        if response != unknown:
                            who = opener.__name__
                            wrong.append(f"{who}: {name} {path} with {kind}: {response}\n  unknown: {unknown}")
        after = await _state(scene, foreign)
    assert not wrong, "\n".join(wrong)
    assert after == before


@contextlib.asynccontextmanager
async def _foreign_objects(scene: ForeignWorld) -> AsyncIterator[dict[str, str]]:
    """Return foreign objects known only to programs: pending and running jobs, scripts, connections, module files."""
    world, foreign = scene.world, dict(scene.foreign)
    row = await world.ctx.db.read(get_agent, UUID(foreign["agent"]))
    assert row is not None
    foreign["script"] = str((await world.ctx.db.read(list_scripts, [row.id]))[0].id)
    foreign["connection"] = str(uuid4())
    websocket = await dial_link(world, _AGENT, token=str(row.auth_token))
    async with open_session(websocket, role="client") as session:
        began = agent_pb2.ReportConnectionRequest()
        began.connection.id = UUID(foreign["connection"]).bytes
        began.connection.action, began.connection.type = agent_pb2.Connection.CONNECT, agent_pb2.Connection.SSH
        await session.call("/coder.agent.v2.Agent/ReportConnection", began, Empty)
        async with connected_daemon(world, name="held", tags={"held": "yes"}) as daemon:
            foreign["module_file"] = await _module_file(world, daemon)
            version = await _version(world, world.organization_id, world.token, {"held": "yes"})
            job = await daemon.acquire()
            assert job.job_id == version["job"]["id"]
            foreign["running_job"] = job.job_id
            waiting = await _version(world, world.organization_id, world.token, {"held": "none"})
            foreign["waiting_job"] = waiting["job"]["id"]
            foreign["running_version"] = version["id"]
            yield foreign


async def _module_file(world: World, daemon: FakeDaemon) -> str:
    """Return a file of a version whose import stored an archive of modules."""
    version = await _version(world, world.organization_id, world.token, {"held": "yes"})
    job = await daemon.acquire()
    await daemon.complete_import(job, start_resources=[resource("box")], plan=b"{}", module_files=b"the modules")
    template = await world.post(
        f"/api/v2/organizations/{world.organization_id}/templates",
        {"name": "modular", "template_version_id": version["id"]},
    )
    assert template.status_code == 201, template.text
    created = {"name": "modular", "template_id": template.json()["id"]}
    assert (await world.post("/api/v2/users/me/workspaces", created)).status_code == 201
    build = await daemon.acquire()
    file_id = str(build.workspace_build.metadata.template_version_modules_file)
    assert len(file_id) == 36
    # The daemon that runs the build gets it.
    async with daemon.session.open_stream(
        "/provisionerd.ProvisionerDaemon/DownloadFile", provisionerd_pb2.FileRequest, provisioner_pb2.FileUpload
    ) as stream:
        kind = provisioner_pb2.UPLOAD_TYPE_MODULE_FILES
        await stream.send(provisionerd_pb2.FileRequest(file_id=file_id, upload_type=kind))
        assert [part.chunk_piece.data async for part in stream][-1] == b"the modules"
    await daemon.complete_build(build, state=b"{}")
    return file_id


async def _version(world: World, organization: str, token: str, tags: dict[str, str], **more: Any) -> Any:
    file_id = await upload(world, {"main.tf": f"# {uuid4()}"}, token=token)
    body = {"storage_method": "file", "provisioner": "echo", "tags": tags, "file_id": file_id, **more}
    response = await world.post(f"/api/v2/organizations/{organization}/templateversions", body, token=token)
    assert response.status_code == 201, response.text
    return response.json()


async def _state(scene: ForeignWorld, foreign: dict[str, str]) -> list[str]:
    """Return the state that no foreign message may change, as an owner sees it."""
    state = []
    for path in (
        f"/api/v2/workspaces/{foreign['workspace']}",
        f"/api/v2/workspaceagents/{foreign['agent']}/logs",
        f"/api/v2/workspacebuilds/{foreign['build']}/timings",
        f"/api/v2/workspacebuilds/{foreign['build']}/state",
        f"/api/v2/templateversions/{foreign['running_version']}",
        f"/api/v2/templateversions/{foreign['running_version']}/logs",
        f"/api/v2/templateversions/{foreign['version']}/logs",
        "/api/v2/connectionlog?q=workspace_owner:victim&limit=10",
    ):
        response = await scene.world.get(path)
        assert response.status_code == 200, (path, response.text)
        state.append(f"{path} {_lasting(response.json())}")
    return state


_MOVES = frozenset({"status", "health", "last_used_at"})


def _lasting(value: Any) -> Any:
    """Return values without those that change with time alone."""
    if isinstance(value, dict):
        return {
            name: _lasting(item) for name, item in value.items() if name not in {"status", "health", "last_used_at"}
        }
    return [_lasting(item) for item in value] if isinstance(value, list) else value


# ---- reports of builds, imports and dry runs


async def test_foreign_ids_in_results() -> None:
    """An authorized daemon names foreign objects in its report: they keep their owner."""
    async with foreign_world() as scene, _foreign_objects(scene) as foreign:
        wrong = []
        before = await _state(scene, foreign)
        organization = scene.mine["organization"]
        reach: dict[str, Any] = {"organization": "elsewhere", "tags": {"scope": "user"}, "name": "reports"}
        async with connected_daemon(scene.world, token=scene.token, **reach) as daemon:
            reports = _Reports(scene, daemon, await _template(scene, daemon, organization))
            for kind in ("workspace_build", "template_import", "template_dry_run"):
                named = {path: kinds for _, path, kinds in _id_places() if path.startswith(f"{kind}.")}
                assert len(named) > 4
                unknown = await reports.result(kind, {path: uuid4() for path in named})
                for number in range(max(map(len, named.values()))):
                    chosen = {path: foreign[kinds[number % len(kinds)]] for path, kinds in named.items()}
                    response = await reports.result(kind, {path: UUID(value) for path, value in chosen.items()})
                    if response != unknown:
                        wrong.append(f"{chosen}: {response}\n  unknown: {unknown}")
        after = await _state(scene, foreign)
    assert not wrong, "\n".join(wrong)
    assert after == before


async def _template(scene: ForeignWorld, daemon: FakeDaemon, organization: str) -> dict[str, str]:
    version = await _version(scene.world, organization, scene.token, {"scope": "user"})
    await daemon.complete_import(await daemon.acquire(), start_resources=[resource("box")])
    body = {"name": "reported", "template_version_id": version["id"]}
    created = await scene.world.post(f"/api/v2/organizations/{organization}/templates", body, token=scene.token)
    assert created.status_code == 201, created.text
    return {"organization": organization, "version": version["id"], "template": created.json()["id"]}


class _Reports:
    """Jobs of each kind whose report has one id, and their results."""

    def __init__(self, scene: ForeignWorld, daemon: FakeDaemon, ours: dict[str, str]) -> None:
        self._world, self._token, self._daemon, self._ours = scene.world, scene.token, daemon, ours

    async def result(self, kind: str, values: dict[str, UUID]) -> str:
        start = {
            "workspace_build": self._build,
            "template_import": self._import,
            "template_dry_run": self._dry_run,
        }[kind]
        where = await start()
        job = await self._daemon.acquire()
        request = provisionerd_pb2.CompletedJob(job_id=job.job_id)
        getattr(request, kind).SetInParent()
        for path, value in values.items():
            _add_parts(getattr(request, kind), path)
            id_fields.put_in_message(request, path, value)
        try:
            await self._daemon.call("CompleteJob", request)
            reply = ""
        except RpcError as error:
            reply = error.text
        response = await self._world.get(where, token=self._token)
        assert response.status_code == 200, (where, response.text)
        text = re.sub(r'"(name|latest_build_name|workspace_name)":"r[0-9a-f]{12}"', "", response.text)
        return reply + _UUID.sub("<uuid>", _TIME.sub("<time>", text))

    async def _build(self) -> str:
        body = {"name": f"r{uuid4().hex[:12]}", "template_id": self._ours["template"]}
        path = f"/api/v2/organizations/{self._ours['organization']}/members/me/workspaces"
        created = await self._world.post(path, body, token=self._token)
        assert created.status_code == 201, created.text
        return f"/api/v2/workspaces/{created.json()['id']}"

    async def _import(self) -> str:
        name = f"r{uuid4().hex[:12]}"
        created = await _version(self._world, self._ours["organization"], self._token, {"scope": "user"}, name=name)
        return f"/api/v2/templateversions/{created['id']}/resources"

    async def _dry_run(self) -> str:
        path = f"/api/v2/templateversions/{self._ours['version']}/dry-run"
        body = {"workspace_name": "dry", "rich_parameter_values": [], "user_variable_values": []}
        created = await self._world.post(path, body, token=self._token)
        assert created.status_code == 201, created.text
        return f"{path}/{created.json()['id']}/resources"


def _add_parts(result: Any, path: str) -> None:
    """Names without which parts of a report are refused for another reason."""
    _, _, rest = path.partition(".")
    if "resources" not in rest:
        return
    parts = getattr(result, rest.partition(".")[0])
    part = parts[0] if len(parts) else parts.add(name="box", type="box")
    agent = part.agents[0] if len(part.agents) else part.agents.add(name="main", operating_system="linux")
    if "agents.apps" in rest and not len(agent.apps):
        agent.apps.add(slug="web", url="http://localhost:1")
    if "devcontainers" in rest and not len(agent.devcontainers):
        agent.devcontainers.add(name="inner", workspace_folder="/x")
