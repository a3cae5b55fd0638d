"""Events of a node with times: tests wait for them, `coder debug trace` prints them.

A `Trace` is a value for `NodeConfig.trace`. Events are short nouns (`path`, `handshake`, `relay`, `pong`, `rebind`);
their fields are plain values. Only the newest events are kept, so that a trace may stay on for ever.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import trio

from coder.mesh.description import TraceFields, TraceValue
from coder.mesh.drivers.pcap import PcapWriter

__all__ = ["MAX_EVENTS", "PcapWriter", "Trace", "TraceEvent"]

MAX_EVENTS = 4096


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """An event of a node."""

    at: float
    """Seconds on the node's clock (trio.current_time)."""
    name: str
    fields: TraceFields

    def matches(self, name: str, fields: TraceFields) -> bool:
        """Return whether it has that name and at least these fields."""
        return self.name == name and all(self.fields.get(key) == value for key, value in fields.items())


class Trace:
    """Stores events. `on_event` sees each as it comes."""

    def __init__(self, on_event: Callable[[TraceEvent], None] | None = None) -> None:
        self.events: deque[TraceEvent] = deque(maxlen=MAX_EVENTS)
        self._on_event = on_event
        self._changed = trio.Event()

    def __call__(self, name: str, fields: TraceFields) -> None:
        event = TraceEvent(trio.current_time(), name, dict(fields))
        self.events.append(event)
        if self._on_event is not None:
            self._on_event(event)
        self._changed.set()
        self._changed = trio.Event()

    def find(self, name: str, **fields: TraceValue) -> TraceEvent | None:
        """Return the first stored event of that name with these fields."""
        return next((event for event in self.events if event.matches(name, fields)), None)

    def names(self) -> list[str]:
        """Return the names of the events, in order."""
        return [event.name for event in self.events]

    async def wait(self, name: str, **fields: TraceValue) -> TraceEvent:
        """Return when such an event was (or is already) recorded."""
        while (event := self.find(name, **fields)) is None:
            await self._changed.wait()
        return event
