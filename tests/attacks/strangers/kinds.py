"""What a try is: data that a driver sends. `tables/` has one module for each process."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """One way to be wrong.

    `pieces` are sent one after the other, with a pause that lets the peer read; `then` is what follows them:
    read (half-close, read to the end), reset, close, hold (keep the connection open until the group ends).
    """

    group: str
    name: str
    pieces: tuple[bytes, ...]
    stage: str = ""
    "State of the conversation in which the pieces are sent; the driver knows its names."
    then: str = "read"

    @property
    def title(self) -> str:
        return f"{self.group}: {self.name}"


def kind(group: str, name: str, *pieces: bytes, stage: str = "", then: str = "read") -> Kind:
    return Kind(group, name, pieces, stage, then)


def sample(kinds: list[Kind], every: int) -> list[Kind]:
    """Return every n-th kind, and the first of each group."""
    first = {one.group: one for one in reversed(kinds)}
    return [one for number, one in enumerate(kinds) if number % every == 0 or first[one.group] is one]
