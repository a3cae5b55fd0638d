"""The first stream loads the SSH service; concurrent ones wait for it, too."""

from __future__ import annotations

import subprocess
import sys

import trio
from trio.testing import memory_stream_pair

from coder.agent.ssh.acceptor import SshAcceptor
from coder.agent.state import AgentState
from coder.agent.workspace import environment


def _state() -> AgentState:
    return AgentState(identity=environment.find_identity(), token="", url="http://127.0.0.1", executable="/bin/false")


async def test_first_stream_loads_server() -> None:
    acceptor = SshAcceptor(_state(), max_timeout=60)
    acceptor.terminate_all()  # not loaded yet, nothing to terminate
    near, far = memory_stream_pair()
    later, late = memory_stream_pair()
    async with acceptor.open(), trio.open_nursery() as nursery:
        nursery.start_soon(acceptor.serve, far)
        nursery.start_soon(acceptor.serve, late)
        with trio.fail_after(60):
            assert (await near.receive_some()).startswith(b"SSH-2.0-")
            assert (await later.receive_some()).startswith(b"SSH-2.0-")
        await later.aclose()
        await near.aclose()
        nursery.cancel_scope.cancel()


def test_agent_starts_without_ssh() -> None:
    late = ("asyncio", "asyncssh", "coder.mesh.node")
    code = f"import sys, coder.agent.agent; print([n for n in {late} if n in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.strip() == b"[]"
