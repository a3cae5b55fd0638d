"""Speed test server (overlay port 3), compatible with Tailscale's tools.

One JSON line each way, then 2 MiB blocks of random bytes until the time is over
(docs/protocol/agent-services.md#speed-test).
"""

from __future__ import annotations

import json
import os

import trio

VERSION = 2
BLOCK = 2 << 20
DOWNLOAD = 0
MAX_SECONDS = 60.0
"Seconds that one test may use the path (ours)."


async def serve_speedtest(stream: trio.abc.Stream) -> None:
    """Run one test. Never raises for a peer's misbehaviour."""
    async with stream:
        try:
            line, rest = await _read_line(stream)
            refusal, config = read_request_untrusted(line)
            if refusal:
                await stream.send_all(json.dumps({"error": refusal}, separators=(",", ":")).encode() + b"\n")
                return
            seconds = min(MAX_SECONDS, config["time"] / 1e9)
            await stream.send_all(b"{}\n")
            if config["direction"] == DOWNLOAD:
                await send_blocks(stream, seconds)
            else:
                await receive_blocks(stream, seconds * 4, len(rest))
        except (ValueError, KeyError, TypeError, trio.BrokenResourceError, trio.ClosedResourceError):
            return


def read_request_untrusted(line: bytes) -> tuple[str, dict[str, int]]:
    """Return (reason for the rejection, in the words of Tailscale's server; "" when it is valid, the request)."""
    try:
        config = json.loads(line)
    except (ValueError, RecursionError):
        first = line.decode("utf-8", "replace").lstrip()[:1]
        return f"invalid character {first!r} looking for beginning of value" if first else "unexpected EOF", {}
    if not isinstance(config, dict):
        return "the request is not a JSON object", {}
    request = {name: config.get(name, 0) for name in ("version", "time", "direction")}
    if not all(isinstance(value, int) and abs(value) < 1 << 63 for value in request.values()):
        return "the request's fields are not numbers", {}
    if request["version"] != VERSION:
        return f"version mismatch! Server is version {VERSION}, client is version {request['version']}", {}
    return "", request


async def send_blocks(stream: trio.abc.SendStream, seconds: float) -> int:
    """Send random blocks for `seconds`; return the bytes sent."""
    block = os.urandom(BLOCK)
    sent = 0
    deadline = trio.current_time() + seconds
    while trio.current_time() < deadline:
        await stream.send_all(block)
        sent += BLOCK
    return sent


async def receive_blocks(stream: trio.abc.ReceiveStream, limit: float, already: int = 0) -> int:
    """Read to the end of the stream, at most `limit` seconds; return the bytes read."""
    received = already
    with trio.move_on_after(limit):
        while chunk := await stream.receive_some(BLOCK):
            received += len(chunk)
    return received


async def _read_line(stream: trio.abc.ReceiveStream) -> tuple[bytes, bytes]:
    data = b""
    while b"\n" not in data:
        chunk = await stream.receive_some(4096)
        if not chunk or len(data) > 4096:
            raise ValueError("no request line")
        data += chunk
    line, _, rest = data.partition(b"\n")
    return line, rest
