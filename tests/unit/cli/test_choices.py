"""Selection lists: their state, and their keys on a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from coder.cli.ui.choices import resolve_choice
from coder.cli.ui.chooser import ROWS, Choice, Chooser
from tests.kit.paths import ROOT
from tests.kit.programs.command_line import Terminal, plain

COLOURS = [Choice("b", "Blue"), Choice("g", "Green", "like grass"), Choice("r", "Red")]
UP, DOWN, LEFT, RIGHT, ENTER = "\x1b[A", "\x1b[B", "\x1b[D", "\x1b[C", "\r"


def test_enter_selects_at_cursor() -> None:
    assert Chooser(COLOURS, many=False).accept() == ["b"]
    chooser = Chooser(COLOURS, chosen=["g"], many=False)
    assert chooser.accept() == ["g"]
    for step, expected in ((1, "r"), (1, "b"), (-1, "r"), (-1, "g")):
        chooser.move(step)
        assert chooser.accept() == [expected]


def test_typing_filters_list() -> None:
    chooser = Chooser(COLOURS, many=False)
    chooser.type("RE")
    assert [item.label for item in chooser.visible()] == ["Green", "Red"]
    chooser.type("x")
    assert chooser.accept() is None and chooser.lines()[0][1].strip() == "nothing matches"
    chooser.move(1)
    chooser.toggle()
    chooser.erase()
    chooser.erase()
    chooser.type("ed")
    assert chooser.accept() == ["r"]


def test_typing_without_search() -> None:
    chooser = Chooser(COLOURS, many=False, searches=False)
    chooser.move(1)
    chooser.type("RE")
    assert chooser.typed == "" and chooser.accept() == ["g"]


def test_marks_several() -> None:
    chooser = Chooser(COLOURS, chosen=["r", "other"], many=True)
    assert chooser.accept() == ["r", "other"]
    chooser.toggle()
    assert chooser.accept() == ["b", "r", "other"] and chooser.labels(["b", "other"]) == "Blue, other"
    chooser.mark_all(on=False)
    assert chooser.accept() == []
    chooser.type("gre")
    chooser.mark_all(on=True)
    assert chooser.accept() == ["g"]


def test_other_answers_require_free() -> None:
    for free, expected in ((True, ["Pink"]), (False, [])):
        chooser = Chooser(COLOURS, many=True, free=free)
        chooser.type("Pink")
        assert chooser.accept() == (None if free else [])
        assert chooser.accept() == expected


def test_long_lists_scroll() -> None:
    chooser = Chooser([Choice(str(number), f"n{number}") for number in range(50)], many=False)
    for step in range(50):
        lines = [text for _, text in chooser.lines()]
        assert len(lines) == ROWS + 1 and f"> n{step}" in lines and lines[-1] == f"  {step + 1} of 50"
        chooser.move(1)


def test_line_by_value_label_or_number() -> None:
    assert [resolve_choice(text, COLOURS) for text in ("g", "Green", "2", "4", "pink")] == ["g", "g", "g", "4", "pink"]


@contextmanager
def example(words: str, **env: str) -> Iterator[Terminal]:
    environment = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "PYTHONPATH": str(ROOT), **env}
    terminal = Terminal([sys.executable, "-m", "coder", "exp", "prompt-example", *words.split()], environment)
    try:
        yield terminal
    finally:
        terminal.close()


@pytest.mark.parametrize(
    ("words", "keys", "expected"),
    [
        ("select", [ENTER], '"Blue" selected'),
        ("select", [DOWN, DOWN, UP, ENTER], '"Green" selected'),
        ("select", [UP, ENTER], '"Red" selected'),
        ("select --search", ["ye", ENTER], '"Yellow" selected'),
        ("multi-select", [" ", DOWN, " ", ENTER], '"Blue, Green" are nice choices.'),
        ("multi-select --things a,b,c", [RIGHT, " ", ENTER], '"b, c" are nice choices.'),
        ("multi-select", [RIGHT, LEFT, ENTER], '"" are nice choices.'),
        ("multi-select --enable-custom-input", ["Pink", ENTER, ENTER], '"Pink" are nice choices.'),
    ],
)
def test_keys_at_a_terminal(words: str, keys: list[str], expected: str) -> None:
    with example(words) as terminal:
        terminal.expect("Blue|a")
        for key in keys:
            terminal.type(key)
        assert plain(terminal.rest()).splitlines()[-1] == expected
        assert terminal.code() == 0


def test_ctrl_c_restores_terminal() -> None:
    with example("select") as terminal:
        terminal.expect("Blue")
        terminal.type("\x03")
        last = terminal.rest()
        assert terminal.code() == 130
        assert last.endswith(b"\x1b[?25h")  # the cursor is visible again


@pytest.mark.parametrize(("env", "is_coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colour_is_optional(env: dict[str, str], is_coloured: bool) -> None:
    with example("select", **env) as terminal:
        seen = terminal.expect("Green")
        assert (b";36" in seen) == is_coloured
        terminal.type(ENTER)
        terminal.rest()


def test_dumb_terminal_uses_lines() -> None:
    with example("select", TERM="dumb") as terminal:
        seen = terminal.expect("favorite color: ")
        assert b"\x1b" not in seen and b"  2. Green\r\n" in seen
        terminal.type("2\n")
        assert plain(terminal.rest()).splitlines()[-1] == '"Green" selected'
