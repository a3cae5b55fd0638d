"""Seeded accidents: a real agent process is killed, stopped, cut off; the server names each cause when it is back."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import trio

from tests.kit.agents.scripted_agent import AgentWorld, eventually, workspace_world
from tests.kit.server.server_process import program_under_test

pytestmark = pytest.mark.system


class Proxy:
    """A TCP relay to the server, whose connections the test cuts."""

    def __init__(self, target: str, nursery: trio.Nursery) -> None:
        found = urlsplit(target)
        self._target = (found.hostname or "", found.port or 80)
        self._nursery = nursery
        self._open: set[trio.SocketStream] = set()
        self.url = ""

    async def start(self) -> None:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self.url = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        self._nursery.start_soon(trio.serve_listeners, self._serve, listeners)

    async def _serve(self, client: trio.SocketStream) -> None:
        async with client, await trio.open_tcp_stream(*self._target) as server:
            self._open |= {client, server}
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._copy, client, server)
                nursery.start_soon(self._copy, server, client)
            self._open -= {client, server}

    async def _copy(self, source: trio.SocketStream, target: trio.SocketStream) -> None:
        try:
            async for data in source:
                await target.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        for stream in (source, target):
            await trio.aclose_forcefully(stream)

    async def cut(self) -> None:
        for stream in list(self._open):
            await trio.aclose_forcefully(stream)


@asynccontextmanager
async def agent_process(
    scene: AgentWorld, url: str, folder: Path, **more: str
) -> AsyncIterator[subprocess.Popen[bytes]]:
    """The agent, as a machine runs it; killed in the end."""
    env = {**os.environ, "CODER_AGENT_TOKEN": scene.token, "CODER_AGENT_URL": url, "HOME": str(folder), **more}
    words = [*program_under_test(), "agent", "--state-dir", str(folder), "--log-dir", str(folder)]
    with (folder / "agent.log").open("ab") as said:
        process = subprocess.Popen(words, env=env, stderr=said)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def told(scene: AgentWorld, count: int) -> dict[str, Any]:
    """The newest of so many disconnects, once the agent has told its side."""

    async def look() -> Any:
        found = (await scene.world.get(f"/api/v2/workspaceagents/{scene.agent_id}/disconnects")).json()
        return found if len(found) == count and found[0]["told"] else None

    found: list[dict[str, Any]] = await eventually(look, seconds=90)
    return found[0]


async def connected(scene: AgentWorld) -> None:
    async def look() -> bool:
        return bool((await scene.agent())["status"] == "connected")

    await eventually(look, seconds=60)


async def light(scene: AgentWorld, name: str, wanted: Callable[..., bool]) -> dict[str, Any]:
    """A value of the lights, once it is as wanted."""

    async def look() -> Any:
        shown = (await scene.world.get(f"/api/v2/workspaceagents/{scene.agent_id}/lights")).json()
        found = next((value for one in shown.values() for value in one["values"] if value["name"] == name), None)
        return found if found and wanted(found) else None

    found: dict[str, Any] = await eventually(look, seconds=90)
    return found


async def test_each_accident_has_its_name(tmp_path: Path) -> None:
    async with workspace_world() as scene, trio.open_nursery() as nursery:
        proxy = Proxy(scene.world.url, nursery)
        await proxy.start()
        async with agent_process(scene, proxy.url, tmp_path) as process:
            await connected(scene)

            async def recorded() -> bool:
                return any(any(path.read_bytes()) for path in tmp_path.glob("*.flight"))

            await eventually(recorded)
            process.kill()
        async with agent_process(scene, proxy.url, tmp_path) as process:
            killed = await told(scene, 1)
            assert (killed["cause"], killed["ended"]) == ("killed", "closed"), killed
            await proxy.cut()
            cut = await told(scene, 2)
            assert cut["cause"] == "proxy_cut", cut
            process.send_signal(signal.SIGSTOP)

            async def gone() -> bool:
                return bool((await scene.agent())["status"] == "disconnected")

            await eventually(gone, seconds=60)
            process.send_signal(signal.SIGCONT)
            slept = await told(scene, 3)
            assert (slept["cause"], slept["ended"]) == ("slept", "silent"), slept
            process.send_signal(signal.SIGTERM)
            await trio.to_thread.run_sync(process.wait)
        async with agent_process(scene, proxy.url, tmp_path):
            stopped = await told(scene, 4)
            assert stopped["cause"] == "stopped", stopped
            await light(scene, "restarts", lambda value: value["value"] == "2 in 24 h")
            await light(scene, "disk", lambda value: value["status"] != "unknown" and value["age_seconds"] < 90)
        nursery.cancel_scope.cancel()


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    place = folder / "home"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="a small file system is mounted by root")
async def test_full_disk_is_reported(tmp_path: Path) -> None:
    unpacked = {"CODER_BINARY_CACHE": str(tmp_path / "programs")}  # of a built program; it has no room in 8 MiB
    with small_disk(tmp_path) as home:
        async with workspace_world() as scene:
            async with agent_process(scene, scene.world.url, home, **unpacked):
                await connected(scene)
                await light(scene, "disk", lambda value: value["status"] == "good")
                with pytest.raises(OSError, match="No space left"), (home / "filler").open("wb", 0) as file:
                    while True:
                        file.write(bytes(65536))
                await light(scene, "disk", lambda value: value["status"] == "bad")
                assert (await scene.agent())["status"] == "connected"
            async with agent_process(scene, scene.world.url, home, **unpacked):
                killed = await told(scene, 1)
                assert killed["cause"] == "killed", "what was written before the disk was full counts"
                await connected(scene)
                (home / "filler").unlink()
                await light(scene, "disk", lambda value: value["status"] == "good")


FAKED = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)


@pytest.mark.skipif(FAKED is None, reason="the package faketime is not installed")
async def test_clock_jump_is_reported(tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    clock.write_text("+0")
    faked = {
        "LD_PRELOAD": str(FAKED),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    async with workspace_world() as scene, agent_process(scene, scene.world.url, tmp_path, **faked):
        await connected(scene)
        await light(scene, "clock", lambda value: value["status"] == "good")
        for jump in (7200, -86400):
            (tmp_path / "next").write_text(f"{jump:+d}")
            (tmp_path / "next").replace(clock)
            found = await light(
                scene, "clock", lambda value, jump=jump: abs(float(value["value"].split()[0]) - jump) < 120
            )
            assert found["status"] == "bad"
        (tmp_path / "next").write_text("+0")
        (tmp_path / "next").replace(clock)
        await light(scene, "clock", lambda value: value["status"] == "good")
        assert (await scene.agent())["status"] == "connected"
        assert not (await scene.world.get(f"/api/v2/workspaceagents/{scene.agent_id}/disconnects")).json()
