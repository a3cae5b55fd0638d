"""The recorded streams: a relayed SSH session frame by frame, server-sent events, and WebSocket conversations."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pytest
import trio
import trio.testing

from coder.api.agents import agent_streams, agents
from coder.api.base import codec
from coder.api.notifications import notifications
from coder.api.provisioning import jobs
from coder.api.workspaces import workspaces
from coder.coderd.http.server.streams import _event, _twin
from coder.mesh.core.tunnel.constants import REJECT_AFTER_MESSAGES
from coder.mesh.core.wire import derp, derp_reader, disco, wireguard
from coder.net.websocket import WebSocketStream
from tests.kit.recordings.wire_recordings import load_lines

# -- DERP -----------------------------------------------------------------------------------------------------------

SESSION = load_lines("derp_ssh_session.jsonl")
FRAMES = SESSION[1:]


@pytest.mark.parametrize("chunk", [1, 13, 1 << 16])
@pytest.mark.parametrize("direction", ["c2s", "s2c"])
def test_relayed_session_matches_recording(direction: str, chunk: int) -> None:
    recorded = [frame["hex"] for frame in FRAMES if frame["dir"] == direction]
    data = bytes.fromhex("".join(recorded))
    reader = derp_reader.FrameReader()
    frames = []
    for at in range(0, len(data), chunk):
        frames += [
            derp_reader.parse_untrusted(kind, body) for kind, body in reader.feed_untrusted(data[at : at + chunk])
        ]
    assert [frame.encode().hex() for frame in frames] == recorded
    assert reader.pending == 0


def test_relayed_session_is_wireguard_conversation() -> None:
    """Greeting, then one handshake, then data under the indices it named, each counter once and rising."""
    assert [(frame["dir"], frame["type"]) for frame in FRAMES[:4]] == [
        ("s2c", derp.SERVER_KEY),
        ("c2s", derp.CLIENT_INFO),
        ("c2s", derp.NOTE_PREFERRED),
        ("s2c", derp.SERVER_INFO),
    ]
    names: dict[str, set[int]] = {"c2s": set(), "s2c": set()}
    newest: dict[tuple[str, int], int] = {}
    peers = set()
    seen = []
    for frame in FRAMES[4:]:
        message = derp_reader.parse_untrusted(frame["type"], bytes.fromhex(frame["hex"])[5:])
        assert isinstance(message, derp.SendPacket | derp.RecvPacket)
        peers.add(message.destination if isinstance(message, derp.SendPacket) else message.source)
        if disco.is_disco(message.packet):
            seen.append("disco")
            continue
        here, there = frame["dir"], "s2c" if frame["dir"] == "c2s" else "c2s"
        said = wireguard.parse_untrusted(message.packet)
        assert said.encode() == message.packet
        seen.append(type(said).__name__)
        if isinstance(said, wireguard.Initiation | wireguard.HandshakeResponse):
            names[here].add(said.sender)
        if not isinstance(said, wireguard.Initiation):
            assert said.receiver in names[there], "an index the other side has named"
        if isinstance(said, wireguard.Transport):
            assert newest.get((here, said.receiver), -1) < said.counter < REJECT_AFTER_MESSAGES
            newest[here, said.receiver] = said.counter
            assert len(message.packet) % 16 == 0, "padded"
    assert len(peers) == 1
    assert seen[:3] == ["Initiation", "HandshakeResponse", "Transport"] or "disco" in seen[:3]


# -- JSON streams ------------------------------------------------------------------------------------------------------

KINDS: dict[str, Any] = {
    "workspace watch": workspaces.Workspace,
    "workspace watch-ws": workspaces.Workspace,
    "agent metadata watch": list[agents.WorkspaceAgentMetadata],
    "agent metadata watch, websocket": list[agents.WorkspaceAgentMetadata],
    "agent logs follow": list[agent_streams.WorkspaceAgentLog],
    "agent logs follow, no_compression": list[agent_streams.WorkspaceAgentLog],
    "workspace build logs follow": jobs.ProvisionerJobLog,
    "inbox watch": notifications.GetInboxNotificationResponse,
    "derp-map": dict[str, Any],
}


def examples(name: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield (example, its lines without the handshake)."""
    for example, lines in groupby(load_lines(name), key=lambda line: line["example"]):
        yield example, [line for line in lines if line.get("kind") != "http"]


SSE = dict(examples("sse_examples.jsonl"))
WEBSOCKETS = dict(examples("websocket_examples.jsonl"))


def parse_json(text: bytes | str) -> Any:
    """Parse JSON; upstream leaves out trailing zeros of a second's fraction, which does not change the value."""
    whole = text if isinstance(text, str) else text.decode()
    return json.loads(re.sub(r'(:\d\d)(\.\d*?)0*Z"', lambda m: f'{m[1]}{m[2].rstrip(".")}Z"', whole))


def round_trip(value: Any, kind: Any) -> Any:
    """Decode into our struct and encode again."""
    return parse_json(codec.encode(codec.decode(json.dumps(value), kind)))


@pytest.mark.parametrize("example", SSE)
def test_events_encode_as_recorded(example: str) -> None:
    for line in SSE[example]:
        head, _, rest = line["chunk"].partition("\ndata: ")
        if not rest:
            assert line["chunk"].encode() == _event(None)
            continue
        assert head == "event: data" and rest.endswith("\n\n")
        value = parse_json(rest)
        assert round_trip(value, KINDS[example]) == value
        written = _event(codec.decode(rest, KINDS[example])).decode()
        assert written.endswith("\n\n")
        assert written.removeprefix("event: data\ndata: ") != written
        assert parse_json(written.removeprefix("event: data\ndata: ")) == value


def messages(lines: list[dict[str, Any]]) -> list[str]:
    """Return whole messages of the server."""
    texts: list[str] = []
    for line in lines:
        if line["op"] in ("text", "binary"):
            texts.append(line["text"])
        elif line["op"] == "cont":
            texts[-1] += line["text"]
    return texts


@pytest.mark.parametrize("example", WEBSOCKETS)
def test_messages_encode_as_recorded(example: str) -> None:
    for text in messages(WEBSOCKETS[example]):
        value = parse_json(text)
        if isinstance(value, dict) and value.keys() == {"type", "data"}:
            inner = value["data"]
            ours = None if inner is None else codec.decode(json.dumps(inner), KINDS[example])
            first = {"type": "ping", "data": None}  # sent once, before the first value
            assert parse_json(codec.encode(first if ours is None else _twin(ours))) == value
        else:
            assert round_trip(value, KINDS[example]) == value


def raw_frame(line: dict[str, Any]) -> bytes:
    """Return a frame of the server: never masked (RFC 6455 5.1)."""
    codes = {"cont": 0, "text": 1, "binary": 2, "close": 8}
    close = line["op"] == "close"
    body: bytes = struct.pack("!H", line["code"]) + line["reason"].encode() if close else line["text"].encode()
    head = bytes((line["fin"] << 7 | codes[line["op"]],))
    size = len(body)
    if size < 126:
        return head + bytes((size,)) + body
    return head + (b"\x7e" + struct.pack("!H", size) if size < 65_536 else b"\x7f" + struct.pack("!Q", size)) + body


@pytest.mark.parametrize("example", WEBSOCKETS)
async def test_client_reads_recorded_frames(example: str) -> None:
    near, far = trio.testing.memory_stream_pair()
    client = WebSocketStream(near, client=True)
    lines = WEBSOCKETS[example]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(far.send_all, b"".join(raw_frame(line) for line in lines if line["dir"] == "s2c"))
        received = []
        while (message := await client.receive_message()) is not None:
            received.append(message if isinstance(message, str) else message.decode())
    assert received == messages(lines)
    assert client.close_code == next(line["code"] for line in lines if line["op"] == "close")
