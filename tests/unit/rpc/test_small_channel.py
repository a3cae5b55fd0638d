"""The small channel beside trio's: order, bounds, ends, cancellation."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from coder.rpc.small_channel import SmallChannel


async def test_values_arrive_in_order_with_and_without_wait() -> None:
    channel = SmallChannel[int](8)
    got: list[int] = []

    async def receive() -> None:
        for _ in range(4):
            got.append(await channel.receive())

    channel.send_nowait(1)
    channel.send_nowait(2)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        await trio.testing.wait_all_tasks_blocked()
        assert got == [1, 2]
        assert len(channel) == 0
        channel.send_nowait(3)
        channel.send_nowait(4)
    assert got == [1, 2, 3, 4]


async def test_full_channel_makes_senders_wait() -> None:
    channel = SmallChannel[int](2)
    channel.send_nowait(1)
    channel.send_nowait(2)
    with pytest.raises(trio.WouldBlock):
        channel.send_nowait(3)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(channel.send, 3)
        await trio.testing.wait_all_tasks_blocked()
        assert len(channel) == 2
        assert [await channel.receive() for _ in range(3)] == [1, 2, 3]


async def test_end_comes_after_last_value() -> None:
    channel = SmallChannel[int](2)
    channel.send_nowait(1)
    channel.end()
    assert await channel.receive() == 1
    for _ in range(2):
        with pytest.raises(trio.EndOfChannel):
            await channel.receive()
    with pytest.raises(trio.ClosedResourceError):
        channel.send_nowait(2)


async def test_end_wakes_waiting_receiver() -> None:
    channel = SmallChannel[int](2)
    async with trio.open_nursery() as nursery:

        async def receive() -> None:
            with pytest.raises(trio.EndOfChannel):
                await channel.receive()

        nursery.start_soon(receive)
        await trio.testing.wait_all_tasks_blocked()
        channel.end()


async def test_receiver_that_leaves_breaks_senders() -> None:
    channel = SmallChannel[int](1)
    channel.send_nowait(1)
    async with trio.open_nursery() as nursery:

        async def send() -> None:
            with pytest.raises(trio.BrokenResourceError):
                await channel.send(2)

        nursery.start_soon(send)
        await trio.testing.wait_all_tasks_blocked()
        channel.leave()
    assert len(channel) == 0
    with pytest.raises(trio.BrokenResourceError):
        channel.send_nowait(3)


async def test_cancelled_wait_does_not_block_next_one() -> None:
    channel = SmallChannel[int](2)
    with trio.CancelScope() as scope:
        scope.cancel()
        await channel.receive()
    assert scope.cancelled_caught
    channel.send_nowait(1)
    with trio.CancelScope() as scope:
        scope.cancel()
        await channel.receive()
    assert scope.cancelled_caught
    assert await channel.receive() == 1, "a cancelled task takes nothing"


async def test_second_receiver_is_rejected() -> None:
    channel = SmallChannel[int](2)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(channel.receive)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError):
            await channel.receive()
        nursery.cancel_scope.cancel()
