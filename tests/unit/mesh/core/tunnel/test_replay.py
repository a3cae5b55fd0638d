"""The replay window against the simplest model."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coder.mesh.core.tunnel.constants import REPLAY_WINDOW
from coder.mesh.core.tunnel.replay import ReplayWindow

steps = st.lists(
    st.one_of(
        st.integers(-REPLAY_WINDOW - 3, 3),
        st.integers(-5, 5),
        st.sampled_from([REPLAY_WINDOW - 1, REPLAY_WINDOW, REPLAY_WINDOW + 1, 3 * REPLAY_WINDOW, 1 << 40]),
    ),
    max_size=60,
)


@given(steps)
def test_window_matches_set_of_counters(deltas: list[int]) -> None:
    window, seen, newest = ReplayWindow(), set[int](), -1
    for delta in deltas:
        counter = max(0, newest + delta)
        expected = counter not in seen and newest - counter <= REPLAY_WINDOW
        assert window.is_new(counter) == expected
        if expected:
            window.accept(counter)
            seen.add(counter)
            newest = max(newest, counter)
        assert window.newest == newest


def test_window_edge() -> None:
    window = ReplayWindow()
    window.accept(0)
    window.accept(10_000)
    assert window.is_new(10_000 - REPLAY_WINDOW)
    assert not window.is_new(10_000 - REPLAY_WINDOW - 1)
    assert not window.is_new(10_000)


def test_steady_loss_keeps_window_small() -> None:
    window = ReplayWindow()
    for counter in range(0, 200_000, 3):
        assert window.is_new(counter)
        window.accept(counter)
    assert window._missing.bit_length() <= 4 * REPLAY_WINDOW
    assert window.is_new(199_997) and not window.is_new(199_998)
