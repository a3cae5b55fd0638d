"""Recorded sessions of upstream programs run through our yamux and dRPC and give the recorded calls."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from google.protobuf import json_format

from coder.rpc import drpc, yamux
from tests.kit.recordings.wire_recordings import both_directions, load_lines, message_type, same_message

PREFIXES = ["rpc_agent", "rpc_client_ping", "rpc_client_ssh", "rpc_tailnet"]
RAW_JOBS = ["import", "build_start", "import_plan_error", "import_missing_variable", "build_start_canceled"]
KINDS = {
    drpc.PacketKind.INVOKE: "Invoke",
    drpc.PacketKind.MESSAGE: "Message",
    drpc.PacketKind.ERROR: "Error",
    drpc.PacketKind.CLOSE: "Close",
    drpc.PacketKind.CLOSE_SEND: "CloseSend",
}
FRAME_NAMES = {
    yamux.FrameType.DATA: "data",
    yamux.FrameType.WINDOW_UPDATE: "window_update",
    yamux.FrameType.PING: "ping",
    yamux.FrameType.GO_AWAY: "go_away",
}


def yamux_frames(name: str) -> list[tuple[str, yamux.YamuxFrame]]:
    readers = {"c2s": yamux.YamuxFrameReader(), "s2c": yamux.YamuxFrameReader()}
    return [
        (direction, frame)
        for direction, data in both_directions(load_lines(name))
        for frame in readers[direction].receive_untrusted(data)
    ]


def packets_of(chunks: list[tuple[str, bytes]]) -> list[tuple[str, drpc.DrpcPacket]]:
    readers = {"c2s": drpc.PacketReader(), "s2c": drpc.PacketReader()}
    return [(d, packet) for d, data in chunks for packet in readers[d].receive_untrusted(data)]


def check_packets(actual: list[tuple[str, drpc.DrpcPacket]], expected: list[dict[str, Any]]) -> None:
    for direction in ("c2s", "s2c"):
        own = [p for d, p in actual if d == direction]
        theirs = [p for p in expected if p["dir"] == direction]
        assert [(KINDS[p.kind], p.stream, p.message, len(p.data)) for p in own] == [
            (p["kind"], p["sid"], p["mid"], p["len"]) for p in theirs
        ]
        for packet, want in zip(own, theirs, strict=True):
            check_body(packet, want)


def check_body(packet: drpc.DrpcPacket, want: dict[str, Any]) -> None:
    if packet.kind is drpc.PacketKind.INVOKE:
        assert packet.data.decode() == want["text"]
    elif packet.kind is drpc.PacketKind.ERROR:
        assert (int.from_bytes(packet.data[:8], "big"), packet.data[8:].decode()) == (want["code"], want["text"])
    elif packet.kind is drpc.PacketKind.MESSAGE:
        kind = message_type(want["type"])
        assert same_message(kind.FromString(packet.data), json_format.ParseDict(want["json"], kind()))


@pytest.mark.parametrize("prefix", PREFIXES)
def test_frames_match_recording(prefix: str) -> None:
    expected = load_lines(f"{prefix}_yamux.jsonl")
    actual = yamux_frames(f"{prefix}.jsonl")
    for direction in ("c2s", "s2c"):
        own = [
            (FRAME_NAMES[f.type], sorted(str(flag.name) for flag in f.flags), f.stream, f.length)
            for d, f in actual
            if d == direction
        ]
        theirs = [(e["type"], sorted(e["flags"]), e["stream"], e["length"]) for e in expected if e["dir"] == direction]
        assert own == theirs


@pytest.mark.parametrize("name", [f"{prefix}.jsonl" for prefix in PREFIXES] + ["prov_daemon.jsonl"])
def test_frames_encode_identically(name: str) -> None:
    sent: dict[str, bytes] = defaultdict(bytes)
    for direction, data in both_directions(load_lines(name)):
        sent[direction] += data
    again: dict[str, bytes] = defaultdict(bytes)
    for direction, frame in yamux_frames(name):
        again[direction] += yamux.encode_frame(frame)
    assert again == sent


@pytest.mark.parametrize("prefix", [*PREFIXES, "prov_daemon"])
def test_calls_match_recording(prefix: str) -> None:
    chunks: dict[int, list[tuple[str, bytes]]] = defaultdict(list)
    for direction, frame in yamux_frames(f"{prefix}.jsonl"):
        if frame.type is yamux.FrameType.DATA:
            chunks[frame.stream].append((direction, frame.body))
    expected = load_lines(f"{prefix}_decoded.jsonl")
    assert [e["stream"] for e in expected] == list(dict.fromkeys(e["stream"] for e in expected))
    for call in expected:
        check_packets(packets_of(chunks[call["stream"]]), call["packets"])


@pytest.mark.parametrize("prefix", [*PREFIXES, "prov_daemon"])
def test_sessions_replay_on_both_ends(prefix: str) -> None:
    """Both ends replayed: the client's bytes to our server end and the reverse; nothing is rejected."""
    server, client = yamux.Yamux(client=False), yamux.Yamux(client=True)
    received: dict[tuple[str, int], bytes] = defaultdict(bytes)
    for direction, data in both_directions(load_lines(f"{prefix}.jsonl")):
        end = server if direction == "c2s" else client
        for event in end.receive_untrusted(data):
            if isinstance(event, yamux.StreamOpened):
                server.accept(event.stream)
                assert client.open_stream() == event.stream
            elif isinstance(event, yamux.DataReceived):
                end.consumed(event.stream, len(event.data))
                received[direction, event.stream] += event.data
    raw: dict[tuple[str, int], bytes] = defaultdict(bytes)
    for direction, frame in yamux_frames(f"{prefix}.jsonl"):
        if frame.body:
            raw[direction, frame.stream] += frame.body
    assert received == raw


@pytest.mark.parametrize("job", RAW_JOBS)
def test_provisioner_sessions_match_recording(job: str) -> None:
    chunks = list(both_directions(load_lines(f"prov_session_{job}.jsonl")))
    expected = next(e for e in load_lines("prov_session_decoded.jsonl") if e["stream"] == job)
    check_packets(packets_of(chunks), expected["packets"])


def test_every_packet_encodes_identically() -> None:
    for job in ("import", "build_start"):
        chunks = list(both_directions(load_lines(f"prov_session_{job}.jsonl")))
        for direction in ("c2s", "s2c"):
            packets = [p for d, p in packets_of(chunks) if d == direction]
            recorded = b"".join(data for d, data in chunks if d == direction)
            assert b"".join(map(drpc.encode_packet, packets)) == recorded


@pytest.mark.parametrize("job", [e["stream"] for e in load_lines("prov_session_decoded.jsonl")])
def test_decoded_sessions_match_our_messages(job: str) -> None:
    session = next(e for e in load_lines("prov_session_decoded.jsonl") if e["stream"] == job)
    for packet in session["packets"]:
        if packet["kind"] == "Message":
            message = json_format.ParseDict(packet["json"], message_type(packet["type"])())
            assert message.ByteSize() == packet["len"]
