"""Selection from a list: with arrow keys at a terminal, by number or name on a line elsewhere.

`chooser` has the state of the list. `choice_screen`, imported only at a terminal, handles keys and screen with
prompt_toolkit.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

from coder.cli.ui.chooser import Choice, Chooser
from coder.cli.ui.output import ask


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


def _run(question: str, chooser: Chooser) -> list[str]:
    from coder.cli.ui.choice_screen import run_chooser  # prompt_toolkit, for terminals

    return run_chooser(question, chooser)
