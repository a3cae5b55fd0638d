"""Output of commands: on a terminal, each row is one line, and JSON keeps its value."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from typing import Any

import pytest

from coder.cli.ui import output
from coder.cli.ui.output import cut
from coder.cli.ui.terminal_text import TerminalText
from tests.kit.paths import ROOT

NAMES = [
    "plain",
    "Größe",
    "名前",
    "اسم",
    "שם",
    "नमस्ते",
    "e\u0301",
    "\U0001f600",
    "\u26a0\ufe0f",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
]


class Screen(TerminalText):
    def __init__(self) -> None:
        self.raw = io.BytesIO()
        super().__init__(self.raw, "utf-8")

    def isatty(self) -> bool:
        return True

    def shown(self) -> str:
        self.flush()
        return self.raw.getvalue().decode()


def opened(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """Replace standard output."""
    created = Screen()
    monkeypatch.setattr(sys, "stdout", created)
    return created


def _cells(text: str) -> int:
    return output._width(text)


@pytest.mark.parametrize("name", NAMES)
def test_names_of_any_script_align(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = opened(monkeypatch)
    output.print_table(["name", "next"], [{"name": "x" * 30, "next": "|"}, {"name": name, "next": "|"}])
    _, first, second = screen.shown().splitlines()
    assert second.startswith(name)
    assert _cells(second[: second.index("|")]) == _cells(first[: first.index("|")]) == 32


@pytest.mark.parametrize(
    ("text", "cells"),
    [("ab", 2), ("名前", 4), ("e\u0301", 1), ("नमस्ते", 4), ("\u200f", 0), ("\U0001f600", 2), ("\u26a0\ufe0f", 1)],
)
def test_cells(text: str, cells: int) -> None:
    assert _cells(text) == cells


@pytest.mark.parametrize("text", ["x" * 100, "名" * 100, "e\u0301" * 100, "a名" * 50])
@pytest.mark.parametrize("width", [0, 1, 2, 3, 40, 99, 100, 101, 200, 300])
def test_cut_fills_width(text: str, width: int) -> None:
    result = cut(text, width)
    if _cells(text) <= width:
        assert result == text
        return
    assert result[-1] == "…" and text.startswith(result[:-1])
    assert _cells(result) <= max(width, 1)
    assert _cells(result) >= width - 1


def test_cut_of_endless_line() -> None:
    class CountedText(str):
        read = 0

        def __iter__(self) -> Any:
            for char in super().__iter__():
                CountedText.read += 1
                yield char

    assert len(cut(CountedText("名" * 100_000), 80)) == 40
    assert CountedText.read <= 81


def test_cell_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = opened(monkeypatch)
    hostile = "mine\nadmin  owner\n\x1b[8m\tx\x1b[2J"
    output.print_table(["name", "role"], [{"name": hostile, "role": "member"}, {"name": "b", "role": "owner"}])
    lines = screen.shown().splitlines()
    assert len(lines) == 3
    assert lines[1].startswith("mine admin  owner  x  ")
    assert "\x1b[8m" not in screen.shown()


def test_pipe_gets_unchanged_cells(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table(["name"], [{"name": "a\x1b[8m"}])
    output.print_json({"name": "\x9b2J"})
    shown = capsys.readouterr().out
    assert "a\x1b[8m" in shown and "\x9b2J" in shown


def test_json_on_terminal_keeps_value(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = opened(monkeypatch)
    value = {"name": "a\x1b[2Jb\x9b\x7f\u202ec\u2066 名前 \n\t"}
    output.print_json(value)
    assert json.loads(screen.shown()) == value
    assert "\x9b" not in screen.shown() and "名前" in screen.shown()


@pytest.mark.parametrize("encoding", ["ascii", "iso8859-1", "cp1252", "utf-8"])
def test_output_is_utf8_in_every_locale(encoding: str) -> None:
    """A legacy locale must not end a command in the middle of its work."""
    program = "import sys; from coder.cli.main import main; main(['version']); print(chr(0x29D7), file=sys.%s)"
    environment = {**os.environ, "PYTHONIOENCODING": f"{encoding}:strict", "PYTHONPATH": str(ROOT)}
    for stream in ("stdout", "stderr"):
        command = [sys.executable, "-c", program % stream]
        done = subprocess.run(command, env=environment, capture_output=True, check=True)
        assert "\u29d7".encode() in getattr(done, stream)
