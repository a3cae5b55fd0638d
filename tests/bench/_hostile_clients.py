"""Clients that want to keep a server from serving others; each attacks from one address until its time is over.

python -m tests.bench._hostile_clients ATTACK ADDRESS SECONDS [TOKEN] runs one of `ATTACKS`. It is a process of its own,
so that the user whose requests are measured does not wait for the attacker's event loop.
"""

from __future__ import annotations

import io
import json
import os
import sys
import tarfile
from collections.abc import Awaitable, Callable
from contextlib import suppress

import trio

from coder.mesh.core.crypto.box import SharedBox
from coder.mesh.core.crypto.keys import PrivateKey
from coder.mesh.core.wire import derp, derp_info, derp_reader
from tests.bench._requests import Client

ATTACKER = "127.0.0.66"
CONNECTIONS, IDLE, RELAY_CLIENTS = 40, 2000, 40
TINY = b"1\r\n \r\n" * 60_000
POST = b"POST /api/v2/users/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
GET = b"GET /api/v2/buildinfo HTTP/1.1\r\nHost: x\r\n\r\n"
BROKEN = (trio.BrokenResourceError, trio.ClosedResourceError, OSError)
Attack = Callable[[str, str], Awaitable[None]]


async def _connect(address: str, source: str = ATTACKER) -> trio.SocketStream:
    host, _, port = address.rpartition(":")
    return await trio.open_tcp_stream(host, int(port), local_address=source)


async def _again(address: str, once: Callable[[trio.SocketStream], Awaitable[None]], pause: float = 0.0) -> None:
    """Connects, does it once, leaves; and again."""
    while True:
        with suppress(*BROKEN):
            stream = await _connect(address)
            try:
                with trio.move_on_after(10):
                    await once(stream)
            finally:
                await trio.aclose_forcefully(stream)
        await trio.sleep(pause)


async def _many(address: str, once: Callable[[trio.SocketStream], Awaitable[None]], pause: float = 0.0) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(CONNECTIONS):
            nursery.start_soon(_again, address, once, pause)


async def tiny_chunks(address: str, _token: str) -> None:
    async def once(stream: trio.SocketStream) -> None:
        await stream.send_all(POST + b"Transfer-Encoding: chunked\r\n\r\n" + TINY)

    await _many(address, once)


async def pipelined(address: str, _token: str) -> None:
    async def once(stream: trio.SocketStream) -> None:
        await stream.send_all(GET * 1500)

    await _many(address, once)


async def churn(address: str, _token: str) -> None:
    async def once(stream: trio.SocketStream) -> None:
        await stream.send_all(GET)

    await _many(address, once)


async def slow_bodies(address: str, _token: str) -> None:
    async def once(stream: trio.SocketStream) -> None:
        await stream.send_all(POST + b"Content-Length: 60000\r\n\r\n")
        while True:
            await stream.send_all(b" ")
            await trio.sleep(0.1)

    async with trio.open_nursery() as nursery:
        for _ in range(500):
            nursery.start_soon(_again, address, once, 0.1)


async def slow_heads(address: str, _token: str) -> None:
    async def once(stream: trio.SocketStream) -> None:
        await stream.send_all(b"GET / HTTP/1.1\r\n")
        while True:
            await stream.send_all(b"X-A: b\r\n")
            await trio.sleep(0.2)

    async with trio.open_nursery() as nursery:
        for _ in range(500):
            nursery.start_soon(_again, address, once, 0.1)


async def idle(address: str, _token: str) -> None:
    """More connections than the server may have descriptors, from four addresses."""

    async def hold(number: int) -> None:
        while True:
            with suppress(*BROKEN):
                stream = await _connect(address, f"127.0.0.{66 + number % 4}")
                try:
                    await stream.receive_some()
                finally:
                    await trio.aclose_forcefully(stream)
            await trio.sleep(0.5)

    async with trio.open_nursery() as nursery:
        for number in range(IDLE):
            nursery.start_soon(hold, number)


async def _relayed(address: str, frames_of: Callable[[PrivateKey], bytes], keys: list[PrivateKey]) -> None:
    async def client(key: PrivateKey) -> None:
        stream = await _connect(address)
        await stream.send_all(b"GET /derp HTTP/1.1\r\nHost: x\r\nUpgrade: DERP\r\nConnection: Upgrade\r\n\r\n")
        received = b""
        while b"\r\n\r\n" not in received:
            received += await stream.receive_some()
        reader = derp_reader.FrameReader()
        frames = list(reader.feed_untrusted(received.partition(b"\r\n\r\n")[2]))
        while not frames:
            frames += reader.feed_untrusted(await stream.receive_some())
        server = derp_reader.parse_untrusted(*frames[0])
        assert isinstance(server, derp.ServerKey)
        info = derp_info.seal_client_info(
            SharedBox(key, server.key), key.public, os.urandom(24), derp_info.ClientInfo()
        )
        await stream.send_all(info.encode())
        flood = frames_of(key)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_read, stream)
            while True:
                await stream.send_all(flood)

    async def again(key: PrivateKey) -> None:
        while True:
            with suppress(*BROKEN, ExceptionGroup, StopIteration):
                await client(key)
            await trio.sleep(0.2)

    async with trio.open_nursery() as nursery:
        for key in keys:
            nursery.start_soon(again, key)


async def _read(stream: trio.SocketStream) -> None:
    while await stream.receive_some(1 << 16):
        pass


def _keys() -> list[PrivateKey]:
    return [PrivateKey.generate(os.urandom) for _ in range(RELAY_CLIENTS)]


async def relay_mutual(address: str, _token: str) -> None:
    keys = _keys()
    flood = b"".join(derp.SendPacket(key.public, bytes(10)).encode() for key in keys) * 50
    await _relayed(address, lambda _: flood, keys)


async def relay_unknown(address: str, _token: str) -> None:
    flood = b"".join(derp.SendPacket(key.public, bytes(10)).encode() for key in _keys()) * 50
    await _relayed(address, lambda _: flood, _keys())


async def relay_pings(address: str, _token: str) -> None:
    await _relayed(address, lambda _: derp.DerpPing(bytes(8)).encode() * 5000, _keys())


async def expressions(address: str, token: str) -> None:
    """A template author's: each version describes gigabytes in a few letters."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        text = b'data "coder_workspace_tags" "t" {\n  tags = { a = indent(2147483648, "a\\nb") }\n}\n'
        entry = tarfile.TarInfo("main.tf")
        entry.size = len(text)
        tar.addfile(entry, io.BytesIO(text))
    async with Client(address, token) as client:
        head = "POST /api/v2/files HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-tar\r\n"
        head += f"Coder-Session-Token: {token}\r\nContent-Length: {len(packed.getvalue())}\r\n\r\n"
        stream = await _connect(address)
        await stream.send_all(head.encode() + packed.getvalue())
        answer = await stream.receive_some()
        await stream.aclose()
        file = json.loads(answer.partition(b"\r\n\r\n")[2])["hash"]
        organization = (await client.get("/api/v2/organizations/default"))["id"]
        while True:
            body = {"file_id": file, "provisioner": "terraform", "storage_method": "file"}
            with suppress(RuntimeError):
                await client.post(f"/api/v2/organizations/{organization}/templateversions", body)


ATTACKS: dict[str, tuple[str, Attack]] = {
    "tiny-chunks": ("bodies in chunks of one byte", tiny_chunks),
    "pipelined": ("pipelined requests of clients that leave", pipelined),
    "churn": ("connections that come and go", churn),
    "slow-bodies": ("500 slow bodies", slow_bodies),
    "slow-heads": ("500 slow heads", slow_heads),
    "idle": ("idle connections beyond the descriptors", idle),
    "relay-mutual": ("40 relay clients that send to one another", relay_mutual),
    "relay-unknown": ("40 relay clients that send to unknown keys", relay_unknown),
    "relay-pings": ("40 relay clients that ping", relay_pings),
    "expressions": ("template versions that describe gigabytes", expressions),
}


async def _run(name: str, address: str, seconds: float, token: str) -> None:
    with trio.move_on_after(seconds):
        await ATTACKS[name][1](address, token)


if __name__ == "__main__":
    trio.run(_run, sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4] if len(sys.argv) > 4 else "")
