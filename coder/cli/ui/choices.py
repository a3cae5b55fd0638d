"""Selection from a list: with arrow keys at a terminal, by number or name on a line elsewhere.

`Chooser` is the pure state of the list. `choice_screen`, imported only at a terminal, handles keys and screen with
prompt_toolkit.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from coder.cli.ui.output import ask

ROWS = 10
"""Number of visible choices; the list scrolls."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Possible answer."""

    value: str
    label: str
    "Text for the user."
    note: str = ""


def is_interactive() -> bool:
    """Return whether the terminal can read keys and draw a list."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "") not in {"", "dumb"}


def select(question: str, choices: Sequence[Choice], *, default: str = "", searches: bool = True) -> str:
    """Return the value of the selected choice, or other text typed on a line. Raise CoderError at end of input.

    `searches`: typed text filters the list.
    """
    if choices and is_interactive():
        return _run(question, Chooser(choices, chosen=[default], many=False, searches=searches))[0]
    print_choices(choices, [default])
    return resolve_choice(ask(question, default=default), choices)


def select_many(
    question: str, choices: Sequence[Choice], *, defaults: Iterable[str] = (), free: bool = False
) -> list[str]:
    """Return the values of the selected choices; with `free`, and always on a line, also other typed values."""
    chosen = list(defaults)
    if choices and is_interactive():
        return _run(question, Chooser(choices, chosen=chosen, many=True, free=free))
    print_choices(choices, chosen)
    answer = ask(f"{question} (separated by commas)", default=",".join(chosen))
    return [resolve_choice(part.strip(), choices) for part in answer.split(",") if part.strip()]


def resolve_choice(answer: str, choices: Sequence[Choice]) -> str:
    """Return the value of the choice with this value, label or number; else the answer itself."""
    if any(answer == choice.value for choice in choices):
        return answer
    for index, choice in enumerate(choices, 1):
        if answer in {choice.label, str(index)}:
            return choice.value
    return answer


def print_choices(choices: Sequence[Choice], chosen: Sequence[str]) -> None:
    """Print the numbered list, for answers that `resolve_choice` reads."""
    for index, choice in enumerate(choices, 1):
        value = f" [{choice.value}]" if choice.value != choice.label else ""
        note = f" - {choice.note}" if choice.note else ""
        mark = " (default)" if choice.value in chosen else ""
        sys.stdout.write(f"  {index}. {choice.label}{value}{note}{mark}\n")


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


def _run(question: str, chooser: Chooser) -> list[str]:
    from coder.cli.ui.choice_screen import run_chooser  # prompt_toolkit, for terminals

    return run_chooser(question, chooser)
