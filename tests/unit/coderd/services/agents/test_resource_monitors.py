"""Readings of an agent: the ones that count, and their limit."""

from __future__ import annotations

from coder.coderd.services.agents.resource_monitors import MAX_VOLUMES, MEMORY, Datapoint, readings_of

Memory, Volume = Datapoint.MemoryUsage, Datapoint.VolumeUsage


def test_readings_by_path() -> None:
    points = [
        Datapoint(memory=Memory(used=9, total=10), volumes=[Volume(volume="/", used=1, total=10)]),
        Datapoint(volumes=[Volume(volume="/", used=9, total=10), Volume(volume="/", used=1, total=10)]),
        Datapoint(memory=Memory(used=1, total=10), volumes=[Volume(volume="/other", used=9, total=10)]),
    ]
    assert readings_of({MEMORY: 80, "/": 80}, points) == {
        MEMORY: ["NOK", "unknown", "OK"],
        "/": ["OK", "NOK", "unknown"],  # the first of equal paths
    }
    assert readings_of({}, points) == {}


def test_volumes_of_message_are_limited() -> None:
    """A message has room for half a million volumes, a template for many paths; their product would block."""
    crowd = [Volume(volume=str(number), used=9, total=10) for number in range(MAX_VOLUMES + 1)]
    readings = readings_of({"0": 80, str(MAX_VOLUMES - 1): 80, str(MAX_VOLUMES): 80}, [Datapoint(volumes=crowd)])
    assert list(readings.values()) == [["NOK"], ["NOK"], ["unknown"]]
