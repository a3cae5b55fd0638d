"""Questions at the end of standard input: each names itself and what answers it."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from coder.cli.core.command import load
from coder.cli.core.command_table import COMMANDS
from coder.cli.core.unanswered import ANSWERS, unanswered
from tests.kit.paths import ROOT
from tests.kit.programs.command_line import run_cli

ASKING = {"ask", "ask_until", "select", "select_many"}
WITHOUT_FLAG = {
    "Confirm password:",
    "Enter new password:",
    "Select your favorite color:",
    "Select some things:",
    "Choose values:",
    "{} (separated by commas)",
    "{}{}:",
}
"""Questions that only standard input answers: repeated secrets, examples of prompts, choices at a terminal only."""


@pytest.mark.parametrize("question", ANSWERS)
def test_answers_exist(question: str) -> None:
    """A question of the table is asked by a command, and its flag is an option of one."""
    assert question in _asked()
    flags = {f"--{option.flag}" for words in COMMANDS for option in load(words).options} | {"--token"}
    for flag in re.findall(r"--[a-z-]+", ANSWERS[question]):
        assert flag in flags
    assert ANSWERS[question] in unanswered(question).message


@functools.cache
def _asked() -> dict[str, str]:
    return dict(_questions())


def _questions() -> Iterator[tuple[str, str]]:
    """Yield every question of the commands, with `{}` for values, and the file that asks it."""
    for path in (ROOT / "coder/cli").rglob("*.py"):
        source = path.read_text()
        if not any(f"{name}(" in source for name in ASKING):
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ASKING and node.args:
                question = node.args[0]
                if isinstance(question, ast.Constant) and isinstance(question.value, str):
                    yield question.value, path.name
                elif isinstance(question, ast.JoinedStr):
                    parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in question.values]
                    yield "".join(map(str, parts)), path.name


def test_every_question_has_an_answer() -> None:
    asked = _asked()
    assert len(asked) >= 20
    assert set(asked) - set(ANSWERS) == WITHOUT_FLAG


async def test_confirmation_names_yes(tmp_path: Path) -> None:
    words = ["--global-config", str(tmp_path), "login", "http://127.0.0.1:1"]
    assert "EOF" not in (await run_cli(words, home=tmp_path)).stderr
    assert "answer it with --yes" in unanswered("Delete dev?", "--yes").message
    assert "standard input" in unanswered("Which pet?").message
