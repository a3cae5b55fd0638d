"""Help texts: summaries, aliases, examples, width; the width of tables."""

from __future__ import annotations

import shlex
from statistics import mean

import pytest

from coder.base.config import Option
from coder.cli.core.command import Command, aliases_of, children, command_name, load, options_of_groups
from coder.cli.core.command_table import COMMANDS, GROUPS
from coder.cli.core.failures import version_warning
from coder.cli.core.options import GLOBAL_OPTIONS, Options
from coder.cli.core.parsing import parse
from coder.cli.ui.help_text import help_text
from coder.cli.ui.output import fit_widths

EXAMPLES = {name: load(name).examples for name in COMMANDS}
NOT_IMPERATIVE = {
    "update": "Will update and start a given workspace if it is out of date",
    "users list": "Prints the list of users",
}
"""Summaries (or their beginnings) of the original that are not in the imperative."""
VERBS = frozenset(
    "Activate Add Answer Archive Attach Authenticate Back Cancel Check Collect Configure Connect "
    "Coordinate Create Debug Declare Decrypt Delete Diagnose Directly Disable Display Download Edit Enable "
    "Encrypt End Expire Explain Extend Fetch Forward Generate Get Go Import Install List Manage Manually Mark "
    "Offer Open Output Pause Personalize Ping Print Prompt Promote Pull Push Regenerate Remove Rename Reset Restart "
    "Restore Resume Revoke Roll Rotate Run Schedule Send Serve Set Share Show Simulate Start Stop Suspend "
    "Toggle Trace Unarchive Unauthenticate Unlink Update Upgrade Verify View Wait".split()
)
"""Imperative verbs (two after an adverb) that summaries begin with; extend the list with common verbs."""
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


def visible_options(name: str) -> list[Option]:
    return [option for option in load(name).options if option.flag and not option.hidden]


def test_every_command_has_examples() -> None:
    assert not [name for name in COMMANDS if not EXAMPLES[name]]
    assert not [name for name in DAILY if len(EXAMPLES[name]) < 2]


def test_summaries_are_imperative() -> None:
    """Checks the summaries of the command table, of the commands and of the groups."""
    summaries = [(name, summary) for name, (_, summary) in COMMANDS.items()]
    summaries += [(name, load(name).summary) for name in COMMANDS]
    summaries += GROUPS.items()
    other = {f"{name}: {text}" for name, text in summaries if text.split()[0].rstrip(",") not in VERBS}
    exempt = tuple(f"{name}: {text}" for name, text in NOT_IMPERATIVE.items())
    assert not {line for line in other if not line.startswith(exempt)}


def test_option_help_is_a_full_sentence() -> None:
    options = [option for name in COMMANDS for option in visible_options(name)]
    options += [option for option in GLOBAL_OPTIONS if not option.hidden]
    assert mean(len(option.help) for option in options) >= 60
    short = {
        f"--{option.flag}: {option.help}"
        for option in options
        if len(option.help) < 30 and not option.help.startswith("Deprecated: ")
    }
    assert not short
    assert not {f"--{option.flag}: {option.help}" for option in options if not option.help.endswith(".")}


def group(name: str) -> Command[Options]:
    return Command(name, GROUPS[name], Options, more_options=options_of_groups(name))


@pytest.mark.parametrize("name", [*COMMANDS, *GROUPS])
@pytest.mark.parametrize("width", [0, 60, 100])
def test_help_wraps_to_terminal_width(name: str, width: int) -> None:
    command = load(name) if name in COMMANDS else group(name)
    to_type = {f"  {line}" for line in command.long.splitlines() if line.startswith(" ")}
    for line in help_text(command, children(name), aliases_of(name), width).splitlines():
        is_whole = line in to_type or line.startswith("      $ ") or " " not in line.strip()
        assert is_whole or len(line) <= (width or 80), "80 where there is no terminal"


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_parse(name: str) -> None:
    for description, line in EXAMPLES[name]:
        program, *words = shlex.split(line)
        assert program == "coder"
        assert command_name(words) == name
        assert parse(load(name), words[len(name.split()) :], {}).command.words == name
        assert f"- {description}:\n\n      $ {line}\n" in help_text(load(name), width=10_000)


def test_help_lists_aliases() -> None:
    assert "Aliases: ls\n" in help_text(load("list"), (), aliases_of("list"))


def test_widest_column_shrinks_first() -> None:
    assert fit_widths([10, 40, 12], [4, 4, 4], 100) == [10, 40, 12]
    assert fit_widths([10, 40, 12], [4, 4, 4], 46) == [10, 20, 12]
    assert fit_widths([30, 30], [30, 8], 10) == [30, 8]


@pytest.mark.parametrize(
    ("own", "server", "warns"),
    [
        ("v2.34.0", "v2.34.3", False),
        ("v2.34.0", "v2.34.0-devel+abc", False),
        ("v2.34.0", "v0.0.0-devel", False),
        ("v2.34.0", "v0.0.0-devel+5b1c3f2", False),
        ("v2.33.0-devel+abc", "v2.34.0", False),
        ("v2.34.0", "v2.33.0+devel-abc", True),
        ("v2.34.0", "v2.33.0-rc.1", True),
        ("v2.34.0", "", False),
        ("v2.34.0", "v2.33.1", True),
        ("v2.34.0+x", "v3.34.0", True),
    ],
)
def test_version_warning(own: str, server: str, warns: bool) -> None:
    assert bool(version_warning(own, server)) is warns
