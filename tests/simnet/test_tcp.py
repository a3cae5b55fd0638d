"""TCP over seeded networks: every byte arrives once and in order, nothing stalls, memory stays bounded."""

from __future__ import annotations

from random import Random

import pytest

from coder.mesh.core.stack.interface import TcpSettings, TcpSocket
from tests.kit.network.simulated_tcp_link import Link, LinkedStacks, Transfer

SEEDS = range(70)
SOAK_SEEDS = range(1000, 3000)


def random_link(random: Random) -> Link:
    """Return a random network, mostly a bad one."""
    link = Link(delay=random.choice([0.0001, 0.002, 0.02, 0.15]) * (0.5 + random.random()))
    link.loss = random.choice([0, 0, 0.001, 0.01, 0.05, 0.2]) * random.random()
    link.reorder = random.choice([0, 0, 0.01, 0.3]) * random.random()
    link.jitter = link.delay * random.choice([0.1, 0.5, 2])
    link.duplicate = random.choice([0, 0, 0.01, 0.1])
    link.rate = random.choice([0, 0, 125e3, 1.25e6, 12.5e6])
    link.queue = random.choice([8 << 10, 64 << 10, 1 << 20])
    return link


def random_settings(random: Random) -> TcpSettings:
    return TcpSettings(
        receive_buffer=random.choice([4 << 10, 64 << 10, 1 << 20, 4 << 20]),
        send_buffer=random.choice([64 << 10, 4 << 20]),
        send_buffer_start=random.choice([16 << 10, 512 << 10]),
        skip_checksums=random.random() < 0.5,
        max_write=random.choice([1, 4096, 256 << 10]),
    )


def check_bounds(socket: TcpSocket, settings: TcpSettings, peer: TcpSettings) -> None:
    """Check that no buffer grows beyond its limit."""
    largest = max(settings.send_buffer, settings.send_buffer_start)
    assert len(socket.sender.queue) <= largest + settings.max_write
    assert socket.receiver.rx.unread + socket.receiver.rx.waiting <= settings.receive_buffer + 65_536
    assert socket.sender.snd_nxt - socket.sender.snd_una <= max(peer.receive_buffer, 65_536) + 1
    flight = socket.recovery.scoreboard
    assert flight.sacked == sum(run.end - run.start for run in flight.runs if run.sacked)
    assert flight.lost == sum(run.end - run.start for run in flight.runs if run.lost)
    assert len(flight.runs) <= 4 + (socket.sender.snd_nxt - socket.sender.snd_una) // 8


def run_conversation(seed: int) -> None:
    random = Random(seed)
    there, back = random_link(random), random_link(random)
    blackout = (random.random() * 2, random.choice([0.3, 3, 30])) if random.random() < 0.3 else None
    settings = [random_settings(random), random_settings(random)]
    world = LinkedStacks(seed, there, back, settings[0], settings[1])
    if random.random() < 0.5:
        world.a.burst_limit = world.b.burst_limit = 100_000
    mine, theirs = world.connect()
    if blackout is not None:
        # Not before: dialling sends its last SYN after 31 s, and half a minute of silence may lose all of them.
        start, length = blackout
        there.blackouts = back.blackouts = [(world.now + start, world.now + start + length)]
    size = random.choice([1, 3000, 300_000, 1_500_000])
    if max(there.loss, back.loss) > 0.03 or 0 < min(there.rate, back.rate) < 1e6:
        size = min(size, 300_000)
    data = random.randbytes(size)
    chunk = random.choice([100, 5000, 65_536]) if size < 500_000 else 65_536
    transfers = [
        Transfer(mine, theirs, data, random, chunk),
        Transfer(theirs, mine, data[: random.randint(0, size)], random, chunk),
    ]
    if random.random() < 0.2:
        world.jump_at = world.now + random.random()  # both machines sleep for two hours
    pauses = [world.now + random.random() * 3 for _ in transfers] if random.random() < 0.4 else [0.0, 0.0]

    sleeper = random.choice([world.a, world.b, None, None, None])
    sleeps_at = world.now + random.random()

    def step() -> None:
        if sleeper is not None and world.now >= sleeps_at:
            world.ahead[sleeper] = 7200.0  # one of the machines slept alone: all its timers are overdue
        for transfer, since in zip(transfers, pauses, strict=True):
            # Some readers sleep for two seconds: the window closes and has to open again.
            transfer.step(reading=not since <= world.now < since + 2)
        check_bounds(mine, settings[0], settings[1])
        check_bounds(theirs, settings[1], settings[0])

    world.on_step = step
    world.wake_at = sorted(since + 2 for since in pauses if since)
    world.run(lambda: all(transfer.done for transfer in transfers))
    world.on_step = lambda: None
    world.run(lambda: mine.closed and theirs.closed)
    assert mine.error is None
    assert theirs.error is None
    assert not world.a.connections
    assert not world.b.connections


def test_reader_may_wake_last() -> None:
    """Both ends are CLOSED and removed before the application reads: the world ends with the read, not before it."""
    world = LinkedStacks(3)
    mine, theirs = world.connect()
    transfers = [Transfer(mine, theirs, b"x" * 3000, world.random), Transfer(theirs, mine, b"y", world.random)]
    reads_at = world.now + 200  # TIME_WAIT lasts 60

    def step() -> None:
        for transfer in transfers:
            transfer.step(reading=world.now >= reads_at)

    world.on_step = step
    world.wake_at = [reads_at]
    world.run(lambda: all(transfer.done for transfer in transfers))
    assert world.now == reads_at
    assert not world.a.connections
    assert not world.b.connections


def test_silence_before_end_is_failure() -> None:
    world = LinkedStacks(3)
    mine, theirs = world.connect()
    mine.close()
    theirs.close()
    with pytest.raises(AssertionError, match="fell silent"):
        world.run(lambda: False)


@pytest.mark.parametrize("seed", SEEDS)
def test_conversation(seed: int) -> None:
    run_conversation(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SOAK_SEEDS)
def test_conversation_soak(seed: int) -> None:
    run_conversation(seed)
