"""Paths change their MTU during a transfer: segments are cut again, nothing is lost or duplicated."""

from __future__ import annotations

from random import Random

import pytest

from coder.mesh.core.stack.interface import TcpSettings
from tests.kit.network.simulated_tcp_link import A, B, Link, LinkedStacks, Transfer

SIZES = (256, 512, 1184, None, 1280, 1420, 8160, 8920, 32_768)


def run_conversation(seed: int) -> None:
    random = Random(seed)
    harm = random.choice([0.0, 0.0, 0.02])
    there, back = [Link(delay=random.choice([0.0005, 0.01]), loss=harm, reorder=harm, duplicate=harm) for _ in range(2)]
    ours, theirs = (TcpSettings(skip_checksums=random.random() < 0.7) for _ in range(2))
    world = LinkedStacks(seed, there, back, ours, theirs)
    mine, other = world.connect()
    data = random.randbytes(random.choice([50_000, 400_000]))
    transfers = [Transfer(mine, other, data, random), Transfer(other, mine, data[::-1], random)]
    limits: dict[object, int] = {world.a: 1280, world.b: 1280}
    changes = world.now

    def step() -> None:
        nonlocal changes
        if world.now >= changes:
            changes = world.now + random.random() * 0.05
            stack, peer = random.choice([(world.a, B), (world.b, A)])
            size = random.choice(SIZES)
            stack.set_mtu_to(peer, size)
            # A sender that offers to leave checksums out takes large packets; the answer offers it only in return.
            is_kin = ours.skip_checksums and (stack is world.b or theirs.skip_checksums)
            limits[stack] = min(size or 1280, 32_768 if is_kin else 1280)
            if random.random() < 0.3:
                stack.path_changed(peer, world.now)
        for transfer in transfers:
            transfer.step()

    def check(sender: object, packet: bytes) -> bool:
        # Padding rounds up to 16 bytes, never beyond the limit.
        assert len(packet) <= limits[sender]
        return True

    world.filter = check
    world.on_step = step
    world.run(lambda: all(transfer.done for transfer in transfers))
    world.on_step = lambda: None
    world.run(lambda: mine.closed and other.closed)
    assert mine.error is None
    assert other.error is None


@pytest.mark.parametrize("seed", range(15))
def test_sizes_change_in_the_middle(seed: int) -> None:
    run_conversation(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 1600))
def test_sizes_change_during_transfer_soak(seed: int) -> None:
    run_conversation(seed)
