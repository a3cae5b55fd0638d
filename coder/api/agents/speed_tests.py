"""JSON shapes of speed tests between this server and an agent, ours."""

from __future__ import annotations

from typing import Literal

from coder.api.base.struct import ApiStruct

SpeedTestDirection = Literal["down", "up"]
"""`down` is from the agent to the server, which is the direction to the browser."""


class SpeedTestRequest(ApiStruct):
    direction: SpeedTestDirection


class SpeedTestResult(ApiStruct):
    direction: SpeedTestDirection
    bytes: int
    seconds: float
    mbits: float
    """Megabits (10^6) per second."""
    via: Literal["direct", "relay", ""]
    """The path of the server's packets to the agent; empty if a ping was not answered."""
    round_trip_ms: float | None
