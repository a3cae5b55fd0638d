"""Bytes that arrive in any order are delivered in sequence."""

from hypothesis import given, settings
from hypothesis import strategies as st

from coder.mesh.core.stack.tcp.reassembly import Reassembly

HOLES = 3000
DATA = bytes(range(256)) * 40


@given(st.lists(st.tuples(st.integers(0, 6000), st.integers(1, 1500), st.booleans()), max_size=60))
@settings(max_examples=150, deadline=None)
def test_reassembly_delivers_once_in_order(arrivals: list[tuple[int, int, bool]]) -> None:
    rx = Reassembly(0)
    have: set[int] = set()
    out = b""
    for seq, size, read in arrivals:
        piece = DATA[seq : seq + size]
        before = rx.next
        gained = rx.insert(seq, memoryview(piece) if size % 2 else piece)
        have.update(range(seq, seq + len(piece)))
        edge = 0
        while edge in have:
            edge += 1
        assert rx.next == edge
        assert gained == edge - before
        assert rx.waiting == len([n for n in have if n > edge])
        held = ranges([n for n in sorted(have) if n > edge])
        assert rx.held == held
        assert set(rx.blocks) <= set(held)
        assert len(rx.blocks) == len(set(rx.blocks)) <= 8
        if rx.blocks and piece and seq > edge:
            assert rx.blocks[0][0] <= seq < rx.blocks[0][1]
        if read:
            out += rx.read(size)
    while rx.unread:
        out += rx.read(1000)
    assert out == DATA[: rx.next]


class Watched(list[int]):
    """Counts how often a number is compared."""

    accesses = 0

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        self.accesses += 1
        return super().__getitem__(index)

    def __iter__(self):  # type: ignore[no-untyped-def]
        for number in super().__iter__():
            self.accesses += 1
            yield number


def test_hole_search_uses_bisection() -> None:
    rx = Reassembly(0)
    for hole in range(HOLES):
        rx.insert(1 + 4 * hole, b"x")
    assert len(rx.held) == HOLES
    assert len(rx.blocks) == 8
    for name in ("_lefts", "_rights", "_starts"):
        setattr(rx, name, Watched(getattr(rx, name)))
    for hole in range(100):
        rx.insert(3 + 4 * hole * 29, b"y")
        assert rx.blocks[0] == (3 + 4 * hole * 29, 4 + 4 * hole * 29)
    accesses = sum(getattr(rx, name).accesses for name in ("_lefts", "_rights", "_starts"))
    assert accesses <= 100 * 3 * (HOLES.bit_length() + 4)


def test_older_blocks_reported_after_delivery() -> None:
    rx = Reassembly(0)
    for hole in range(20, 0, -1):
        rx.insert(2 * hole, b"x")
    assert rx.blocks == [(2 * hole, 2 * hole + 1) for hole in range(1, 9)]
    rx.insert(0, b"y" * 18)
    assert rx.next == 19
    assert rx.blocks == rx.held[:8] != []
    rx.insert(41, b"z")
    assert rx.blocks[0] == (40, 42)


def ranges(numbers: list[int]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for number in numbers:
        if out and out[-1][1] == number:
            out[-1] = (out[-1][0], number + 1)
        else:
            out.append((number, number + 1))
    return out
