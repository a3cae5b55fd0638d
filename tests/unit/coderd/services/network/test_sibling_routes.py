"""Requests that another process answers, and connections that travel."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import h11
import pytest
import trio
import trio.testing

from coder.appproxy.http.listener import FindOther, HttpServer, PassOn
from coder.coderd.services.foundation.sibling_messages import TIMEOUT, SiblingMessage, send_message, serve_messages
from coder.coderd.services.foundation.this_process import Sibling, ThisProcess, instance_id
from coder.coderd.services.network.sibling_routes import (
    _AT_ONCE,
    connection_handler,
    other_finder,
    stream_mark,
)
from coder.coderd.services.network.sibling_routes import _sibling_for as sibling_for
from coder.tailnet.relay_mesh import REPLICA_HEADER

MACHINE = uuid4()
SIBLINGS = {
    "api-2": Sibling("api-2", instance_id(MACHINE, 1), "", ("http",)),
    "relay": Sibling("relay", instance_id(MACHINE, 2), "", ("relay",)),
    "loops": Sibling("loops", instance_id(MACHINE, 4), "", ("loops", "daemons", "metrics")),
    "edge": Sibling("edge", instance_id(MACHINE, 3), "", ("apps", "wireguard")),
}
AGENT = "0e0e0e0e-0000-4000-8000-000000000000"
ROUTES = (
    # path, over TLS, process; empty: this one
    ("/api/v2/users/me", False, ""),
    ("/derp", False, "relay"),
    ("/derp?x=1", False, "relay"),
    ("/derp", True, ""),
    ("/derp/latency-check", False, ""),
    (f"/derp/streams/0002{'0' * 28}", False, "relay"),
    (f"/derp/streams/0002{'0' * 28}", True, "relay"),
    (f"/derp/streams/0000{'0' * 28}", False, ""),
    (f"/derp/streams/0009{'0' * 28}", False, ""),
    (f"/derp/streams/0004{'0' * 28}", False, ""),
    ("/derp/streams/xyz", False, ""),
    (f"/api/v2/workspaceagents/{AGENT}/pty?x=1", False, "edge"),
    (f"/api/v2/workspaceagents/{AGENT}/pty", True, ""),
    (f"/api/v2/workspaceagents/{AGENT}/coordinate", False, ""),
    ("/@ana/w/apps/code/", False, "edge"),
    ("/@ana/w/apps/code/", True, ""),
    ("/api/v2/wireguard", True, "edge"),
    ("/api/v2/users/me/wireguard-clients", False, "edge"),
    ("/api/v2/users/me/wireguard-clients/phone", True, "edge"),
    ("/api/v2/users/me/keys", False, ""),
)


def head(path: str, **headers: str) -> h11.Request:
    return h11.Request(method="GET", target=path, headers=[("Host", "x"), *headers.items()])


def takes_app(request: h11.Request) -> bool:
    return request.target.startswith(b"/@")


def place_of(number: int = 0, *duties: str) -> ThisProcess:
    process = ThisProcess("api-1", instance_id(MACHINE, number), frozenset(duties or {"http"}), 4)
    process.update(SIBLINGS.values())
    return process


@pytest.mark.parametrize(("path", "secure", "process"), ROUTES)
def test_request_goes_to_its_process(path: str, secure: bool, process: str) -> None:
    found = sibling_for(place_of(), head(path), secure, takes_app(head(path)))
    assert (found.name if found is not None else "") == process


@pytest.mark.parametrize("secure", [False, True])
def test_relay_link_reaches_named_process(secure: bool) -> None:
    request = head("/derp", **{REPLICA_HEADER: str(instance_id(MACHINE, 1))})
    found = sibling_for(place_of(), request, secure, is_app=False)
    assert found is SIBLINGS["api-2"]
    elsewhere = head("/derp", **{REPLICA_HEADER: str(uuid4())})
    assert sibling_for(place_of(2, "relay"), elsewhere, secure, is_app=False) is None


def test_absent_process_leaves_request_here() -> None:
    process = place_of()
    process.update([])
    assert all(sibling_for(process, head(path), secure, takes_app(head(path))) is None for path, secure, _ in ROUTES)


def test_stream_ids_name_their_process() -> None:
    assert stream_mark(ThisProcess()) == ""
    assert stream_mark(place_of(0x2A)) == "002a"


def test_only_process_passes_nothing_on() -> None:
    assert other_finder(ThisProcess()) is None


def naming(name: str) -> Any:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while (message := await receive())["type"] == "http.request":
            body += message["body"]
            if not message["more_body"]:
                break
        text = f"{name} {scope['client'][0]} {scope['path']} {body.decode()}".encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(text))]})
        await send({"type": "http.response.body", "body": text, "more_body": False})

    return application


async def no_links(*_: Any) -> None:
    raise AssertionError


@contextlib.asynccontextmanager
async def two_processes(folder: Path) -> AsyncIterator[tuple[ThisProcess, int]]:
    """Yield the place of the accepting process, and its port; its sibling has the applications."""
    path = str(folder / "edge.sock")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen(8)
    listener.setblocking(False)
    process = ThisProcess("api-1", instance_id(MACHINE, 0), frozenset({"http"}), 2)
    process.update([Sibling("edge", instance_id(MACHINE, 3), path, ("apps",))])
    front = HttpServer(
        naming("front"), lambda _: False, no_links, find_other=other_finder(process), is_exchange=takes_app
    )
    edge = HttpServer(naming("edge"), lambda _: False, no_links)
    (tcp,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    stopping = trio.Event()
    async with trio.open_nursery() as nursery:
        await nursery.start(edge.serve, [], stopping)
        await nursery.start(serve_messages, listener, {"connection": connection_handler(edge)})
        await nursery.start(front.serve, [tcp], stopping)
        with trio.fail_after(60):
            yield process, tcp.socket.getsockname()[1]
        nursery.cancel_scope.cancel()


async def exchange(stream: trio.SocketStream, path: str, body: str = "") -> str:
    request = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    await stream.send_all(request.encode())
    data = b""
    while True:
        data += await stream.receive_some(1 << 16)
        before, separator, after = data.partition(b"\r\n\r\n")
        if separator:
            fields = dict(line.lower().split(b": ", 1) for line in before.split(b"\r\n")[1:])
            if len(after) == int(fields[b"content-length"]):
                return after.decode()


async def test_connection_travels_with_read_bytes(tmp_path: Path) -> None:
    async with two_processes(tmp_path) as (_, port), await trio.open_tcp_stream("127.0.0.1", port) as stream:
        assert await exchange(stream, "/one", "a") == "front 127.0.0.1 /one a"
        assert await exchange(stream, "/@app", "b" * 1000) == f"edge 127.0.0.1 /@app {'b' * 1000}"
        assert await exchange(stream, "/two", "c") == "edge 127.0.0.1 /two c"


async def test_unreachable_process_leaves_request_here(tmp_path: Path) -> None:
    async with two_processes(tmp_path) as (process, port):
        process.update([Sibling("edge", instance_id(MACHINE, 3), str(tmp_path / "gone.sock"), ("apps",))])
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            assert await exchange(stream, "/@app", "a") == "front 127.0.0.1 /@app a"
            assert await exchange(stream, "/one", "b") == "front 127.0.0.1 /one b"


@contextlib.contextmanager
def silent_process(folder: Path, process: ThisProcess) -> Iterator[socket.socket]:
    """Give a process a sibling with the relay that takes no messages; yield its listener."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(folder / "relay.sock"))
        listener.listen(512)
        listener.setblocking(False)
        relay = Sibling("relay", instance_id(MACHINE, 2), str(folder / "relay.sock"), ("relay",))
        process.update([*process.siblings.values(), relay])
        yield listener


class HandedOver:
    """A connection, and what became of it."""

    def __init__(self, process: ThisProcess, finder: FindOther, path: str) -> None:
        ours, self.client = socket.socketpair()
        pass_on = finder(head(path), False, takes_app(head(path)))
        assert pass_on is not None
        self._pass_on: PassOn = pass_on
        self._stream = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
        self.result: bool | None = None
        self.scope = trio.CancelScope()

    async def run(self) -> None:
        with self.client, self.scope:
            self.result = await self._pass_on(self._stream, b"GET", ("192.0.2.1", 1), False)
        if not self.result:
            await trio.aclose_forcefully(self._stream)


async def test_silent_process_delays_no_other(tmp_path: Path, autojump_clock: Any) -> None:
    async with two_processes(tmp_path) as (process, _):
        finder = other_finder(process)
        assert finder is not None
        with silent_process(tmp_path, process):
            began = trio.current_time()
            relayed = [HandedOver(process, finder, "/derp") for _ in range(_AT_ONCE + 8)]
            async with trio.open_nursery() as nursery:
                for connection in relayed:
                    nursery.start_soon(connection.run)
                await trio.testing.wait_all_tasks_blocked()
                app = HandedOver(process, finder, "/@app")
                await app.run()
                assert (app.result, trio.current_time()) == (True, began)
                assert not process.overload.is_set("")
            assert {connection.result for connection in relayed} == {False}, "this process serves them"
            assert trio.current_time() <= began + 2 * TIMEOUT
            assert process.overload.is_set(""), "clients must not take it for a middlebox"


async def test_client_that_left_is_not_handed_over(tmp_path: Path) -> None:
    process = place_of()
    finder = other_finder(process)
    assert finder is not None
    process.update([])
    with silent_process(tmp_path, process) as listener:
        first = [HandedOver(process, finder, "/derp") for _ in range(_AT_ONCE)]
        last = HandedOver(process, finder, "/derp")
        async with trio.open_nursery() as nursery:
            for connection in first:
                nursery.start_soon(connection.run)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(last.run)
            await trio.testing.wait_all_tasks_blocked()
            last.client.close()
            for connection in first:
                connection.scope.cancel()
        arrived = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                listener.accept()[0].close()
                arrived += 1
        assert (last.result, arrived) == (True, len(first))


async def test_descriptor_that_is_no_socket_is_closed(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as pipe:
        async with two_processes(tmp_path) as (process, _):
            path = next(iter(process.siblings.values())).socket_path
            await trio.aclose_forcefully(await send_message(path, SiblingMessage("connection"), b"", writing))
            os.close(writing)
            await trio.lowlevel.wait_readable(pipe)
            assert pipe.read() == b"", "a copy of it is still open"
