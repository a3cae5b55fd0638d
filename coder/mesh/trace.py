"""What a node did, as facts with times: tests wait for them, `coder debug trace` prints them.

A `Trace` is what `NodeConfig.trace` wants. Facts are short nouns (`path`, `handshake`, `relay`, `pong`, `rebind`);
their fields are plain values. Only the newest facts are kept, so that a trace may stay on for ever.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import trio

MAX_FACTS = 4096


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that happened."""

    at: float
    """Seconds on the node's clock (trio.current_time)."""
    name: str
    fields: Mapping[str, object]

    def matches(self, name: str, fields: Mapping[str, object]) -> bool:
        """Whether it has that name and at least these fields."""
        return self.name == name and all(self.fields.get(key) == value for key, value in fields.items())


class Trace:
    """Remembers facts. `on_fact` sees each as it comes."""

    def __init__(self, on_fact: Callable[[Fact], None] | None = None) -> None:
        self.facts: deque[Fact] = deque(maxlen=MAX_FACTS)
        self._on_fact = on_fact
        self._changed = trio.Event()

    def __call__(self, name: str, fields: Mapping[str, object]) -> None:
        fact = Fact(trio.current_time(), name, dict(fields))
        self.facts.append(fact)
        if self._on_fact is not None:
            self._on_fact(fact)
        self._changed.set()
        self._changed = trio.Event()

    def find(self, name: str, **fields: object) -> Fact | None:
        """The first remembered fact of that name with these fields."""
        return next((fact for fact in self.facts if fact.matches(name, fields)), None)

    def names(self) -> list[str]:
        """What happened, in order."""
        return [fact.name for fact in self.facts]

    async def wait(self, name: str, **fields: object) -> Fact:
        """Returns when such a fact was (or is already) remembered."""
        while (found := self.find(name, **fields)) is None:
            await self._changed.wait()
        return found
