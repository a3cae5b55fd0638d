"""Datagram flows: the time a silent one keeps its socket."""

from __future__ import annotations

import socket
from typing import cast

import pytest
import trio
import trio.testing

from coder.agent.network.forward import relay_datagrams
from coder.mesh.node import UdpFlow


class SilentFlow:
    """Peer that sends nothing."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def receive(self) -> bytes:
        await trio.sleep_forever()
        raise AssertionError

    def send(self, payload: bytes) -> None:
        raise AssertionError("no datagram was received")


@pytest.mark.parametrize(("port", "idle"), [(53, 30.0), (0, 120.0)])
async def test_dns_flow_expires_sooner(autojump_clock: trio.testing.MockClock, port: int, idle: float) -> None:
    with trio.socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        await silent.bind(("127.0.0.1", 0))
        began = trio.current_time()
        await relay_datagrams(cast("UdpFlow", SilentFlow(port or silent.getsockname()[1])))
    assert trio.current_time() - began == pytest.approx(idle)
