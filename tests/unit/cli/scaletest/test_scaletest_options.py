"""Options of scale tests: each is used by its command, or rejected with a reason."""

from __future__ import annotations

import ast
import importlib
import inspect
from datetime import timedelta
from types import ModuleType
from typing import cast

import pytest

from coder.base.config import Option
from coder.cli.core.command import Command, implementation, load
from coder.cli.core.command_table import COMMANDS
from coder.cli.core.parsing import parse
from coder.cli.core.unsupported import unsupported
from coder.cli.declarations.scaletest.runs import CleanupOptions, RunOptions
from coder.cli.scaletest.runs import UNSUPPORTED, check_outputs

WORDS = [words for words in COMMANDS if words.startswith("exp scaletest ")]
PACKAGE = "coder.cli.scaletest"
CASES = [
    pytest.param(words, option, id=f"{words} --{option.flag}") for words in WORDS for option in load(words).options
]


def non_default_value(option: Option) -> str:
    """Return a valid value of the option that is not its default."""
    if option.choices:
        return next(choice for choice in option.choices if choice != option.default)
    if isinstance(option.default, timedelta):
        return "17s"
    return {"bool": str(not option.default).lower(), "int": "7"}.get(option.kind, "other")


def options_read_by(module: ModuleType, name: str, seen: set[tuple[str, str]]) -> set[str]:
    """Return the options that the function and its callees in this package read."""
    if (module.__name__, name) in seen:
        return set()
    seen.add((module.__name__, name))
    options: set[str] = set()
    for node in ast.walk(ast.parse(inspect.getsource(getattr(module, name)))):
        match node:
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id="invocation"), attr="options"), attr=option):
                options.add(option)
            case ast.Name(id=other) if inspect.isfunction(value := getattr(module, other, None)):
                if value.__module__.startswith(PACKAGE):
                    options |= options_read_by(importlib.import_module(value.__module__), other, seen)
    return options


@pytest.mark.parametrize("words", WORDS)
def test_options_are_used_or_rejected(words: str) -> None:
    command = load(words)
    run = implementation(words)
    read = options_read_by(importlib.import_module(run.__module__), run.__name__, set())
    assert {option.name for option in command.options if not option.hidden} == read
    assert {option.name for option in command.options if option.hidden} <= set(UNSUPPORTED)


@pytest.mark.parametrize(("words", "option"), CASES)
def test_rejected_options_are_hidden(words: str, option: Option) -> None:
    invocation = parse(load(words), [f"--{option.flag}={non_default_value(option)}"], {})
    assert bool(list(unsupported(invocation, UNSUPPORTED))) == option.hidden


@pytest.mark.parametrize(
    "words", [words for words in WORDS if "concurrency" in {option.name for option in load(words).options}]
)
def test_cleanup_variables_affect_only_cleanup(words: str) -> None:
    env = {option.env: non_default_value(option) for option in CleanupOptions.declared}
    command = cast("Command[RunOptions]", load(words))
    check_outputs(parse(command, [], env))
