"""Round-trip samples and the timeout derived from them."""

from coder.mesh.core.stack.settings import TcpSettings
from coder.mesh.core.stack.tcp.rtt import RoundTrip


def test_round_trip_follows_rfc_6298() -> None:
    rtt = RoundTrip(TcpSettings())
    assert rtt.rto == 1.0
    rtt.add_sample(0.1, 0.0)
    assert rtt.rto == 0.1 + 0.2
    for n in range(100):
        rtt.add_sample(0.5 if n % 2 else 0.1, n)
    assert rtt.rto > 0.6
    assert rtt.minimum == 0.1
    for n in range(100):
        rtt.add_sample(0.5, 1000.0 + n)
    assert rtt.minimum == 0.5  # a route that became longer


def test_only_sample_ends_backoff() -> None:
    """RFC 6298 section 5: progress may come from a copy, and the next segment would time out as early."""
    rtt = RoundTrip(TcpSettings())
    rtt.add_sample(0.1, 0.0)
    rtt.back_off()
    rtt.back_off()
    rtt.on_progress()
    assert rtt.timeout() == 4 * rtt.rto
    rtt.add_sample(1.0, 2.0)
    assert rtt.timeout() == rtt.rto
