"""The recorded speed tests and the recorded terminal, as conversations with our agent and our client."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import trio
import trio.testing

from coder.agent.network.reconnecting_pty import PtyService
from coder.agent.network.speedtest import BLOCK, serve_speedtest
from coder.agent.state import AgentState
from coder.agent.workspace.environment import find_identity
from coder.base.errors import CoderError
from coder.rpc.proto import agent_pb2
from coder.tailnet.speedtest import run_speedtest
from tests.kit.recordings.wire_recordings import load_json, load_lines

SPEEDTEST = load_json("speedtest.json")
MEASURED = [case for case in SPEEDTEST["cases"] if "writes" in case]
REFUSED = [case for case in SPEEDTEST["cases"] if "writes" not in case]
TERMINAL = load_lines("pty.jsonl")


async def read_exactly(stream: trio.abc.ReceiveStream, size: int) -> bytes:
    received = b""
    while len(received) < size:
        piece = await stream.receive_some(size - len(received))
        assert piece, received
        received += piece
    return received


@pytest.mark.parametrize("case", MEASURED, ids=lambda case: case["direction"])
async def test_server_passes_recorded_speed_test(case: dict[str, Any]) -> None:
    assert SPEEDTEST["block_size"] == BLOCK
    near, far = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_speedtest, far)
        with trio.fail_after(60):
            for write in case["writes"]:
                raw = bytes.fromhex(write["hex"])
                size = write.get("total_len", len(raw))
                if write["dir"] == "c2s":
                    await near.send_all(raw.ljust(size, b"."))
                elif "total_len" in write:
                    await read_exactly(near, size)  # random bytes, of this many
                else:
                    assert await read_exactly(near, size) == raw
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("case", MEASURED, ids=lambda case: case["direction"])
async def test_client_requests_match_recording(case: dict[str, Any]) -> None:
    near, far = trio.testing.memory_stream_pair()
    request, answer, *blocks = (bytes.fromhex(write["hex"]) for write in case["writes"])

    async def serve() -> None:
        assert await read_exactly(far, len(request)) == request
        await far.send_all(answer)
        for block in blocks:
            if case["direction"] == "download":
                await far.send_all(block)
            else:
                await read_exactly(far, len(block))
        await far.aclose()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        with trio.fail_after(60):
            parts = await run_speedtest(near, "down" if case["direction"] == "download" else "up", 0.5)
    assert case["direction"] == "upload" or parts[-1].size == sum(map(len, blocks))


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["request"][:13])
async def test_server_refuses_in_recorded_words(case: dict[str, Any]) -> None:
    near, far = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_speedtest, far)
        await near.send_all(case["request"].encode())
        with trio.fail_after(60):
            assert await read_exactly(near, len(case["response"])) == case["response"].encode()
            assert await near.receive_some() == b""


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["request"][:13])
async def test_client_understands_recorded_refusals(case: dict[str, Any]) -> None:
    near, far = trio.testing.memory_stream_pair()
    await far.send_all(case["response"].encode())
    with pytest.raises(CoderError):
        await run_speedtest(near, "down", 5)


def output_before(connection: int, *, before: int) -> bytes:
    """Return the output of the recorded terminal up to the moment when the line `before` was sent."""
    output = (line for line in TERMINAL[:before] if line["connection"] == connection and line.get("dir") == "s2c")
    return b"".join(bytes.fromhex(line["hex"]) for line in output if line["op"] == "binary")


def normalized(output: bytes) -> bytes:
    """Remove output that depends on the shell's version and its user: the prompt, and bracketed paste mode."""
    return re.sub(rb"\x1b\[\?2004[hl]\r?", b"", re.sub(rb"bash-[0-9.]+[#$] ", b"$ ", output))


@pytest.mark.skipif(shutil.which("bash") is None, reason="the recorded shell is bash")
async def test_recorded_terminal_is_replayed(tmp_path: Path) -> None:
    """Keys, resizing, a second viewer that gets the earlier output, and the end, with the recorded texts."""
    state = AgentState(identity=find_identity(), token="t", url="http://x", executable="/bin/coder")
    state.manifest = agent_pb2.Manifest(workspace_name="w")
    state.directory = tmp_path
    body = b'{"ID":"%s","Height":24,"Width":80,"Command":"/bin/bash --norc"}' % str(UUID(int=9)).encode()
    async with trio.open_nursery() as nursery:
        service = PtyService(state, nursery)
        for connection in (1, 2):
            near, far = trio.testing.memory_stream_pair()
            nursery.start_soon(service.serve, far)
            await near.send_all(len(body).to_bytes(2, "little") + body)
            output = b""
            for at, line in enumerate(TERMINAL):
                if line["connection"] != connection or line.get("dir") != "c2s":
                    continue
                expected = normalized(output_before(connection, before=at))
                with trio.move_on_after(60):
                    while normalized(output) != expected:
                        output += await near.receive_some()
                assert normalized(output) == expected
                if line["op"] == "binary":
                    await near.send_all(bytes.fromhex(line["hex"]))
            if connection == 2:  # `exit` was typed: the stream ends, as the recorded one did
                with trio.fail_after(60):
                    while await near.receive_some():
                        pass
            await near.aclose()
        nursery.cancel_scope.cancel()
