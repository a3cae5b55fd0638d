"""Dev containers from the manifest to an agent inside, with an engine and a server played by the test."""

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
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


async def test_declared_container_gets_agent(place: Place) -> None:
    place.engine.add_builder()
    folder = place.declare("api")
    place.manifest.scripts.add(id=ID.bytes, log_source_id=b"s" * 16)
    place.engine.describe(folder, customizations={"coder": {"apps": [{"slug": "docs"}]}}, remoteUser="dev")
    place.server.have("left by the agent before")
    async with place.running() as built:
        assert built
        result = await place.one(lambda item: "agent" in item)
        (ident,) = place.engine.ids()
        codec.decode(await _body(place), WorkspaceAgentListContainersResponse)
        ((made, request),) = place.server.agents.items()
        assert result["agent"] == {"id": str(made), "name": "api", "directory": "/workspaces/api"}
        assert (result["id"], result["status"], result["dirty"]) == (str(ID), "running", False)
        assert result["container"]["id"] == ident and "error" not in result
        assert (request.operating_system, request.architecture) == ("linux", ARCHITECTURES[platform.machine().lower()])
        assert [app.slug for app in request.apps] == ["docs"]
        given = dict(line.partition("=")[::2] for line in await place.begun(ident))
        assert given["CODER_AGENT_URL"] == "http://server"
        assert given["CODER_AGENT_TOKEN"] not in {"", "parents-token"}
        words = place.engine.words()
        assert not any(given["CODER_AGENT_TOKEN"] in word for line in words for word in line), "all can read those"
        users = [line[line.index("--user") + 1] for line in words if line[0] == "exec"]
        assert users == ["root", "root", "dev"], "it is put there by root, and runs as whoever works there"
        assert [source for source, _ in place.logs._lines] == [b"s" * 16]
        assert place.lines() == ["building api"]
    assert place.given(ident)[-1] == "stopped", "it ends with the agent outside"


async def _body(place: Place) -> bytes:
    reply = await place.ask("GET", "")
    assert reply.status == 200
    return reply.body


async def test_missing_cli_is_reported(place: Place) -> None:
    place.declare("api")
    async with place.running() as built:
        assert not built
        result = await place.one(lambda item: item["status"] == "error")
    assert "npm install --global @devcontainers/cli" in result["error"]
    assert place.lines() == [result["error"]]
    assert result["error"].startswith("api was not started: the devcontainer command is not installed")


async def test_missing_engine_is_reported(place: Place) -> None:
    place.engine.remove("docker")
    os.environ["PATH"] = str(place.engine._bin)  # whatever this machine has; the fixture puts it back
    async with place.running() as built:
        assert built, "nothing was declared"
        listing = json.loads(await _body(place))
    assert (listing["devcontainers"], listing["containers"]) == ([], [])
    assert listing["warnings"] == [
        "No containers can be listed: neither docker nor podman is installed in this workspace."
    ]


async def test_failed_build_can_be_retried(place: Place) -> None:
    place.engine.add_builder()
    folder = place.declare("api")
    place.engine.describe(folder, fails="no such image")
    async with place.running() as built:
        assert not built
        result = await place.one(lambda item: item["status"] == "error")
        assert result["error"] == "devcontainer up failed: no such image"
        assert place.lines() == ["building api", "it does not compile", "devcontainer up failed: no such image"]
        assert not place.server.agents
        place.engine.describe(folder)
        assert (await place.ask("POST", f"/devcontainers/{ID}/recreate")).status == 202
        assert "error" not in await place.one(lambda item: "agent" in item)


async def test_recreate_replaces_container_and_agent(place: Place) -> None:
    place.template()
    async with place.running():
        before = await place.one(lambda item: "agent" in item)
        await place.begun(before["container"]["id"])
        path = f"/devcontainers/{ID}/recreate"
        reply = await place.ask("POST", path)
        assert (reply.status, json.loads(reply.body)["message"]) == (202, "Devcontainer recreation initiated")
        refused = await place.ask("POST", path)
        assert (refused.status, json.loads(refused.body)["message"]) == (409, "The dev container is already starting.")
        assert (await place.ask("DELETE", f"/devcontainers/{ID}")).status == 409
        after = await place.one(lambda item: "agent" in item and item["agent"] != before["agent"])
        assert place.engine.ids() == [after["container"]["id"]] != [before["container"]["id"]]
        assert [str(ident) for ident in place.server.agents] == [after["agent"]["id"]]


async def test_stopped_container_keeps_agent(place: Place) -> None:
    place.template()
    async with place.running():
        _, ident = await place.with_agent()
        place.engine.stop(ident)
        stopped = await place.one(lambda item: item["status"] == "stopped")
        assert stopped["container"]["status"] == "exited"
        assert place.lines()[-1] == "The container of api has stopped."
        with trio.fail_after(60):
            while place.given(ident)[-1] != "stopped":
                await trio.sleep(0.01)
        place.engine.drop(ident)
        gone = await place.one(lambda item: "container" not in item)
        assert gone["status"] == "stopped", "the template declares it: it can be started again"
        assert (await place.ask("POST", f"/devcontainers/{ID}/recreate")).status == 202
        await place.one(lambda item: item["status"] == "running" and "agent" in item)


async def test_silent_engine_keeps_agents(place: Place) -> None:
    place.template()
    async with place.running():
        result = await place.one(lambda item: "agent" in item)
        await place.begun(result["container"]["id"])
        place.engine.break_down()
        for _ in range(3):
            listing = json.loads(await _body(place))
            assert listing["warnings"] == ["Listing containers failed: Cannot connect to the Docker daemon"]
            assert listing["devcontainers"][0]["agent"] == result["agent"]
        assert place.given(result["container"]["id"])[-1] != "stopped"


async def test_delete_removes_container(place: Place) -> None:
    place.template()
    async with place.running():
        await place.one(lambda item: "agent" in item)
        assert (await place.ask("DELETE", f"/devcontainers/{ID}")).status == 204
        result = await place.one(lambda item: item["status"] == "stopped")
        assert "container" not in result and "agent" not in result
        assert not place.engine.ids() and not place.server.agents
        for path, status in ((f"/devcontainers/{uuid4()}", 404), ("/devcontainers/none", 400)):
            assert (await place.ask("DELETE", path)).status == status


async def test_foreign_container_gets_agent(place: Place) -> None:
    place.engine.add_builder()
    folder = place.work / "main"
    place.engine.describe(folder, remoteUser="dev")
    place.server.taken = {"work-main"}
    await trio.run_process(["devcontainer", "up", "--workspace-folder", str(folder)], capture_stdout=True)
    async with place.running():
        result = await place.one(lambda item: "agent" in item)
        assert result["agent"]["name"] == "main-2", "main is the agent outside, work-main another's"
        place.engine.drop(result["container"]["id"])
        with trio.fail_after(60):
            while place.table.cached_listing()["devcontainers"]:
                await place.table.next_change().wait()
        await place.settled(lambda: not place.server.agents)


async def test_ignored_container_gets_no_agent(place: Place) -> None:
    place.engine.add_builder()
    place.engine.describe(place.declare("api"), customizations={"coder": {"ignore": True}})
    async with place.running():
        await place.one(lambda item: item["status"] == "running")
        for _ in range(3):
            await place.table.next_change().wait()
        assert not place.server.agents


async def test_failing_agent_is_reported(place: Place) -> None:
    place.engine.add_builder()
    folder = place.declare("api")
    place.engine.describe(folder)
    await trio.run_process(["devcontainer", "up", "--workspace-folder", str(folder)], capture_stdout=True)
    (ident,) = place.engine.ids()
    (place.engine.containers / ident / "fails").touch()
    async with place.running():
        result = await place.one(lambda item: "error" in item)
        assert (result["status"], result["error"]) == ("running", "The agent inside exited: refused by the server")
        assert len(place.server.agents) == 1, "it is tried again as the same"


async def test_foreign_architecture_is_rejected(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    place.template()
    async with place.running():
        result = await place.one(lambda item: "error" in item)
    assert result["error"].startswith("The container's architecture is ") and "agent" not in result


async def test_preset_agent_is_updated(place: Place) -> None:
    place.engine.add_builder()
    preset = place.preset()
    place.server.have("left by the agent before")
    place.engine.describe(place.declare("api", subagent_id=preset.bytes))
    async with place.running():
        result = await place.one(lambda item: "agent" in item)
        assert result["agent"]["id"] == result["subagent_id"] == str(preset)
        assert place.server.agents.keys() == {preset}


@pytest.mark.parametrize("autostart", [False, True])
async def test_projects_are_listed_and_built(autostart: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path, monkeypatch, autostart=autostart)
    place.engine.add_builder()
    place.engine.describe(place.work, customizations={"coder": {"autoStart": True}})
    (place.work / ".git").mkdir()
    async with place.running():
        result = await place.one(lambda item: item["status"] == ("running" if autostart else "stopped"))
        assert result["workspace_folder"] == str(place.work)
        assert result["config_path"] == str(place.work / ".devcontainer/devcontainer.json")
        os.utime(result["config_path"], (2**32, 2**32))
        if autostart:
            assert (await place.one(lambda item: item["dirty"]))["status"] == "running"


async def test_rebuild_recreates_agents(place: Place) -> None:
    place.template(subagent_id=place.preset().bytes)
    place.manifest.scripts.add(id=ID.bytes, log_source_id=b"s" * 16)
    other = uuid4()
    async with place.running():
        before = await place.one(lambda item: "agent" in item)
        await place.begun(before["container"]["id"])
        place.server.agents.clear()  # they went with the old build, and their names and numbers with them
        place.server.presets.clear()
        preset = place.preset()
        manifest = agent_pb2.Manifest(agent_name="main")
        folder = before["workspace_folder"]
        manifest.devcontainers.add(id=other.bytes, name="new", workspace_folder=folder, subagent_id=preset.bytes)
        manifest.scripts.add(id=other.bytes, log_source_id=b"t" * 16)
        place.state.manifest = manifest
        place.table.reset_sub_agents()
        after = await place.one(lambda item: item.get("agent", before["agent"]) != before["agent"])
        assert (after["id"], after["name"], after["subagent_id"]) == (str(other), "new", str(preset))
        assert (after["agent"]["id"], after["container"]) == (str(preset), before["container"])
        assert list(place.server.agents) == [preset]
        assert (await place.ask("POST", f"/devcontainers/{other}/recreate")).status == 202
        await place.one(lambda item: item.get("container", before["container"]) != before["container"])
        assert [source for source, _ in place.logs._lines] == [b"s" * 16, b"t" * 16], "each build's own log"


async def test_latest_manifest_wins_during_scripts(place: Place) -> None:
    place.template(subagent_id=uuid4().bytes)
    place.table.reset_sub_agents()
    place.state.manifest = agent_pb2.Manifest(agent_name="main")
    async with place.running():
        assert place.table.cached_listing()["devcontainers"] == []


async def test_watcher_sees_every_change(place: Place) -> None:
    place.template()
    near, far = trio.testing.memory_stream_pair()
    async with place.running(), trio.open_nursery() as nursery:
        nursery.start_soon(HttpApi(place.state).serve, far)
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
        assert len({json.dumps(item) for item in seen}) == len(seen), "nothing is told twice"


@pytest.mark.parametrize("step", ["_list", "_discover", "_poll_dev_containers", "_is_dirty"])
async def test_defects_keep_agents_running(step: str, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = trio.Event()

    async def fail(*_: Any, **_more: Any) -> NoReturn:
        failed.set()
        raise RuntimeError("a defect")

    place.template()
    monkeypatch.setattr(place.table, step, fail)
    async with place.running():
        with trio.fail_after(60):
            await failed.wait()
        await trio.sleep(0)


async def test_disabled_and_nested_are_rejected(place: Place) -> None:
    place.state.manifest = agent_pb2.Manifest(parent_id=bytes(16))
    inside = await place.ask("GET", "")
    place.state.manifest, place.state.containers = place.manifest, None
    off = await place.ask("GET", "")
    assert [inside.status, off.status] == [403, 403]
    assert (await place.ask("POST", f"/devcontainers/{ID}/recreate")).status == 404, "as recorded"
    assert json.loads(off.body)["message"] == "Dev Container feature not enabled."
    assert "CODER_AGENT_DEVCONTAINERS_ENABLE=true" in json.loads(off.body)["detail"]
    assert "inside other Dev Containers" in json.loads(inside.body)["detail"]


async def test_handover_keeps_built_containers(place: Place) -> None:
    """Of a container that has nothing of its folder mounted only its builder knows whose it is, and who works there."""
    place.template()

    def entered_as(user: str) -> int:
        users = [line[line.index("--user") + 1] for line in place.engine.words() if line[0] == "exec"]
        return users.count(user)

    async with place.running():
        before = await place.one(lambda item: "agent" in item)
        await place.settled(lambda: entered_as("dev") == 1)
        place.engine.mount(before["container"]["id"], "/var/lib/docker/volumes/api/_data")
        left = place.table.handover_state()
    nothing: list[KeptContainer] = []
    for kept in (nothing, left):
        place.table = Devcontainers(place.state, place.logs, DevcontainerSettings())
        async with place.running(kept):
            await place.table.refresh()
            shown = place.table.cached_listing()
            assert ("warnings" in shown, "container" in shown["devcontainers"][0]) == (not kept, bool(kept))
            if kept:
                await place.settled(lambda: entered_as("dev") == 2)
                result = await place.one(lambda item: "agent" in item)
                assert result["agent"]["directory"] == "/workspaces/api"


async def test_handover_state_round_trips(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the path of its description, which may be one of several, and which no template says."""
    monkeypatch.setattr(place.table, "refresh", trio.lowlevel.checkpoint)
    description = "/work/api/.devcontainer/x/devcontainer.json"
    kept = [KeptContainer("/work/api", "c1", "dev", "/workspaces/api", description)]
    async with place.running(kept):
        assert place.table.handover_state() == kept


@given(st.lists(st.binary(max_size=40) | st.sampled_from([b"x" * 9, b"\n", b"y" * 30]), max_size=30))
def test_builder_output_becomes_lines(chunks: list[bytes]) -> None:
    async def main() -> None:
        logs, item = LogQueue(lambda: datetime.now(UTC)), Devcontainer(ID, "api", "/api")
        lines = table._Lines(logs, item)
        for chunk in chunks:
            await lines.take(chunk)
            assert len(lines._rest) <= 16
        lines.end()
        told = [entry.output for _, entry in logs._lines]
        assert all(len(text) <= 16 for text in told)
        plain = b"".join(chunks).decode("latin-1")
        if plain.isascii() and "\r" not in plain:
            wanted = [line[at : at + 16] for line in plain.split("\n") for at in range(0, max(len(line), 1), 16)]
            assert "".join(told) == "".join(wanted)
            assert [text for text in told if text] == [text for text in wanted if text]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "MAX_LINE", 16)
        run(main)


async def test_discovery_blocks_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    began = trio.Event()

    async def search(*_: Any, **_more: Any) -> None:
        began.set()
        await trio.sleep_forever()

    monkeypatch.setattr(place.table, "_discover", search)
    with trio.fail_after(60):
        async with place.running():
            await began.wait()


def test_declared_folders_are_resolved() -> None:
    places = {"~": "/h", "~/api": "/h/api", "api": "/w/api", "": "/w", "/srv/api": "/srv/api", "~api": "/w/~api"}
    manifest = agent_pb2.Manifest()
    for place in places:
        manifest.devcontainers.add(workspace_folder=place)
    result = [item.folder for item in declared(manifest, Path("/w"), Path("/h"))]
    assert result == list(dict.fromkeys(places.values()))


async def test_recreate_before_start_is_busy(place: Place) -> None:
    place.declare("api")
    place.table._known |= {item.folder: item for item in declared(place.manifest, place.work, place.work)}
    assert (await place.ask("POST", f"/devcontainers/{ID}/recreate")).status == 409
    assert [item.busy for item in place.table._known.values()] == [""]
