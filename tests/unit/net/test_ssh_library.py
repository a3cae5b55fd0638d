"""Forwarded connections whose target sends first lose nothing; a connection keeps one timer for silence."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from coder.net.ssh_library import asyncssh


class Sink:
    """Receiver of a forwarder's data."""

    def __init__(self) -> None:
        self.got: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.got.append(data)

    def write_eof(self) -> None:
        self.got.append(b"<eof>")

    def get_extra_info(self, _name: str) -> Any:
        return None

    def close(self) -> None:
        self.is_closed = True


def forwarder(peer: Any = None) -> Any:
    return asyncssh.forward.SSHForwarder(peer)


def test_early_bytes_kept_in_order() -> None:
    target, channel = forwarder(), Sink()
    target.connection_made(Sink())
    target.data_received(b"220 hello, ")  # no receiver yet
    session = forwarder(target)
    target.data_received(b"this is mail\r\n")  # the other end is known, but not open
    session.connection_made(channel)
    target.data_received(b"250 ok\r\n")
    assert b"".join(channel.got) == b"220 hello, this is mail\r\n250 ok\r\n"


def test_early_eof_arrives() -> None:
    target, channel = forwarder(), Sink()
    target.connection_made(Sink())
    target.data_received(b"busy\n")
    target.eof_received()
    session = forwarder(target)
    session.connection_made(channel)
    assert channel.got == [b"busy\n", b"<eof>"]
    session.close()
    session.write(b"late")
    assert channel.is_closed and channel.got[-1] == b"<eof>"


FRESH = "import sys\nfrom coder.net.ssh_library import CONSTANTS, asyncssh\n"


def output_of(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", FRESH + code], check=True, capture_output=True, text=True
    ).stdout.strip()


def test_client_loads_no_file_transfer() -> None:
    output = output_of(
        "import coder.client.shell\nprint([m for m in ('asyncssh.sftp', 'asyncssh.scp') if m in sys.modules])"
    )
    assert output == "[]"


def test_agent_loads_sftp_on_use() -> None:
    assert output_of("import coder.agent.ssh.server\nprint('asyncssh.sftp' in sys.modules)") == "False"


@pytest.mark.parametrize(
    "look",
    [
        "asyncssh.SFTPServer is asyncssh.sftp.SFTPServer",
        "asyncssh.sftp.SFTPServer is asyncssh.SFTPServer",
        "asyncssh.SEEK_END == 2 and asyncssh.scp.__module__ == 'asyncssh.scp' and callable(asyncssh.scp)",
        "issubclass(asyncssh.SFTPNoSuchFile, asyncssh.Error)",
        "type('Mine', (asyncssh.connection.SFTPServer,), {}).__mro__[1] is asyncssh.SFTPServer",
        "not isinstance(3, asyncssh.connection.SFTPServer) and 'asyncssh.sftp' not in sys.modules",
        "asyncssh.SFTPAttrs() and not isinstance(asyncssh.SFTPAttrs(), asyncssh.connection.SFTPServer)",
        "asyncssh.stream.run_sftp_server.real() is asyncssh.sftp.run_sftp_server",
        "hasattr(asyncssh, 'nothing') is False and 'asyncssh.sftp' not in sys.modules",
    ],
)
def test_sftp_access_loads_real_class(look: str) -> None:
    assert output_of(f"print({look})") == "True"


def test_calling_placeholder_creates_real_class() -> None:
    assert output_of("print(asyncssh.connection.SFTPServer(None).__class__ is asyncssh.SFTPServer)") == "True"


def test_constants_match_the_library() -> None:
    assert output_of("print(all(getattr(asyncssh.sftp, name) == value for name, value in CONSTANTS.items()))") == "True"


def test_client_modules_use_listed_constants() -> None:
    output = output_of(
        "from types import FunctionType\n"
        "import asyncssh.connection, asyncssh.stream\n"
        "kinds = type(asyncssh.connection.SFTPServer)\n"
        "named = [value for m in (asyncssh.connection, asyncssh.stream) for value in vars(m).values()"
        " if isinstance(value, kinds)]\n"
        "print(len(named) > 3 and all(isinstance(one.real(), (type, FunctionType)) for one in named))"
    )
    assert output == "True"


class Timers:
    """The timers of an event loop that connections use to detect silence."""

    def __init__(self) -> None:
        self.now = 100.0
        self.set: list[tuple[float, Any]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, do: Any) -> Any:
        self.set.append((self.now + delay, do))
        return object()

    def expire(self) -> None:
        """Run the last timer that was set."""
        self.now, do = self.set[-1]
        do()


def accepted_connection(timers: Timers, requests: list[None]) -> Any:
    """Return an accepted connection that sends a request after 30 seconds of silence, and gives up after three."""
    connection = object.__new__(asyncssh.connection.SSHServerConnection)
    vars(connection).update(
        _auth_complete=True,
        _keepalive_interval=30,
        _keepalive_count=0,
        _keepalive_count_max=3,
        _keepalive_timer=None,
        _loop=timers,
        _make_keepalive_request=lambda: None,
        create_task=requests.append,
        connection_lost=requests.append,
        _server=True,
    )
    return connection


def test_thousand_packets_set_one_timer() -> None:
    timers, requests = Timers(), list[Any]()
    connection = accepted_connection(timers, requests)
    for _ in range(1000):
        timers.now += 0.01
        connection._reset_keepalive_timer()
    assert len(timers.set) == 1
    last = timers.now
    timers.expire()  # thirty seconds after the first packet, twenty after the last
    assert not requests and timers.set[-1][0] == pytest.approx(last + 30)
    timers.expire()
    assert len(requests) == 1 and timers.now == pytest.approx(last + 30)


def test_silent_peer_times_out() -> None:
    timers, requests = Timers(), list[Any]()
    connection = accepted_connection(timers, requests)
    connection._reset_keepalive_timer()
    for _ in range(4):
        timers.expire()
    assert [type(output) for output in requests] == [type(None)] * 3 + [asyncssh.ConnectionLost]
    assert timers.now == pytest.approx(100 + 4 * 30)


def test_answer_restarts_silence() -> None:
    timers, requests = Timers(), list[Any]()
    connection = accepted_connection(timers, requests)
    connection._reset_keepalive_timer()
    timers.expire()
    timers.now += 5
    connection._reset_keepalive_timer()  # the answer, as any packet
    connection._keepalive_count = 0
    timers.expire()
    assert len(requests) == 1
    timers.expire()
    assert len(requests) == 2
