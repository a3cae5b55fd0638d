"""WebSocket that reports git changes, over the agent's HTTP API."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import h11
import pytest
import trio
import trio.testing

from coder.agent.network import git_watch
from coder.agent.network.http_api import HttpApi
from coder.agent.state import AgentState, Identity
from coder.agent.workspace import environment
from coder.agent.workspace.git_changes import GitError, Repository, Scan
from coder.net.websocket import WebSocketStream, accept_key
from coder.rpc.proto import agent_pb2

KEY = base64.b64encode(b"0123456789abcdef").decode()


class ScriptedScan:
    """Scripted results of git."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now: dict[str, Repository] | GitError = {"/a": Repository("/a", "main")}
        self.errors: dict[str, str] = {}
        self.looks = 0
        monkeypatch.setattr(git_watch, "scan", self.scan)
        monkeypatch.setattr(git_watch, "workdir", self.workdir)

    async def workdir(self, state: AgentState) -> Path:
        """Without a thread, which a test clock does not wait for."""
        return state.identity.home

    async def scan(self, *_: Any) -> Scan:
        self.looks += 1
        if isinstance(self.now, GitError):
            raise self.now
        return Scan(self.now, self.errors)


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> ScriptedScan:
    return ScriptedScan(monkeypatch)


async def upgraded(near: trio.abc.Stream, **headers: str) -> tuple[h11.Response | h11.InformationalResponse, bytes]:
    connection = h11.Connection(h11.CLIENT)
    request = h11.Request(
        method="GET", target="/api/v0/git/watch?chat_id=x", headers=[("Host", "agent"), *headers.items()]
    )
    await near.send_all((connection.send(request) or b"") + (connection.send(h11.EndOfMessage()) or b""))
    while (event := connection.next_event()) is h11.NEED_DATA:
        connection.receive_data(bytes(await near.receive_some()))
    assert isinstance(event, h11.Response | h11.InformationalResponse)
    return event, connection.trailing_data[0]


def state_of(home: Path) -> AgentState:
    return AgentState(identity=Identity("me", home, "/bin/sh"), token="t", url="http://x", executable="coder")


@asynccontextmanager
async def watching(home: Path, state: AgentState | None = None) -> AsyncIterator[WebSocketStream]:
    state = state or state_of(home)
    near, far = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(HttpApi(state).serve, far)
        headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": KEY}
        answer, rest = await upgraded(near, **headers)
        assert answer.status_code == 101
        assert dict(answer.headers)[b"sec-websocket-accept"] == accept_key(KEY).encode()
        socket = WebSocketStream(near, client=True, initial=rest)
        yield socket
        await socket.aclose()
        with trio.fail_after(60):
            while nursery.child_tasks:
                await trio.lowlevel.checkpoint()


async def next_message(socket: WebSocketStream) -> Any:
    message = await socket.receive_message()
    assert isinstance(message, str)
    return json.loads(message)


async def test_full_state_then_changes(
    tmp_path: Path, scanned: ScriptedScan, autojump_clock: trio.testing.MockClock
) -> None:
    async with watching(tmp_path) as socket:
        first = await next_message(socket)
        assert (first["type"], [one["repo_root"] for one in first["repositories"]]) == ("changes", ["/a"])
        assert first["scanned_at"].endswith("Z")
        scanned.now = {"/b": Repository("/b")}
        began = trio.current_time()
        second = await next_message(socket)
        assert trio.current_time() - began <= git_watch.INTERVAL + 1
        assert [(one["repo_root"], one.get("removed", False)) for one in second["repositories"]] == [
            ("/b", False),
            ("/a", True),
        ]


async def test_git_gets_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODER_AGENT_TOKEN", "outer")
    given = list[Any]()

    async def scan(_directory: Path, env: Any) -> Scan:
        given.append(env)
        return Scan()

    monkeypatch.setattr(git_watch, "scan", scan)
    state = state_of(tmp_path)
    state.manifest = agent_pb2.Manifest(
        environment_variables={"OURS": "1"}, secrets=[agent_pb2.WorkspaceSecret(env_name="DEEP", value=b"hidden")]
    )
    async with watching(tmp_path, state) as socket:
        await next_message(socket)
    assert given[0]["OURS"] == "1" and given[0]["PATH"] and given[0]["HOME"]
    assert not {"CODER_AGENT_TOKEN", "CODER_AGENT_URL", "GIT_ASKPASS", "DEEP"} & given[0].keys()
    everything = environment.command_environment(state)
    assert (everything["CODER_AGENT_TOKEN"], everything["DEEP"]) == ("t", "hidden"), "a user's commands have them"


async def test_refresh_always_gets_reply(tmp_path: Path, scanned: ScriptedScan) -> None:
    async with watching(tmp_path) as socket:
        await next_message(socket)
        for odd in ("", "{", "[]", '{"type": 1}', "[" * 100_000):
            if len(odd) < 60_000:
                await socket.send_message(odd)
        await socket.send_message('{"type": "refresh"}')
        assert (await next_message(socket))["repositories"] == []
        scanned.now = GitError("git is not installed in this workspace")
        await socket.send_message('{"type": "refresh"}')
        reply = await next_message(socket)
        assert (reply["type"], reply["message"]) == ("error", "git is not installed in this workspace")


async def test_plain_request_must_upgrade(tmp_path: Path) -> None:
    state = AgentState(identity=Identity("me", tmp_path, "/bin/sh"), token="t", url="http://x", executable="coder")
    near, far = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(HttpApi(state).serve, far)
        answer, _ = await upgraded(near)
        assert answer.status_code == 426
        await near.aclose()


async def test_viewers_share_one_poll(
    tmp_path: Path, scanned: ScriptedScan, autojump_clock: trio.testing.MockClock
) -> None:
    state = state_of(tmp_path)
    async with watching(tmp_path, state) as one, watching(tmp_path, state) as two:
        assert await next_message(one) and await next_message(two)
        assert scanned.looks == 1
        scanned.now = {}
        assert await next_message(one) and await next_message(two)
        assert scanned.looks == 2
    assert state.repositories.watchers == 0


async def test_viewer_limit_closes_1013(tmp_path: Path, scanned: ScriptedScan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_watch, "MAX_VIEWERS", 1)
    state = state_of(tmp_path)
    async with watching(tmp_path, state) as one:
        await next_message(one)
        async with watching(tmp_path, state) as two:
            assert await two.receive_message() is None
            assert two.close_code == 1013
    async with watching(tmp_path, state) as three:
        await next_message(three)


async def test_unreadable_repository_is_reported_once(
    tmp_path: Path, scanned: ScriptedScan, autojump_clock: trio.testing.MockClock
) -> None:
    a, b = Repository("/a"), Repository("/b")
    scanned.now = {"/a": a, "/b": b}
    async with watching(tmp_path) as socket:
        assert len((await next_message(socket))["repositories"]) == 2
        scanned.now, scanned.errors = {"/b": b}, {"/a": "git diff took too long"}
        reply = await next_message(socket)
        assert (reply["type"], reply["message"]) == ("error", "git diff took too long")
        await trio.sleep(3 * git_watch.INTERVAL)
        scanned.now, scanned.errors = {"/a": a, "/b": Repository("/b", "side")}, {}
        assert [one["repo_root"] for one in (await next_message(socket))["repositories"]] == ["/b"]


@pytest.mark.parametrize("ending", ["cut", "silent"])
async def test_silent_disconnect_is_no_error(
    ending: str, tmp_path: Path, scanned: ScriptedScan, autojump_clock: trio.testing.MockClock
) -> None:
    state = state_of(tmp_path)
    near, plain = trio.testing.memory_stream_pair()
    cut = trio.StapledStream(plain.send_stream, BreakingStream(plain.receive_stream))
    far: trio.abc.Stream = cut if ending == "cut" else plain
    async with trio.open_nursery() as nursery:
        nursery.start_soon(HttpApi(state).serve, far)
        await upgraded(near, **{"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": KEY})
        with trio.fail_after(git_watch.PING_TIMEOUT + git_watch.PING_INTERVAL):
            while nursery.child_tasks:
                await trio.sleep(1)
    assert state.repositories.watchers == 0


class BreakingStream(trio.abc.ReceiveStream):
    """Breaks like a cut connection where it would have waited after the request."""

    def __init__(self, inner: trio.abc.ReceiveStream) -> None:
        self._inner, self._reads = inner, 0

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        self._reads += 1
        if self._reads > 1:
            await trio.sleep(1)
            raise trio.BrokenResourceError("reset")
        return await self._inner.receive_some(max_bytes)

    async def aclose(self) -> None:
        await self._inner.aclose()
