"""CUBIC and HyStart++ alone, without a network."""

from coder.mesh.core.stack.tcp.congestion import Cubic


def test_cubic_falls_to_seventy_percent_and_comes_back() -> None:
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


def test_slow_start_ends_when_the_queue_grows() -> None:
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
