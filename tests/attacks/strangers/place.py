"""The deployment that is attacked: a server of several processes, an agent, a workspace proxy, a hostile application.

    with open_place(Shape("of several processes, with TLS", processes=2, tls=True)) as place:
        place.pids()            # every process by name
        place.answer = b"…"     # what the hostile application answers next

All are real processes on loopback. The victim is a user who asks `GET users/me` from another address. With TLS, server
and workspace proxy end it themselves, and attacker and victim use it.
"""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.kit.free_ports import free_port
from tests.kit.network.namespace_deployment import descendants, name_of
from tests.kit.server.server_process import Loopback, end, open_loopback
from tests.kit.stand_ins.certificates import Authority

EMAIL, PASSWORD = "ana@example.com", "SomeSecurePassword!"
MACHINE = "mach"
ATTACKER, VICTIM = "127.0.0.66", "127.0.0.2"
CONTEXT = ssl.create_default_context()
CONTEXT.check_hostname, CONTEXT.verify_mode = False, ssl.CERT_NONE
SERVER_NAMES = ("api-1", "api-2", "relay", "edge", "loops")
PATIENCE = 60.0
PAUSE = 0.002
QUIET = 0.04
"A peer that is silent so long has answered."
LAST = 10.0
"Seconds in which a peer ends a connection that the attacker has half closed."
RAW = b"<beneath TLS>"
HANGS = b"<the connection stayed open>"


@dataclass(frozen=True, slots=True)
class Shape:
    """How the deployment is started."""

    name: str
    processes: int = 2
    tls: bool = False


class Address(NamedTuple):
    """Where a try goes."""

    host: str
    port: int
    tls: bool = False


class TlsStream(ssl.SSLSocket):
    """TLS whose half close is TCP's: the peer's answer is still decrypted."""

    def shutdown(self, how: int) -> None:
        socket.socket.shutdown(self, how)


CONTEXT.sslsocket_class = TlsStream


@dataclass
class HostileApp:
    """An application in the workspace: answers each request with `pieces`, then does what `then` says."""

    port: int = 0
    pieces: tuple[bytes, ...] = (b"HTTP/1.1 204 No Content\r\n\r\n",)
    then: str = "close"
    "close, reset, or hold (until the peer ends)."
    repeat: int = 1
    "How often the last piece is sent."
    received: list[bytes] = field(default_factory=list)
    "Beginnings of the requests."
    listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0), backlog=256))

    def __post_init__(self) -> None:
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                stream, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(stream,), daemon=True).start()

    def _answer(self, stream: socket.socket) -> None:
        stream.settimeout(10)
        with contextlib.suppress(OSError), stream:
            if self.then != "first":
                self.received.append(stream.recv(65536))
            for piece in self.pieces[:-1]:
                stream.sendall(piece)
            for _ in range(self.repeat):
                stream.sendall(self.pieces[-1])
            if self.then == "reset":
                reset(stream)
            elif self.then == "hold":
                while stream.recv(65536):
                    pass

    def close(self) -> None:
        # shutdown wakes the thread that accepts; closing alone does not.
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def reset(stream: socket.socket) -> None:
    """Close with RST."""
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    stream.close()


@dataclass
class Place:
    server: Loopback
    app: HostileApp
    shape: Shape
    address: Address
    certificate: tuple[str, str]
    "Files of certificate and key."
    proxy_address: Address = field(default_factory=lambda: Address("", 0))
    proxy_url: str = ""
    proxy: subprocess.Popen[bytes] | None = None
    agent_id: str = ""
    agent_token: str = ""
    user_token: str = ""
    "Of the user whose requests are measured."

    def pids(self) -> dict[str, int]:
        """Every process by name."""
        assert self.server.server is not None
        assert self.proxy is not None
        named = {name_of(pid): pid for pid in descendants(self.server.server.pid)}
        pids = {name: pid for name, pid in named.items() if name in SERVER_NAMES}
        pids["server"] = self.server.server.pid
        pids["wsproxy"] = self.proxy.pid
        if self.server.agents:
            pids["agent"] = self.server.agents[-1].pid
        return pids

    def temporary_files(self) -> set[str]:
        return {str(path) for path in (self.server.folder / "tmp").rglob("*")}

    def app_host(self, domain: str = "apps.test") -> str:
        return f"{self.app.port}--main--{MACHINE}--ana.{domain}"


def connect(address: Address, source: str = ATTACKER, timeout: float = 10.0) -> socket.socket:
    stream = socket.create_connection(address[:2], timeout, (source, 0))
    return CONTEXT.wrap_socket(stream) if address.tls else stream


def exchange(address: Address, head: bytes, source: str = ATTACKER, timeout: float = 10.0) -> bytes:
    """Send a request and return everything until the peer closes; `Connection: close` is the caller's."""
    with connect(address, source, timeout) as stream:
        stream.sendall(head)
        return read_all(stream)


def read_all(stream: socket.socket, limit: int = 1 << 22) -> bytes:
    """Return what arrives until the end, a reset or a timeout."""
    data = b""
    with contextlib.suppress(OSError):
        while len(data) < limit and (piece := stream.recv(65536)):
            data += piece
    return data


def send(
    stream: socket.socket, pieces: Sequence[bytes], then: str, held: list[socket.socket], *, first: float = QUIET
) -> bytes:
    """Send pieces and end as `then` of a kind says; return the answer, with `HANGS` behind it if no end followed.

    `first` are the seconds that an answer's first byte may take.
    """
    try:
        for piece in pieces:
            if piece.startswith(RAW):
                socket.socket.sendall(stream, piece.removeprefix(RAW))
            else:
                stream.sendall(piece)
            if len(pieces) > 1:
                time.sleep(PAUSE)
    except OSError:
        stream.close()
        return b""  # the peer ended the connection: that is an answer
    if then == "hold":
        held.append(stream)
        return b""
    if then == "reset":
        reset(stream)
        return b""
    with stream:
        if then == "close":
            return b""
        stream.settimeout(first)
        answer = b""
        with contextlib.suppress(OSError):
            answer = stream.recv(65536)
        stream.settimeout(QUIET)
        answer += read_all(stream)
        with contextlib.suppress(OSError):
            stream.shutdown(socket.SHUT_WR)
        stream.settimeout(LAST)
        try:
            while piece := stream.recv(65536):
                answer += piece
        except TimeoutError:
            answer += HANGS
        except OSError:
            pass  # a reset is an end
        return answer


@contextlib.contextmanager
def open_place(shape: Shape, folder: Path) -> Iterator[Place]:
    """Start everything; end it after the block. `folder`: of the certificates."""
    app = HostileApp()
    certificate = Authority(folder).issue("localhost")
    secure = Address("127.0.0.1", free_port(), tls=True)
    options = ["--processes", str(shape.processes), "--wildcard-access-url", "*.apps.test"]
    options += ["--dangerous-disable-rate-limits", *(_tls_options(secure, certificate) if shape.tls else [])]

    def own_temporary_folder(server: Loopback) -> None:
        (server.folder / "tmp").mkdir(mode=0o777)
        (server.folder / "tmp").chmod(0o777)  # Postgres is another user
        server.variables["TMPDIR"] = str(server.folder / "tmp")

    with open_loopback(*options, before=own_temporary_folder) as server, contextlib.closing(app):
        plain = Address("127.0.0.1", int(server.url.rpartition(":")[2]))
        place = Place(server, app, shape, secure if shape.tls else plain, certificate)
        try:
            _fill(place)
            yield place
        finally:
            if place.proxy is not None:
                end(place.proxy)


def _tls_options(address: Address, certificate: tuple[str, str]) -> list[str]:
    files = ["--tls-cert-file", certificate[0], "--tls-key-file", certificate[1]]
    return ["--tls-enable", "--tls-address", f"{address.host}:{address.port}", *files]


def _fill(place: Place) -> None:
    server = place.server
    user = {"email": EMAIL, "username": "ana", "name": "Ana", "password": PASSWORD, "trial": False}
    server.request("POST", "/api/v2/users/first", user)
    server.sign_in(EMAIL, PASSWORD)
    place.user_token = server.request("POST", "/api/v2/users/login", {"email": EMAIL, "password": PASSWORD})[
        "session_token"
    ]
    _start_proxy(place)
    server.push_external_template()
    server.create_external(MACHINE)
    shown = server.coder("external-workspaces", "agent-instructions", MACHINE, "--output=text")
    found = re.search(r'CODER_AGENT_TOKEN="([^"]+)"', shown)
    assert found is not None, shown
    place.agent_token = found[1]
    start_agent(place)
    wait(lambda: _agent(place)["status"] == "connected", "the agent did not connect")
    place.agent_id = _agent(place)["id"]
    wait(lambda: b" 204 " in _visit(place), "the application was not reached")


def start_agent(place: Place) -> None:
    server = place.server
    folder = str(server.folder / "agent")
    env = {"CODER_AGENT_TOKEN": place.agent_token, "CODER_AGENT_URL": server.url, **server.variables}
    env |= {"CODER_AGENT_LOG_DIR": folder, "CODER_AGENT_SCRIPT_DATA_DIR": folder}
    server.agents.append(server.spawn("agent", "agent", env=env))


def _start_proxy(place: Place) -> None:
    server = place.server
    made = server.request(
        "POST", "/api/v2/workspaceproxies", {"name": "far", "display_name": "", "icon": ""}, server.token
    )
    place.proxy_url = f"http://127.0.0.1:{free_port()}"
    place.proxy_address = Address("127.0.0.1", int(place.proxy_url.rpartition(":")[2]))
    options = []
    if place.shape.tls:
        place.proxy_address = Address("127.0.0.1", free_port(), tls=True)
        options = _tls_options(place.proxy_address, place.certificate)
    place.proxy = server.spawn(
        "proxy",
        "workspace-proxy",
        "server",
        "--http-address",
        place.proxy_url.removeprefix("http://"),
        "--access-url",
        place.proxy_url,
        "--wildcard-access-url",
        "*.far.test",
        "--primary-access-url",
        server.url,
        "--dangerous-disable-rate-limits",
        *options,
        env={"CODER_PROXY_SESSION_TOKEN": made["proxy_token"], **server.variables},
    )

    def answers() -> bool:
        with contextlib.suppress(OSError):
            return b" 200 " in exchange(place.proxy_address, b"GET /healthz HTTP/1.0\r\n\r\n")[:20]
        return False

    wait(answers, "the proxy did not start")


def _agent(place: Place) -> dict[str, str]:
    path = f"/api/v2/users/me/workspace/{MACHINE}"
    resources = place.server.request("GET", path, None, place.server.token)["latest_build"]["resources"]
    agent: dict[str, str] = next(agent for resource in resources for agent in resource.get("agents") or [])
    return agent


def _visit(place: Place) -> bytes:
    head = f"GET / HTTP/1.1\r\nHost: {place.app_host()}\r\nConnection: close\r\n"
    head += f"Coder-Session-Token: {place.user_token}\r\n\r\n"
    return exchange(place.address, head.encode(), timeout=60)[:20]


def wait(condition: object, message: str, seconds: float = PATIENCE) -> None:
    """Wait until `condition()` is true."""
    assert callable(condition)
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, message
        time.sleep(0.05)
