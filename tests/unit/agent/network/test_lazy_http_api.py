"""The first stream loads the HTTP API; concurrent ones wait for it, too."""

from __future__ import annotations

import subprocess
import sys

import pytest
import trio
from trio.testing import memory_stream_pair

from coder.agent.network import http_api
from coder.agent.network.lazy_http_api import LazyHttpApi
from coder.agent.state import AgentState
from coder.agent.workspace import environment

ASKED = b"GET /debug/no-such-page HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n"


async def _answer(stream: trio.abc.Stream) -> bytes:
    await stream.send_all(ASKED)
    found = b""
    while part := await stream.receive_some():
        found += part
    return found


async def test_first_stream_loads_api(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[AgentState] = []

    class Counted(http_api.HttpApi):
        def __init__(self, state: AgentState) -> None:
            made.append(state)
            super().__init__(state)

    monkeypatch.setattr(http_api, "HttpApi", Counted)
    state = AgentState(identity=environment.find_identity(), token="", url="http://127.0.0.1", executable="/bin/false")
    api = LazyHttpApi(state)
    pairs = [memory_stream_pair() for _ in range(3)]
    answers: list[bytes] = []

    async def ask(near: trio.abc.Stream) -> None:
        answers.append(await _answer(near))

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for near, far in pairs:
                nursery.start_soon(api.serve, far)
                nursery.start_soon(ask, near)
    assert [answer.split(b" ", 2)[1] for answer in answers] == [b"404"] * 3
    assert made == [state]


def test_agent_starts_without_api() -> None:
    code = "import sys, coder.agent.agent; print('coder.agent.network.http_api' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.strip() == b"False"
