"""The send queue: unacknowledged bytes by sequence number."""

from hypothesis import given, settings
from hypothesis import strategies as st

from coder.mesh.core.stack.tcp.sendqueue import SendQueue


@given(st.lists(st.integers(0, 20_000), max_size=30), st.lists(st.tuples(st.integers(0, 40_000), st.integers(0, 3000))))
@settings(max_examples=100, deadline=None)
def test_send_queue_is_contiguous(sizes: list[int], slices: list[tuple[int, int]]) -> None:
    queue = SendQueue(1000)
    whole = b""
    for number, size in enumerate(sizes):
        chunk = bytes([number]) * size
        queue.append(chunk)
        whole += chunk
    assert len(queue) == len(whole)
    for offset, size in slices:
        assert queue.slice(1000 + offset, size) == whole[offset : offset + size]
        chunk, base = queue.at(1000 + offset)
        if offset < len(whole):
            assert chunk[1000 + offset - base] == whole[offset]
    half = len(whole) // 2
    queue.release(1000 + half)
    assert queue.slice(1000 + half, len(whole)) == whole[half:]
