"""Look-up of commands by the words of a command line. Only the declaration of the chosen command is imported."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from coder.base.config import Option
from coder.cli.core.command import Command
from coder.cli.core.command_table import ALIASES, COMMANDS, GROUPS
from coder.cli.core.options import GLOBAL_OPTIONS, Options, OrgOption

_DECLARATIONS = "coder.cli.declarations"
OPTIONS_OF_GROUPS = {
    "external-workspaces": ("coder.cli.core.options", "OrgOption"),
    "organizations": ("coder.cli.core.options", "OrgOption"),
    "exp sync": ("coder.cli.declarations.agents.sync", "SocketOption"),
}
"""Options of groups, which apply to each of their commands, before or after the command's words."""


def command_name(words: Sequence[str]) -> str | None:
    """Return the name of the command or group that `main` would choose."""
    return choose(list(words))[0]


def choose(words: list[str]) -> tuple[str | None, list[str]]:
    """Return the longest run of leading words that names a command or group, skipping global flags, and the other
    words."""
    flags, rest = _leading_flags(words, "")
    best: tuple[str | None, list[str]] = (None, flags + rest)
    name = ""
    while rest and not rest[0].startswith("-"):
        # Resolve word by word, so that a group's alias applies to all its commands.
        name = f"{name} {rest[0]}".lstrip()
        name = ALIASES.get(name, name)
        rest = rest[1:]
        if name in COMMANDS or name in GROUPS:
            best = (name, flags + rest)
        elif not children(name):
            break
        if name in GROUPS:  # `coder organizations --org x members list`: a group's flags apply to its commands
            between, rest = _leading_flags(rest, name)
            flags += between
            best = (name, flags + rest)
    return best


def _leading_flags(words: list[str], group: str) -> tuple[list[str], list[str]]:
    """Split leading flags (global, --org, or the group's) from the words that follow; returns (flags, words)."""
    known = (*GLOBAL_OPTIONS, *OrgOption.declared, *options_of_groups(group))
    kinds = {f"--{option.flag}": option.kind for option in known}
    kinds |= {f"-{option.short}": option.kind for option in known if option.short}
    index = 0
    while index < len(words) and words[index].startswith("-") and words[index] not in {"-h", "--help"}:
        takes_value = kinds.get(words[index], "bool") != "bool"
        index += 2 if takes_value else 1
    return words[:index], words[index:]


def load(name: str) -> Command[Options]:
    """Import and return the declaration of the command with this name."""
    module, _, attribute = COMMANDS[name][0].partition(":")
    command: Command[Options] = getattr(import_module(f"{_DECLARATIONS}.{module}"), attribute)
    more = options_of_groups(name)
    return command.with_options(more) if more else command


def options_of_groups(name: str) -> tuple[Option, ...]:
    """Return the options of a command's or group's parent groups, and of the group itself."""
    options: list[Option] = []
    for group, (module, attribute) in OPTIONS_OF_GROUPS.items():
        if f"{name} ".startswith(f"{group} "):
            options += getattr(import_module(module), attribute).declared
    return tuple(options)


def children(name: str) -> list[tuple[str, str]]:
    """Return (word, summary) of the commands directly below a name; "" is the top level."""
    prefix = f"{name} " if name else ""
    summaries = {
        key[len(prefix) :]: text
        for key, (_, text) in COMMANDS.items()
        if key.startswith(prefix) and " " not in key[len(prefix) :]
    }
    summaries |= {
        key[len(prefix) :]: text
        for key, text in GROUPS.items()
        if key.startswith(prefix) and " " not in key[len(prefix) :]
    }
    return sorted(summaries.items())


def aliases_of(name: str) -> list[str]:
    """Return the aliases (last words) of a command or group."""
    return sorted(alias.rpartition(" ")[2] for alias, target in ALIASES.items() if target == name)
