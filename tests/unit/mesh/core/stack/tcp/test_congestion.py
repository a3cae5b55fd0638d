"""CUBIC and HyStart++ alone, without a network."""

from coder.mesh.core.stack.tcp.congestion import Cubic


def test_cubic_reduces_and_recovers() -> None:
    cubic = Cubic(1000)
    cubic.ssthresh = cubic.window = 100_000
    cubic.lost(100_000)
    assert cubic.window == 70_000
    now = 0.0
    while cubic.window < 100_000:
        now += 0.05
        cubic.acked(cubic.window, now, 0.05)
    # K = cbrt(W_max * (1 - beta) / C) = cbrt(100 * 0.3 / 0.4) = 4.2 s, or sooner where Reno would be faster.
    assert 2.0 < now < 5.0
    cubic.lost(100_000)
    kept = cubic.snapshot()
    cubic.timed_out(70_000)
    assert cubic.window == 1000
    cubic.restore(kept)
    assert cubic.window == 70_000


def test_slow_start_ends_with_queue() -> None:
    cubic = Cubic(1000)
    sent = acked = 0
    for round_number in range(30):
        sent += cubic.window
        for _ in range(10):
            cubic.round_trip(0.05 + 0.01 * round_number, acked, sent)
        cubic.acked(cubic.window, round_number * 0.05, 0.05)
        acked = sent
        if cubic.window >= cubic.ssthresh:
            break
    assert cubic.window < 1_000_000


def window_after_second(cubic: Cubic) -> int:
    """Return the window after a second of full use; round trips of 50 ms."""
    for step in range(20):
        cubic.acked(cubic.window, step * 0.05, 0.05)
    return cubic.window


def test_curve_restarts_after_slow_start() -> None:
    """RFC 9438 section 4.8: K is zero; after a fast repair the target is the old maximum instead."""
    repaired, silent = Cubic(1000), Cubic(1000)
    repaired.ssthresh = repaired.window = silent.ssthresh = silent.window = 100_000
    repaired.lost(100_000)
    silent.timed_out(100_000)
    silent.window = silent.ssthresh
    assert repaired.window == silent.window == 70_000
    assert window_after_second(silent) < 82_000 < window_after_second(repaired)


def test_reno_slow_below_prior_window() -> None:
    """RFC 9438 section 4.3: also where fast convergence has put the maximum below that window."""
    cubic = Cubic(1000)
    cubic.ssthresh = cubic.window = 100_000
    cubic.lost(100_000)
    cubic.lost(70_000)
    assert cubic.window == 49_000
    rounds = 0
    while cubic.window < 69_000:
        cubic.acked(cubic.window, rounds * 0.001, 0.001)
        rounds += 1
    assert rounds >= 20 / (3 * 0.3 / 1.7) - 1


def test_later_slow_start_ignores_delay() -> None:
    """RFC 9406 section 4.3: HyStart++ is for the first one."""
    cubic = Cubic(1000)
    cubic.timed_out(100_000)
    cubic.ssthresh = threshold = 50_000
    sent = 0
    for round_number in range(10):
        sent += cubic.window
        for _ in range(10):
            cubic.round_trip(0.05 + 0.01 * round_number, sent - cubic.window, sent)
        if cubic.window >= threshold:
            break
        cubic.acked(cubic.window, round_number * 0.05, 0.05)
    assert cubic.ssthresh == threshold <= cubic.window
