"""State of a list of choices: filter, cursor and marks. Pure; `choice_screen` draws it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

ROWS = 10
"""Number of visible choices; the list scrolls."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Possible answer."""

    value: str
    label: str
    "Text for the user."
    note: str = ""


class Chooser:
    """State of the list: filtered choices, cursor and marked values."""

    def __init__(
        self,
        choices: Sequence[Choice],
        *,
        chosen: Iterable[str] = (),
        many: bool,
        free: bool = False,
        searches: bool = True,
    ) -> None:
        selected = list(chosen)
        self._choices = list(choices)
        self._free = free
        self.many = many
        self.searches = searches
        known = {choice.value for choice in choices}
        self._choices += [Choice(value, value) for value in selected if many and value not in known]
        self._marked = {choice.value for choice in self._choices if choice.value in selected} if many else set()
        self.typed = ""
        self._cursor = next((i for i, choice in enumerate(choices) if choice.value in selected and not many), 0)

    def visible(self) -> list[Choice]:
        """Return the choices that contain the typed text."""
        needle = self.typed.casefold()
        return [choice for choice in self._choices if needle in f"{choice.label} {choice.value}".casefold()]

    def type(self, text: str) -> None:
        if not self.searches:
            return
        self.typed += text
        self._cursor = 0

    def erase(self) -> None:
        self.typed = self.typed[:-1]
        self._cursor = 0

    def move(self, step: int) -> None:
        """Move the cursor; it wraps around at both ends."""
        count = len(self.visible())
        self._cursor = (self._cursor + step) % count if count else 0

    def toggle(self) -> None:
        if current := self.visible()[self._cursor : self._cursor + 1]:
            self._marked ^= {current[0].value}

    def mark_all(self, *, on: bool) -> None:
        values = {choice.value for choice in self.visible()}
        self._marked = self._marked | values if on else self._marked - values

    def accept(self) -> list[str] | None:
        """Return the values that Enter selects; None if Enter selects nothing yet."""
        visible = self.visible()
        if self.many and self._free and self.typed and not visible:
            self._choices.append(Choice(self.typed, self.typed))
            self._marked.add(self.typed)
            self.typed = ""
            return None
        if self.many:
            return [choice.value for choice in self._choices if choice.value in self._marked]
        return [visible[self._cursor].value] if visible else None

    def labels(self, values: Iterable[str]) -> str:
        by_value = {choice.value: choice.label for choice in self._choices}
        return ", ".join(by_value[value] for value in values)

    def lines(self) -> list[tuple[str, str]]:
        """Return (style, text) of each line below the question; at most ROWS choices around the cursor."""
        visible = self.visible()
        first = max(0, min(self._cursor - ROWS // 2, len(visible) - ROWS))
        rows = []
        for index, choice in enumerate(visible[first : first + ROWS], first):
            is_here = index == self._cursor
            box = ("[x] " if choice.value in self._marked else "[ ] ") if self.many else ""
            text = f"{'> ' if is_here else '  '}{box}{choice.label}" + (f"  {choice.note}" if choice.note else "")
            rows.append(("bold fg:ansicyan" if is_here else "", text))
        if not visible:
            rows.append(("fg:ansiyellow", "  nothing matches" + ("; press Enter to add it" if self._free else "")))
        if len(visible) > ROWS:
            rows.append(("italic", f"  {self._cursor + 1} of {len(visible)}"))
        return rows
