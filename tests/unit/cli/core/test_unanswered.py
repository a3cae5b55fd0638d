"""Questions at the end of standard input: each names itself and what answers it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from coder.cli.core.command import load
from coder.cli.core.command_table import COMMANDS
from coder.cli.core.unanswered import ANSWERS, unanswered
from tests.kit.paths import ROOT
from tests.kit.programs.command_line import run_cli


@pytest.mark.parametrize("question", ANSWERS)
def test_answers_exist(question: str) -> None:
    """A question of the table is asked by a command, and its flag is an option of one."""
    sources = [path.read_text() for path in (ROOT / "coder/cli").rglob("*.py") if path.name != "unanswered.py"]
    assert any(f'"{question}"' in source for source in sources)
    flags = {f"--{option.flag}" for words in COMMANDS for option in load(words).options} | {"--token"}
    for flag in re.findall(r"--[a-z-]+", ANSWERS[question]):
        assert flag in flags
    assert ANSWERS[question] in unanswered(question).message


async def test_confirmation_names_yes(tmp_path: Path) -> None:
    words = ["--global-config", str(tmp_path), "login", "http://127.0.0.1:1"]
    assert "EOF" not in (await run_cli(words, home=tmp_path)).stderr
    assert "answer it with --yes" in unanswered("Delete dev?", "--yes").message
    assert "standard input" in unanswered("Which pet?").message
