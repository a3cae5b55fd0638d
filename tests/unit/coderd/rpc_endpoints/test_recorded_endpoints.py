"""The recorded refusals and small responses of the links, replayed byte by byte."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import trio

from tests.kit.agents.scripted_agent import AgentWorld, workspace_world
from tests.kit.recordings.wire_recordings import load_json

SKIPPED = {
    # other endpoints, tested elsewhere
    "provisioner daemon serve, without licence",
    "agent git ssh key",
    "pty, bad query",
    "pty, no token",
    "agent reinit?wait=true as the agent asks",
    "agent connection info",
    "generic connection info",
    # these continue with the protocol
    "derp, websocket without subprotocol",
    "netcheck latency request of the agent",
    "derp upgrade of the agent (first bytes)",
}
EXAMPLES = {e["name"]: e for e in load_json("http_examples.json") if e["name"] not in SKIPPED}
RECORDED_AGENT = "fac7844c-9f44-43c5-9018-b69f9a953d68"


async def replay(view_context: AgentWorld, request: str) -> tuple[int, dict[str, str], str]:
    host, port = view_context.world.url.removeprefix("http://").split(":")
    stream = await trio.open_tcp_stream(host, int(port))
    async with stream:
        with trio.fail_after(60):
            await stream.send_all(request.encode())
            answer = b""
            while not complete(answer):
                data = await stream.receive_some()
                if not data:
                    break
                answer += data
    head, _, body = answer.decode().partition("\r\n\r\n")
    lines = head.split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
    return int(lines[0].split(" ")[1]), headers, body


def complete(answer: bytes) -> bool:
    head, separator, body = answer.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head.lower())
    return bool(separator) and length is not None and len(body) >= int(length[1])


def for_our_server(view_context: AgentWorld, example: dict[str, Any]) -> str:
    request = example["request"].replace(RECORDED_AGENT, str(view_context.agent_id))
    request = re.sub(
        r"Coder-Session-Token: 11111111-2222-4333-8444-555555555555",
        f"Coder-Session-Token: {view_context.token}",
        request,
    )
    request = re.sub(
        r"Coder-Session-Token: [A-Za-z]{10}-[A-Za-z]{22}", f"Coder-Session-Token: {view_context.world.token}", request
    )
    if "unknown token" in example["name"]:
        request = re.sub(r"Coder-Session-Token: \S+", f"Coder-Session-Token: {uuid4()}", request)
    return request.replace("127.0.0.1:7080", view_context.world.url.removeprefix("http://"))


async def test_refusals_are_word_for_word() -> None:
    async with workspace_world() as view_context:
        host = view_context.world.url.removeprefix("http://")
        for name, example in EXAMPLES.items():
            status, headers, body = await replay(view_context, for_our_server(view_context, example))
            assert status == int(example["response_head"].split(" ")[1]), name
            # We are one minor version ahead of the recorded server.
            expected = (
                example["response_body"].replace("version 2.10,", "version 2.11,").replace("127.0.0.1:7080", host)
            )
            assert body.strip() == expected.strip(), name
            recorded_head = example["response_head"].lower()
            for field in ("allow", "sec-websocket-version"):
                assert (f"\r\n{field}: " in recorded_head) == (field in headers), name
