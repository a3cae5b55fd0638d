"""Our callers and servers send packet for packet what upstream's sent in the recordings."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
import trio
import trio.testing

from coder.rpc import drpc, yamux
from coder.rpc.calls import Unary, call_unary
from coder.rpc.serving import serve_calls
from tests.kit.recordings.wire_recordings import both_directions, load_lines, message_type


def unary_calls(prefix: str) -> list[dict[str, Any]]:
    """Return recorded calls with one request and one answer, with the raw bytes of both directions."""
    raw: dict[int, dict[str, bytes]] = defaultdict(lambda: {"c2s": b"", "s2c": b""})
    readers = {"c2s": yamux.YamuxFrameReader(), "s2c": yamux.YamuxFrameReader()}
    for direction, data in both_directions(load_lines(f"{prefix}.jsonl")):
        for frame in readers[direction].receive_untrusted(data):
            raw[frame.stream][direction] += frame.body
    calls = []
    for call in load_lines(f"{prefix}_decoded.jsonl"):
        kinds = {d: [p["kind"] for p in call["packets"] if p["dir"] == d] for d in ("c2s", "s2c")}
        is_unary = kinds["c2s"] == ["Invoke", "Message", "CloseSend", "Close"] and kinds["s2c"] == [
            "Message",
            "CloseSend",
        ]
        if is_unary:
            calls.append({**call, **raw[call["stream"]]})
    return calls


CALLS = [
    call for prefix in ("rpc_agent", "rpc_client_ssh", "rpc_tailnet", "prov_daemon") for call in unary_calls(prefix)
]


def packets(data: bytes) -> list[tuple[drpc.PacketKind, int, int, int]]:
    return [(p.kind, p.stream, p.message, len(p.data)) for p in drpc.PacketReader().receive_untrusted(data)]


def message_of(call: dict[str, Any], direction: str) -> Any:
    packet = next(p for p in call["packets"] if p["dir"] == direction and p["kind"] == "Message")
    data = next(
        p.data for p in drpc.PacketReader().receive_untrusted(call[direction]) if p.kind is drpc.PacketKind.MESSAGE
    )
    return message_type(packet["type"]).FromString(data)


def test_every_link_has_calls() -> None:
    assert len({call["rpc"] for call in CALLS}) >= 12


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call['rpc'].rsplit('/', 1)[-1]}-{call['stream']}")
async def test_calls_and_answers_match_recording(call: dict[str, Any]) -> None:
    request, answer = message_of(call, "c2s"), message_of(call, "s2c")
    sent = {"c2s": b"", "s2c": b""}

    async def respond(received: Any) -> Any:
        assert received == request
        return answer

    ours, wire_c = trio.testing.memory_stream_pair()
    wire_s, theirs = trio.testing.memory_stream_pair()

    async def carry(direction: str, source: Any, target: Any) -> None:
        async for data in source:
            sent[direction] += bytes(data)
            await target.send_all(data)
        await target.send_eof()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(carry, "c2s", wire_c, wire_s)
        nursery.start_soon(carry, "s2c", wire_s, wire_c)
        nursery.start_soon(serve_calls, theirs, {call["rpc"]: Unary(respond, type(request))})
        assert await call_unary(ours, call["rpc"], request, type(answer)) == answer
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    for direction in ("c2s", "s2c"):
        assert packets(sent[direction]) == packets(call[direction])
