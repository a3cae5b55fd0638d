"""What an application of a workspace is served like: through the server's proxy, and through `coder port-forward`.

The application is a process of its own on the workspace's machine, which is this one.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import http.client
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import trio
import wsproto
from playwright.sync_api import BrowserContext
from wsproto import events

from tests.kit.dashboard.pages import Showcase
from tests.kit.free_ports import free_port
from tests.kit.server.server_process import end
from tests.kit.stand_ins.scripted_http_servers import app_in_a_thread

PIECE = 1 << 20
PATIENCE = 60.0
WILDCARD = "apps.localhost"
# Bytes without a file behind them, as many as the path says in MiB.
_SENDER = f"""
import http.server
class Sender(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        count = int(self.path.strip("/"))
        self.send_response(200)
        self.send_header("Content-Length", str(count * {PIECE}))
        self.end_headers()
        for _ in range(count):
            self.wfile.write(bytes({PIECE}))
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sender)
print(server.server_port, flush=True)
server.serve_forever()
"""


@dataclass(frozen=True)
class Way:
    """To an application: where one dials, and the fields by which it is let through."""

    address: tuple[str, int]
    fields: dict[str, str]

    def seconds(self, mebibytes: int) -> float:
        """For a body of that size."""
        connection = http.client.HTTPConnection(*self.address, timeout=PATIENCE)
        with contextlib.closing(connection):
            began = time.perf_counter()
            connection.request("GET", f"/{mebibytes}", headers=self.fields)
            answer = connection.getresponse()
            assert answer.status == 200, (answer.status, answer.read(500))
            left = mebibytes * PIECE
            while part := answer.read(PIECE):
                left -= len(part)
            assert left == 0
            return time.perf_counter() - began


def through_proxy(shown: Showcase, port: int) -> Way:
    """By a host name of its own, which needs no entry in the template."""
    server = urlsplit(shown.url)
    host = f"{port}--main--{shown.built}--ana.{WILDCARD}:{server.port}"
    return Way(("127.0.0.1", server.port or 80), {"Host": host, "Coder-Session-Token": shown.server.token})


@contextlib.contextmanager
def through_forward(shown: Showcase, port: int) -> Iterator[Way]:
    local = free_port()
    env = {"CODER_URL": shown.url, "CODER_SESSION_TOKEN": shown.server.token, "CODER_NO_COMMAND_SERVER": "1"}
    process = shown.server.spawn("forward", "port-forward", shown.built, "--tcp", f"{local}:{port}", env=env)
    way = Way(("127.0.0.1", local), {})
    try:
        until(lambda: way.seconds(0))
        yield way
    finally:
        end(process)


def until(works: Callable[[], object]) -> None:
    limit = time.monotonic() + PATIENCE
    while True:
        try:
            works()
            return
        except (OSError, http.client.HTTPException, AssertionError):
            if time.monotonic() > limit:
                raise
        time.sleep(0.2)


def rates(shown: Showcase, mebibytes: int, runs: int) -> tuple[float, float]:
    """MiB a second through the proxy and through the command: medians of runs that take turns."""
    sender = subprocess.Popen([sys.executable, "-c", _SENDER], stdout=subprocess.PIPE)
    try:
        assert sender.stdout is not None
        port = int(sender.stdout.readline())
        proxied = through_proxy(shown, port)
        with through_forward(shown, port) as forwarded:
            until(lambda: proxied.seconds(1))
            both = [(proxied.seconds(mebibytes), forwarded.seconds(mebibytes)) for _ in range(runs)]
    finally:
        sender.kill()
        sender.communicate()
    took = [statistics.median(column) for column in zip(*both, strict=True)]
    return mebibytes / took[0], mebibytes / took[1]


def as_a_browser(context: BrowserContext, way: Way) -> Way:
    """By the session a browser gets that opens the application, as its pages' WebSockets have it."""
    origin = f"http://{way.fields['Host']}"
    page = context.new_page()
    page.goto(f"{origin}/echo")
    page.close()
    cookies = "; ".join(f"{one.get('name')}={one.get('value')}" for one in context.cookies(origin))
    return Way(way.address, {"Host": way.fields["Host"], "Origin": origin, "Cookie": cookies})


def sockets_at_once(shown: Showcase, context: BrowserContext, count: int) -> tuple[int, list[float]]:
    """How many were open together and had their message back, and how long each message took there and back (ms)."""
    with app_in_a_thread() as app:
        way = as_a_browser(context, through_proxy(shown, app.port))
        with concurrent.futures.ThreadPoolExecutor(1) as beside:  # Playwright's loop is in this thread
            return beside.submit(trio.run, _together, way, count).result()


async def _together(way: Way, count: int) -> tuple[int, list[float]]:
    took: list[float] = []
    opened = 0
    everybody = trio.Event()

    async def one() -> None:
        nonlocal opened
        async with await trio.open_tcp_stream(*way.address) as stream:
            peer = wsproto.WSConnection(wsproto.ConnectionType.CLIENT)
            fields = [(name.encode(), value.encode()) for name, value in way.fields.items() if name != "Host"]
            request = events.Request(host=way.fields["Host"], target="/ws", extra_headers=fields)
            await stream.send_all(peer.send(request))
            await _next(stream, peer, events.AcceptConnection)
            opened += 1
            if opened == count:
                everybody.set()
            await everybody.wait()
            began = time.perf_counter()
            await stream.send_all(peer.send(events.TextMessage("there and back")))
            await _next(stream, peer, events.TextMessage)
            took.append((time.perf_counter() - began) * 1000)

    with trio.move_on_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            for _ in range(count):
                nursery.start_soon(one)
    return len(took), took


async def _next(stream: trio.SocketStream, peer: wsproto.WSConnection, kind: type[events.Event]) -> None:
    while True:
        peer.receive_data(await stream.receive_some(65536) or None)
        for event in peer.events():
            if isinstance(event, kind):
                return
            assert not isinstance(event, events.RejectConnection | events.CloseConnection), event
