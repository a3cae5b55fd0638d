"""Dev containers from the manifest to an agent inside, with engine and server played by the test."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn
from uuid import uuid4

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from coder.agent.config import DevcontainerSettings
from coder.agent.devcontainers import table
from coder.agent.devcontainers.entries import Devcontainer, declared
from coder.agent.devcontainers.table import Devcontainers
from coder.agent.network.http_api import HttpApi
from coder.agent.upgrade.handover import KeptContainer
from coder.agent.workspace.logs import LogQueue
from coder.api.agents.agent_containers import WorkspaceAgentListContainersResponse
from coder.api.base import codec
from coder.base.own_binary import ARCHITECTURES
from coder.net.websocket import WebSocketStream
from coder.rpc.proto import agent_pb2
from tests.kit.agents.dev_container_workspace import ID, Place
from tests.kit.hang_guard import run

UPGRADE = b"""GET /api/v0/containers/watch HTTP/1.1
Host: agent
Connection: Upgrade
Upgrade: websocket
Sec-WebSocket-Version: 13
Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==

""".replace(b"\n", b"\r\n")


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


async def test_declared_container_gets_agent(scene: Place) -> None:
    scene.engine.add_builder()
    folder = scene.declare("api")
    scene.manifest.scripts.add(id=ID.bytes, log_source_id=b"s" * 16)
    scene.engine.describe(folder, customizations={"coder": {"apps": [{"slug": "docs"}]}}, remoteUser="dev")
    scene.server.have("left by the agent before")
    async with scene.running() as built:
        assert built
        result = await scene.one(lambda item: "agent" in item)
        (ident,) = scene.engine.ids()
        codec.decode(await _body(scene), WorkspaceAgentListContainersResponse)
        ((made, request),) = scene.server.agents.items()
        assert result["agent"] == {"id": str(made), "name": "api", "directory": "/workspaces/api"}
        assert (result["id"], result["status"], result["dirty"]) == (str(ID), "running", False)
        assert result["container"]["id"] == ident and "error" not in result
        assert (request.operating_system, request.architecture) == ("linux", ARCHITECTURES[platform.machine().lower()])
        assert [app.slug for app in request.apps] == ["docs"]
        given = dict(line.partition("=")[::2] for line in await scene.begun(ident))
        assert given["CODER_AGENT_URL"] == "http://server"
        assert given["CODER_AGENT_TOKEN"] not in {"", "parents-token"}
        words = scene.engine.words()
        assert not any(given["CODER_AGENT_TOKEN"] in word for line in words for word in line), (
            "every user can read command lines"
        )
        users = [line[line.index("--user") + 1] for line in words if line[0] == "exec"]
        assert users == ["root", "root", "dev"], "root copies it, the container's user runs it"
        assert [source for source, _ in scene.logs._lines] == [b"s" * 16]
        assert scene.lines() == ["building api"]
    assert scene.given(ident)[-1] == "stopped", "it ends with the outer agent"


async def _body(scene: Place) -> bytes:
    reply = await scene.ask("GET", "")
    assert reply.status == 200
    return reply.body


async def test_missing_cli_is_reported(scene: Place) -> None:
    scene.declare("api")
    async with scene.running() as built:
        assert not built
        result = await scene.one(lambda item: item["status"] == "error")
    assert "npm install --global @devcontainers/cli" in result["error"]
    assert scene.lines() == [result["error"]]
    assert result["error"].startswith("api was not started: the devcontainer command is not installed")


async def test_missing_engine_is_reported(scene: Place) -> None:
    scene.engine.remove("docker")
    os.environ["PATH"] = str(scene.engine._bin)  # regardless of this machine's engines; the fixture restores it
    async with scene.running() as built:
        assert built, "nothing was declared"
        listing = json.loads(await _body(scene))
    assert (listing["devcontainers"], listing["containers"]) == ([], [])
    assert listing["warnings"] == [
        "No containers can be listed: neither docker nor podman is installed in this workspace."
    ]


async def test_failed_build_can_be_retried(scene: Place) -> None:
    scene.engine.add_builder()
    folder = scene.declare("api")
    scene.engine.describe(folder, fails="no such image")
    async with scene.running() as built:
        assert not built
        result = await scene.one(lambda item: item["status"] == "error")
        assert result["error"] == "devcontainer up failed: no such image"
        assert scene.lines() == ["building api", "it does not compile", "devcontainer up failed: no such image"]
        assert not scene.server.agents
        scene.engine.describe(folder)
        assert (await scene.ask("POST", f"/devcontainers/{ID}/recreate")).status == 202
        assert "error" not in await scene.one(lambda item: "agent" in item)


async def test_recreate_replaces_container_and_agent(scene: Place) -> None:
    scene.template()
    async with scene.running():
        before = await scene.one(lambda item: "agent" in item)
        await scene.begun(before["container"]["id"])
        path = f"/devcontainers/{ID}/recreate"
        reply = await scene.ask("POST", path)
        assert (reply.status, json.loads(reply.body)["message"]) == (202, "Devcontainer recreation initiated")
        refused = await scene.ask("POST", path)
        assert (refused.status, json.loads(refused.body)["message"]) == (409, "The dev container is already starting.")
        assert (await scene.ask("DELETE", f"/devcontainers/{ID}")).status == 409
        after = await scene.one(lambda item: "agent" in item and item["agent"] != before["agent"])
        assert scene.engine.ids() == [after["container"]["id"]] != [before["container"]["id"]]
        assert [str(ident) for ident in scene.server.agents] == [after["agent"]["id"]]


async def test_stopped_container_keeps_agent(scene: Place) -> None:
    scene.template()
    async with scene.running():
        _, ident = await scene.with_agent()
        scene.engine.stop(ident)
        stopped = await scene.one(lambda item: item["status"] == "stopped")
        assert stopped["container"]["status"] == "exited"
        assert scene.lines()[-1] == "The container of api has stopped."
        with trio.fail_after(60):
            while scene.given(ident)[-1] != "stopped":
                await trio.sleep(0.01)
        scene.engine.drop(ident)
        gone = await scene.one(lambda item: "container" not in item)
        assert gone["status"] == "stopped", "the template declares it: it can be started again"
        assert (await scene.ask("POST", f"/devcontainers/{ID}/recreate")).status == 202
        await scene.one(lambda item: item["status"] == "running" and "agent" in item)


async def test_silent_engine_keeps_agents(scene: Place) -> None:
    scene.template()
    async with scene.running():
        result = await scene.one(lambda item: "agent" in item)
        await scene.begun(result["container"]["id"])
        scene.engine.break_down()
        for _ in range(3):
            listing = json.loads(await _body(scene))
            assert listing["warnings"] == ["Listing containers failed: Cannot connect to the Docker daemon"]
            assert listing["devcontainers"][0]["agent"] == result["agent"]
        assert scene.given(result["container"]["id"])[-1] != "stopped"


async def test_delete_removes_container(scene: Place) -> None:
    scene.template()
    async with scene.running():
        await scene.one(lambda item: "agent" in item)
        assert (await scene.ask("DELETE", f"/devcontainers/{ID}")).status == 204
        result = await scene.one(lambda item: item["status"] == "stopped")
        assert "container" not in result and "agent" not in result
        assert not scene.engine.ids() and not scene.server.agents
        for path, status in ((f"/devcontainers/{uuid4()}", 404), ("/devcontainers/none", 400)):
            assert (await scene.ask("DELETE", path)).status == status


async def test_foreign_container_gets_agent(scene: Place) -> None:
    scene.engine.add_builder()
    folder = scene.work / "main"
    scene.engine.describe(folder, remoteUser="dev")
    scene.server.taken = {"work-main"}
    await trio.run_process(["devcontainer", "up", "--workspace-folder", str(folder)], capture_stdout=True)
    async with scene.running():
        result = await scene.one(lambda item: "agent" in item)
        assert result["agent"]["name"] == "main-2", "main is the outer agent, work-main is taken"
        scene.engine.drop(result["container"]["id"])
        with trio.fail_after(60):
            while scene.table.cached_listing()["devcontainers"]:
                await scene.table.next_change().wait()
        await scene.settled(lambda: not scene.server.agents)


async def test_ignored_container_gets_no_agent(scene: Place) -> None:
    scene.engine.add_builder()
    scene.engine.describe(scene.declare("api"), customizations={"coder": {"ignore": True}})
    async with scene.running():
        await scene.one(lambda item: item["status"] == "running")
        for _ in range(3):
            await scene.table.next_change().wait()
        assert not scene.server.agents


async def test_failing_agent_is_reported(scene: Place) -> None:
    scene.engine.add_builder()
    folder = scene.declare("api")
    scene.engine.describe(folder)
    await trio.run_process(["devcontainer", "up", "--workspace-folder", str(folder)], capture_stdout=True)
    (ident,) = scene.engine.ids()
    (scene.engine.containers / ident / "fails").touch()
    async with scene.running():
        result = await scene.one(lambda item: "error" in item)
        assert (result["status"], result["error"]) == ("running", "The agent inside exited: refused by the server")
        assert len(scene.server.agents) == 1, "the same sub-agent is retried"


async def test_foreign_architecture_is_rejected(scene: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    scene.template()
    async with scene.running():
        result = await scene.one(lambda item: "error" in item)
    assert result["error"].startswith("The container's architecture is ") and "agent" not in result


async def test_preset_agent_is_updated(scene: Place) -> None:
    scene.engine.add_builder()
    preset = scene.preset()
    scene.server.have("left by the agent before")
    scene.engine.describe(scene.declare("api", subagent_id=preset.bytes))
    async with scene.running():
        result = await scene.one(lambda item: "agent" in item)
        assert result["agent"]["id"] == result["subagent_id"] == str(preset)
        assert scene.server.agents.keys() == {preset}


@pytest.mark.parametrize("autostart", [False, True])
async def test_projects_are_listed_and_built(autostart: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Place(tmp_path, monkeypatch, autostart=autostart)
    scene.engine.add_builder()
    scene.engine.describe(scene.work, customizations={"coder": {"autoStart": True}})
    (scene.work / ".git").mkdir()
    async with scene.running():
        result = await scene.one(lambda item: item["status"] == ("running" if autostart else "stopped"))
        assert result["workspace_folder"] == str(scene.work)
        assert result["config_path"] == str(scene.work / ".devcontainer/devcontainer.json")
        os.utime(result["config_path"], (2**32, 2**32))
        if autostart:
            assert (await scene.one(lambda item: item["dirty"]))["status"] == "running"


async def test_rebuild_recreates_agents(scene: Place) -> None:
    scene.template(subagent_id=scene.preset().bytes)
    scene.manifest.scripts.add(id=ID.bytes, log_source_id=b"s" * 16)
    other = uuid4()
    async with scene.running():
        before = await scene.one(lambda item: "agent" in item)
        await scene.begun(before["container"]["id"])
        scene.server.agents.clear()  # they were deleted with the old build, including their names and ids
        scene.server.presets.clear()
        preset = scene.preset()
        manifest = agent_pb2.Manifest(agent_name="main")
        folder = before["workspace_folder"]
        manifest.devcontainers.add(id=other.bytes, name="new", workspace_folder=folder, subagent_id=preset.bytes)
        manifest.scripts.add(id=other.bytes, log_source_id=b"t" * 16)
        scene.state.manifest = manifest
        scene.table.reset_sub_agents()
        after = await scene.one(lambda item: item.get("agent", before["agent"]) != before["agent"])
        assert (after["id"], after["name"], after["subagent_id"]) == (str(other), "new", str(preset))
        assert (after["agent"]["id"], after["container"]) == (str(preset), before["container"])
        assert list(scene.server.agents) == [preset]
        assert (await scene.ask("POST", f"/devcontainers/{other}/recreate")).status == 202
        await scene.one(lambda item: item.get("container", before["container"]) != before["container"])
        assert [source for source, _ in scene.logs._lines] == [b"s" * 16, b"t" * 16], "each build's own log"


async def test_latest_manifest_wins_during_scripts(scene: Place) -> None:
    scene.template(subagent_id=uuid4().bytes)
    scene.table.reset_sub_agents()
    scene.state.manifest = agent_pb2.Manifest(agent_name="main")
    async with scene.running():
        assert scene.table.cached_listing()["devcontainers"] == []


async def test_watcher_sees_every_change(scene: Place) -> None:
    scene.template()
    near, far = trio.testing.memory_stream_pair()
    async with scene.running(), trio.open_nursery() as nursery:
        nursery.start_soon(HttpApi(scene.state).serve, far)
        with trio.fail_after(60):
            await near.send_all(UPGRADE)
            head, _, rest = bytes(await near.receive_some()).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 101 ")
            async with WebSocketStream(near, client=True, initial=rest) as socket:
                seen: list[dict[str, Any]] = []
                while not seen or "agent" not in seen[-1]:
                    message = await socket.receive_message()
                    (item,) = json.loads(message)["devcontainers"]  # type: ignore[arg-type]
                    seen.append(item)
        assert len({json.dumps(item) for item in seen}) == len(seen), "no message is repeated"


@pytest.mark.parametrize("step", ["_list", "_discover", "_poll_dev_containers", "_is_dirty"])
async def test_defects_keep_agents_running(step: str, scene: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = trio.Event()

    async def fail(*_: Any, **_more: Any) -> NoReturn:
        failed.set()
        raise RuntimeError("a defect")

    scene.template()
    monkeypatch.setattr(scene.table, step, fail)
    async with scene.running():
        with trio.fail_after(60):
            await failed.wait()
        await trio.sleep(0)


async def test_disabled_and_nested_are_rejected(scene: Place) -> None:
    scene.state.manifest = agent_pb2.Manifest(parent_id=bytes(16))
    inside = await scene.ask("GET", "")
    scene.state.manifest, scene.state.containers = scene.manifest, None
    off = await scene.ask("GET", "")
    assert [inside.status, off.status] == [403, 403]
    assert (await scene.ask("POST", f"/devcontainers/{ID}/recreate")).status == 404, "as recorded"
    assert json.loads(off.body)["message"] == "Dev Container feature not enabled."
    assert "CODER_AGENT_DEVCONTAINERS_ENABLE=true" in json.loads(off.body)["detail"]
    assert "inside other Dev Containers" in json.loads(inside.body)["detail"]


async def test_handover_keeps_built_containers(scene: Place) -> None:
    """Only the builder knows the folder and user of a container without a mount of its folder."""
    scene.template()

    def entered_as(user: str) -> int:
        users = [line[line.index("--user") + 1] for line in scene.engine.words() if line[0] == "exec"]
        return users.count(user)

    async with scene.running():
        before = await scene.one(lambda item: "agent" in item)
        await scene.settled(lambda: entered_as("dev") == 1)
        scene.engine.mount(before["container"]["id"], "/var/lib/docker/volumes/api/_data")
        left = scene.table.handover_state()
    nothing: list[KeptContainer] = []
    for kept in (nothing, left):
        scene.table = Devcontainers(scene.state, scene.logs, DevcontainerSettings())
        async with scene.running(kept):
            await scene.table.refresh()
            shown = scene.table.cached_listing()
            assert ("warnings" in shown, "container" in scene.containers()[0]) == (not kept, bool(kept))
            if kept:
                await scene.settled(lambda: entered_as("dev") == 2)
                result = await scene.one(lambda item: "agent" in item)
                assert result["agent"]["directory"] == "/workspaces/api"


async def test_handover_state_round_trips(scene: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the path of its description, which may be one of several and is not in any template."""
    monkeypatch.setattr(scene.table, "refresh", trio.lowlevel.checkpoint)
    description = "/work/api/.devcontainer/x/devcontainer.json"
    kept = [KeptContainer("/work/api", "c1", "dev", "/workspaces/api", description)]
    async with scene.running(kept):
        assert scene.table.handover_state() == kept


@given(st.lists(st.binary(max_size=40) | st.sampled_from([b"x" * 9, b"\n", b"y" * 30]), max_size=30))
def test_builder_output_becomes_lines(chunks: list[bytes]) -> None:
    async def main() -> None:
        logs, item = LogQueue(lambda: datetime.now(UTC)), Devcontainer(ID, "api", "/api")
        lines = table._Lines(logs, item)
        for chunk in chunks:
            await lines.add_chunk(chunk)
            assert len(lines._rest) <= 16
        lines.end()
        outputs = [entry.output for _, entry in logs._lines]
        assert all(len(text) <= 16 for text in outputs)
        plain = b"".join(chunks).decode("latin-1")
        if plain.isascii() and "\r" not in plain:
            wanted = [line[at : at + 16] for line in plain.split("\n") for at in range(0, max(len(line), 1), 16)]
            assert "".join(outputs) == "".join(wanted)
            assert [text for text in outputs if text] == [text for text in wanted if text]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "MAX_LINE", 16)
        run(main)


async def test_discovery_blocks_nothing(scene: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    began = trio.Event()

    async def search(*_: Any, **_more: Any) -> None:
        began.set()
        await trio.sleep_forever()

    monkeypatch.setattr(scene.table, "_discover", search)
    with trio.fail_after(60):
        async with scene.running():
            await began.wait()


def test_declared_folders_are_resolved() -> None:
    places = {"~": "/h", "~/api": "/h/api", "api": "/w/api", "": "/w", "/srv/api": "/srv/api", "~api": "/w/~api"}
    manifest = agent_pb2.Manifest()
    for scene in places:
        manifest.devcontainers.add(workspace_folder=scene)
    result = [item.folder for item in declared(manifest, Path("/w"), Path("/h"))]
    assert result == list(dict.fromkeys(places.values()))


async def test_recreate_before_start_is_busy(scene: Place) -> None:
    scene.declare("api")
    scene.table._known |= {item.folder: item for item in declared(scene.manifest, scene.work, scene.work)}
    assert (await scene.ask("POST", f"/devcontainers/{ID}/recreate")).status == 409
    assert [item.busy for item in scene.table._known.values()] == [""]
