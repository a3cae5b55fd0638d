"""Forwarded connections whose target speaks first lose nothing."""

from __future__ import annotations

from typing import Any

from coder.net.ssh_library import asyncssh


class Sink:
    """What a forwarder writes to."""

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


def test_what_came_before_the_other_end_is_kept_in_order() -> None:
    target, channel = forwarder(), Sink()
    target.connection_made(Sink())
    target.data_received(b"220 hello, ")  # nobody to give it to yet
    session = forwarder(target)
    target.data_received(b"this is mail\r\n")  # the other end is known, but not open
    session.connection_made(channel)
    target.data_received(b"250 ok\r\n")
    assert b"".join(channel.got) == b"220 hello, this is mail\r\n250 ok\r\n"


def test_an_early_end_arrives_too_and_a_closed_end_takes_nothing() -> None:
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
