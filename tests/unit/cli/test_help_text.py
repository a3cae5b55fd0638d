"""Help: wrapped to the width, with aliases and examples that can be run; tables that fit a terminal."""

from __future__ import annotations

import shlex
from statistics import mean

import pytest

from coder.base.config import Option
from coder.cli.command import GLOBAL_OPTIONS, Command, parse
from coder.cli.command_table import COMMANDS, GROUPS
from coder.cli.examples import EXAMPLES
from coder.cli.failures import version_warning
from coder.cli.help_text import help_text
from coder.cli.main import children, command_name, load, options_of_groups, other_names
from coder.cli.output import fit

STARTED_BY_PROGRAMS = {
    "completion words": "shells ask it",
    "connect exists": "OpenSSH's configuration asks it",
    "gitaskpass": "git starts it",
    "gitssh": "git starts it",
    "vscodessh": "an editor's extension starts it",
    "provisionerd start": "the former name of provisioner start",
}
"""Commands nobody types: help needs no example. What `exp` shows of prompts and errors needs none either."""
DAILY = (
    "create",
    "delete",
    "external-workspaces create",
    "external-workspaces list",
    "list",
    "login",
    "logs",
    "ping",
    "port-forward",
    "restart",
    "schedule start",
    "schedule stop",
    "show",
    "ssh",
    "start",
    "stop",
    "task create",
    "task list",
    "templates edit",
    "templates list",
    "templates push",
    "tokens create",
    "tokens list",
    "update",
    "users create",
    "users list",
    "whoami",
    "server",
    "agent install",
    "provisioner list",
    "provisioner jobs list",
)


def shown_options(name: str) -> list[Option]:
    return [option for option in load(name).options if option.flag and not option.hidden]


def test_every_command_that_people_type_has_an_example() -> None:
    shows = {name for name in COMMANDS if name.startswith(("exp prompt-example", "exp example-error"))}
    assert set(COMMANDS) - set(EXAMPLES) == STARTED_BY_PROGRAMS.keys() | shows
    assert not [name for name in DAILY if len(EXAMPLES[name]) < 2]


def test_option_texts_say_what_happens() -> None:
    options = [option for name in COMMANDS for option in shown_options(name)]
    options += [option for option in GLOBAL_OPTIONS if not option.hidden]
    assert mean(len(option.help) for option in options) >= 60
    short = {
        f"--{option.flag}: {option.help}"
        for option in options
        if len(option.help) < 30 and not option.help.startswith("Deprecated: ")
    }
    assert not short
    assert not {f"--{option.flag}: {option.help}" for option in options if not option.help.endswith(".")}


@pytest.mark.parametrize("name", [*COMMANDS, *GROUPS])
@pytest.mark.parametrize("width", [0, 60, 100])
def test_texts_are_no_wider_than_the_terminal(name: str, width: int) -> None:
    command = load(name) if name in COMMANDS else Command(name, GROUPS[name], lambda _: 0, options_of_groups(name))
    to_type = {f"  {line}" for line in command.long.splitlines() if line.startswith(" ")}
    for line in help_text(command, children(name), other_names(name), width).splitlines():
        is_whole = line in to_type or line.startswith("      $ ") or " " not in line.strip()
        assert is_whole or len(line) <= (width or 80), "80 where there is no terminal"


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_lines_of_their_command(name: str) -> None:
    for what, line in EXAMPLES[name]:
        program, *words = shlex.split(line)
        assert program == "coder"
        assert command_name(words) == name
        assert parse(load(name), words[len(name.split()) :], {}).command.words == name
        assert f"- {what}:\n\n      $ {line}\n" in help_text(load(name), width=10_000)


def test_aliases_are_told() -> None:
    assert "Aliases: ls\n" in help_text(load("list"), (), other_names("list"))


def test_the_widest_column_gives_first_and_headers_stay() -> None:
    assert fit([10, 40, 12], [4, 4, 4], 100) == [10, 40, 12]
    assert fit([10, 40, 12], [4, 4, 4], 46) == [10, 20, 12]
    assert fit([30, 30], [30, 8], 10) == [30, 8]


@pytest.mark.parametrize(
    ("own", "server", "warns"),
    [
        ("v2.34.0", "v2.34.3", False),
        ("v2.34.0", "v2.34.0-devel+abc", False),
        ("v2.34.0", "", False),
        ("v2.34.0", "v2.33.1", True),
        ("v2.34.0+x", "v3.34.0", True),
    ],
)
def test_another_release_is_told(own: str, server: str, warns: bool) -> None:
    assert bool(version_warning(own, server)) is warns
