"""Kinds of names of arguments and flags."""

from __future__ import annotations

import pytest

from coder.cli.core.command import load
from coder.cli.core.command_table import COMMANDS
from coder.cli.program.completion_names import ARGUMENT_KINDS, COMMAND_KINDS, FLAGS, KINDS, argument_kind, usage_words


def test_every_usage_word_has_kind() -> None:
    usages = {name: usage_words(load(name).usage) for name in COMMANDS}
    for name, words in usages.items():
        assert " ".join(words) == load(name).usage, name
        assert name in COMMAND_KINDS or set(words) <= ARGUMENT_KINDS.keys(), (
            f"{name}: say in ARGUMENT_KINDS what {words} name"
        )
    assert ARGUMENT_KINDS.keys() <= {word for words in usages.values() for word in words}
    assert COMMAND_KINDS.keys() <= COMMANDS.keys()
    flags = {option.flag for name in COMMANDS for option in load(name).options}
    assert FLAGS.keys() <= flags
    kinds = {*ARGUMENT_KINDS.values(), *FLAGS.values(), *(kind for kinds in COMMAND_KINDS.values() for kind in kinds)}
    known = {*KINDS, "", "always never", "manual"}
    assert {kind.removesuffix("...") for kind in kinds} == known, "a kind that is not listed or not used"


@pytest.mark.parametrize("name", [name for name in COMMANDS if "workspace" in load(name).usage.split(" ")[0]])
def test_workspace_arguments_complete(name: str) -> None:
    makes_one = name in {"create", "external-workspaces create"}
    assert argument_kind(load(name), 0) == ("" if makes_one else "workspaces")
