"""Bytes that arrive in any order leave in theirs."""

from hypothesis import given, settings
from hypothesis import strategies as st

from coder.mesh.core.stack.tcp.reassembly import Reassembly

DATA = bytes(range(256)) * 40


@given(st.lists(st.tuples(st.integers(0, 6000), st.integers(1, 1500), st.booleans()), max_size=60))
@settings(max_examples=150, deadline=None)
def test_reassembly_gives_every_byte_once_and_in_order(arrivals: list[tuple[int, int, bool]]) -> None:
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
        assert sorted(rx.blocks) == ranges([n for n in sorted(have) if n > edge])
        if rx.blocks and piece and seq > edge:
            assert rx.blocks[0][0] <= seq < rx.blocks[0][1]
        if read:
            out += rx.read(size)
    while rx.unread:
        out += rx.read(1000)
    assert out == DATA[: rx.next]


def ranges(numbers: list[int]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for number in numbers:
        if out and out[-1][1] == number:
            out[-1] = (out[-1][0], number + 1)
        else:
            out.append((number, number + 1))
    return out
