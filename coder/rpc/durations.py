"""Durations of messages in seconds. A peer may send any 64-bit number, for which `ToTimedelta` raises OverflowError."""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration


def seconds(duration: Duration) -> float:
    """Return the seconds; negative and absurdly large ones, too."""
    return duration.seconds + duration.nanos / 1e9
