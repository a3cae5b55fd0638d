"""Many connections at the same time: turns, closing, leftover state."""

from __future__ import annotations

from functools import partial

from tests.kit.network.simulated_tcp_link import B, Link, LinkedStacks, Transfer


def test_fifty_connections_share_bad_link() -> None:
    world = LinkedStacks(4, Link(delay=0.01, loss=0.01, rate=5e6), Link(delay=0.01, loss=0.01))
    transfers = []
    for number in range(50):
        mine, theirs = world.connect()
        data = world.random.randbytes(20_000 + 1000 * number)
        transfers.append(Transfer(mine, theirs, data, world.random))
        transfers.append(Transfer(theirs, mine, data, world.random))

    def step() -> None:
        for transfer in transfers:
            if not transfer.done:
                transfer.step()

    world.on_step = step
    world.run(lambda: all(transfer.done for transfer in transfers))
    world.on_step = lambda: None
    world.run(lambda: not world.a.connections and not world.b.connections)
    assert not world.a.pending
    assert world.a.next_wake() is None


def test_bulk_transfer_leaves_room() -> None:
    """Connections take turns: a small answer never waits for a whole window of another connection."""
    world = LinkedStacks(5, Link(delay=0.0005), Link(delay=0.0005))
    world.a.burst_limit = world.b.burst_limit = 1 << 20
    bulk, sink = world.connect()
    talk, echo = world.connect()
    bulk.write_nowait(bytes(4 << 20))
    world.settle(0.02)
    talk.write_nowait(b"quick")
    first = []
    world.filter = lambda _sender, packet: first.append(packet) or True
    world.pump(world.a)
    position = next(index for index, packet in enumerate(first) if b"quick" in packet)
    assert position <= 44
    world.run(lambda: echo.unread == 5 and not bulk.unacked, 10)
    assert sink.unread <= 4 << 20


def test_closed_connections_leave_no_state() -> None:
    world = LinkedStacks(6)
    for _ in range(300):
        mine, theirs = world.connect()
        mine.write_nowait(b"hello")
        world.run(partial(lambda socket: socket.unread == 5, theirs))
        theirs.read_nowait()
        theirs.close()
        mine.close()
    world.settle(120)
    assert not world.a.connections
    assert not world.b.connections
    assert world.a.deadlines < 70
    assert world.b.listeners[7].opening == 0
    refused = world.a.tcp_connect(B, 1, world.now)
    world.run(lambda: refused.closed)
