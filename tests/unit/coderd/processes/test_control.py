"""Messages between the supervisor and its processes."""

from __future__ import annotations

import socket

import msgspec
import pytest
import trio

from coder.coderd.processes.control import ControlLink, Order


@pytest.mark.parametrize("line", [b"", b"{", b'{"kind":"sib{"kind":"stop"}', b'{"kind":1}', b"\xff\0", b"[]"])
async def test_unreadable_order_is_skipped(line: bytes) -> None:
    """A process that stood still for seconds may get the half of an order."""
    ours, theirs = socket.socketpair()
    applied: list[Order] = []
    with ours, theirs:
        link = ControlLink(theirs)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(link.follow, applied.append)
            ours.sendall(line + b"\n" + msgspec.json.encode(Order("siblings")) + b"\n")
            ours.sendall(msgspec.json.encode(Order("retire")) + b"\n")
            with trio.fail_after(60):
                await link.retire_requested.wait()
            assert not link.stop_requested.is_set()
            nursery.cancel_scope.cancel()
    assert applied == [Order("siblings")]
