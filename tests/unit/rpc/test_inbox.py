"""Memory of one peer's calls: bounded by bytes, released however a call ends."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from coder.rpc.errors import RpcClosed
from coder.rpc.inbox import INBOX_BYTES, LINK_BYTES, BufferedBytes, Inbox


def test_peer_calls_share_budget() -> None:
    buffered = BufferedBytes()
    buffered.change(LINK_BYTES)
    with pytest.raises(RpcClosed, match="32 MiB"):
        buffered.change(1)
    buffered.change(-1)
    buffered.change(1)


async def test_a_slow_handler_makes_its_caller_wait(autojump_clock: trio.testing.MockClock) -> None:
    buffered = BufferedBytes()
    inbox, put = Inbox(buffered), 0
    half = bytes(INBOX_BYTES // 2)

    async def send() -> None:
        nonlocal put
        for _ in range(4):
            await inbox.put(half)
            put += 1
        inbox.end()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        await trio.sleep(1)
        assert (put, buffered.size) == (2, INBOX_BYTES)
        for _ in range(4):
            assert await inbox.receive() == half
            await trio.sleep(1)
        with pytest.raises(trio.EndOfChannel):
            await inbox.receive()
    assert buffered.size == 0


async def test_leaving_releases_budget(autojump_clock: trio.testing.MockClock) -> None:
    buffered = BufferedBytes()
    inbox = Inbox(buffered)
    refused = 0

    async def send() -> None:
        nonlocal refused
        try:
            for _ in range(3):
                await inbox.put(bytes(INBOX_BYTES // 2))
        except trio.BrokenResourceError:
            refused += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        await trio.sleep(1)
        inbox.leave()
    assert (refused, buffered.size) == (1, 0)
