"""Replay of a terminal's output: no question is asked twice, and it begins where text begins."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest
import trio
import trio.testing

from coder.agent.network.reconnecting_pty import REPLAY_SIZE, PtyService
from coder.agent.network.terminal_replay import replay_of
from coder.agent.state import AgentState
from coder.agent.workspace.environment import find_identity
from coder.rpc.proto import agent_pb2

QUESTIONS = [
    *(b"\x1b[5n", b"\x1b[6n", b"\x1b[?6n", b"\x1b[?15n", b"\x1b[?996n"),
    *(b"\x1b[c", b"\x1b[0c", b"\x1b[>c", b"\x1b[>0c", b"\x1b[=c", b"\x1bZ", b"\x05"),
    *(b"\x1b[>q", b"\x1b[>0q", b"\x1b[?2026$p", b"\x1b[4$p", b"\x1b[?u", b"\x1b[14t", b"\x1b[18t", b"\x1b[21t"),
    *(b"\x1b]10;?\x07", b"\x1b]11;?\x1b\\", b"\x1b]12;?\x07", b"\x1b]4;1;?\x07", b"\x1b]52;c;?\x07"),
    *(b"\x1bP+q544e\x1b\\", b"\x1bP$qm\x1b\\", b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\", b"\x1b[x"),
]
"""What programs ask, and what xterm.js or another terminal answers."""
KEPT = [
    *(b"\x1b[31mred\x1b[0m", b"\x1b[2J\x1b[H", b"\x1b[10;5H", b"\x1b[?25l\x1b[?25h", b"\x1b[?1049h", b"\x1b[2;5r"),
    *(b"\x1b]0;title\x07", b"\x1b]2;what?\x07", b"\x1b]11;#ff0000\x07", b"\x1b]8;;http://x/?\x07link\x1b]8;;\x07"),
    *(
        b"\x1b]52;c;aGk=\x07",
        b"\x1b[8;24;80t",
        b"\x1b[22;0t",
        b"\x1b[>4;2m",
        b"\x1b[>1u",
        b"\x1b[2 q",
        b"\x1b[!p",
        b"6n c",
    ),
    *("über 中文 🙂".encode(), b"\x1bPq#0;2;0;0;0\x1b\\", b"\x1b[?2026h", b"50% $p ?", b"\x1b[3S", b"\x1b[5X"),
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_question_is_not_repeated(question: bytes) -> None:
    assert replay_of(b"before" + question + b"after" + question, REPLAY_SIZE) == b"beforeafter"


@pytest.mark.parametrize("output", KEPT)
def test_other_output_is_kept(output: bytes) -> None:
    assert replay_of(b"a" + output + b"z", REPLAY_SIZE) == b"a" + output + b"z"


@pytest.mark.parametrize(
    ("output", "size", "replay"),
    [
        (b"one\ntwo\nthree", 7, b"three"),
        (b"one\ntwo\nthree", 13, b"one\ntwo\nthree"),
        ("中文字".encode(), 8, "文字".encode()),
        ("中文字".encode(), 7, "文字".encode()),
        ("中文字".encode(), 6, "文字".encode()),
        ("🙂🙂".encode(), 7, "🙂".encode()),
        (b"\x1b[31mred\nnext", 9, b"next"),
        (b"", 5, b""),
    ],
)
def test_cut_replay_begins_with_text(output: bytes, size: int, replay: bytes) -> None:
    assert replay_of(output, size) == replay


async def _receive(stream: trio.abc.ReceiveStream, marker: bytes) -> bytes:
    seen = b""
    with trio.fail_after(60):
        while marker not in seen:
            seen += await stream.receive_some()
    return seen


async def test_viewer_after_reload_is_not_asked(tmp_path: Path) -> None:
    state = AgentState(identity=find_identity(), token="t", url="http://x", executable="/bin/coder")
    state.manifest, state.directory = agent_pb2.Manifest(workspace_name="w"), tmp_path
    command = "printf 'a\\033[6n\\033[cready\\n'; read x; seq -f '%06.0f中' 20000; echo end; read y"
    init = json.dumps({"ID": str(uuid.uuid4()), "Height": 24, "Width": 80, "Command": command}).encode()
    async with trio.open_nursery() as nursery:
        service = PtyService(state, nursery)

        async def view() -> trio.abc.HalfCloseableStream:
            near, far = trio.testing.memory_stream_pair()
            nursery.start_soon(service.serve, far)
            await near.send_all(len(init).to_bytes(2, "little") + init)
            return near

        first = await view()
        assert b"a\x1b[6n\x1b[cready" in await _receive(first, b"ready")
        second = await view()
        assert b"aready" in await _receive(second, b"ready")
        await second.send_all(b'{"data":"\\n"}')
        await _receive(second, b"end")
        replay = await _receive(await view(), b"end")
        assert len(replay) > REPLAY_SIZE // 2 and replay.decode().splitlines()[0].endswith("中")
        nursery.cancel_scope.cancel()
