"""Text of other users on a terminal."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from coder.cli.ui import live_stages, terminal_text
from coder.cli.ui.terminal_text import TerminalText, cleaned, escaped, one_line
from tests.kit.paths import ROOT
from tests.kit.programs.command_line import Terminal

KEPT = {"\n", "\t"}
SEQUENCES = {
    "clear the screen": "\x1b[2J",
    "to the line above": "\x1b[1A",
    "beginning of the line": "\r",
    "a bell": "\x07",
    "a title": "\x1b]0;root@prod\x07",
    "a title, ended by ST": "\x1b]2;x\x1b\\",
    "the clipboard": "\x1b]52;c;aGk=\x07",
    "a link": "\x1b]8;;https://example.com\x1b\\",
    "a report": "\x1b[6n",
    "device attributes": "\x1b[>c",
    "reset": "\x1bc",
    "another character set": "\x1b(0",
    "a device string": "\x1bP$q\x1b\\",
    "eight bits": "\x9b2J",
    "eight bits, a title": "\x9d0;x\x9c",
    "kitty's": "\x1b_Ga=d\x1b\\",
    "an unended title": "\x1b]0;x",
    "the other way round": "\u202e",
    "alternate screen": "\x1b[?1049h",
    "half a sequence": "\x1b[",
    "escape": "\x1b",
}


@pytest.mark.parametrize("sequence", SEQUENCES.values(), ids=SEQUENCES)
def test_control_sequences_are_removed(sequence: str) -> None:
    result = cleaned(f"name{sequence}")
    assert result.startswith("name")
    assert "\x1b" not in result
    assert not [char for char in result if unicodedata.category(char) == "Cc"]
    assert cleaned(f"a{sequence}\nb").endswith("\nb"), "what follows is shown"


def test_control_characters_are_removed() -> None:
    for number in (*range(0x20), *range(0x7F, 0xA0)):
        char = chr(number)
        assert cleaned(f"a{char}") == (f"a{char}" if char in KEPT else "a"), hex(number)


def test_text_and_colours_stay() -> None:
    for text in ("Größe ✔ 名前 \U0001f600", "\x1b[31mred\x1b[0m", "\x1b[38;2;1;2;3mx\x1b[m", "a\tb\nc"):
        assert cleaned(text) == text
    assert cleaned("\x1b[31mred\x1b[0m\r\n", colours=False) == "red\n"


def test_json_keeps_value() -> None:
    """Characters that are unsafe on a terminal are escaped; all characters are checked."""
    for page in range(0, 0x110000, 0x100):
        if 0xD800 <= page < 0xE000:
            continue
        text = json.dumps([f"a{chr(number)}b" for number in range(page, page + 0x100)], indent=2, ensure_ascii=False)
        output = escaped(text)
        assert cleaned(output) == output, hex(page)
        assert output == text or json.loads(output) == json.loads(text), hex(page)
    assert escaped('"Größe ✔ 名前 \U0001f468\u200d\U0001f469"') == '"Größe ✔ 名前 \U0001f468\u200d\U0001f469"'


def test_one_line_stays_one() -> None:
    assert one_line("a\nb\tc\r\n\x1b[8mhidden\u2028x") == "a b c hidden\u2028x"


def test_stream_filters_text_not_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    stream = TerminalText(raw, "utf-8", "strict", line_buffering=True)
    monkeypatch.setattr(sys, "stdout", stream)
    assert stream.write("a\x1b[2Jb\n") == 7
    stream.writelines(["c\x07\n"])
    print("d\x1b]0;x\x07")
    terminal_text.command("\x1b[1A")
    stages = live_stages.LiveStages()
    stages._drawn = 2
    stages.clear()
    stream.flush()
    assert raw.getvalue() == b"ab\nc\nd\n\x1b[1A\x1b[2A\r\x1b[J"


@pytest.mark.parametrize("to_terminal", [True, False])
def test_command_filters_only_terminal(to_terminal: bool, tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "TERM": "xterm"}
    word = "nope\x1b]0;title\x07\x1b[2J"
    if to_terminal:
        terminal = Terminal([sys.executable, "-m", "coder", word], env)
        try:
            output = terminal.expect('unrecognized subcommand "nope"')
        finally:
            terminal.close()
        assert b"\x1b]0" not in output
        assert b"\x1b[2J" not in output
    else:
        done = subprocess.run(
            [sys.executable, "-m", "coder", word], env=env, check=False, capture_output=True, text=True
        )
        assert word in done.stderr
