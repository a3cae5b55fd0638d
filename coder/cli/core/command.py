"""Commands: their declarations, look-up by words, and implementations.

A `Command` is the declaration: words, options, arguments, help. Help and completion import no more than that. The
module of the same name outside `declarations` has the implementation, a function marked with `implements`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from importlib import import_module
from typing import Generic, Never, TypeVar, cast

from coder.base import garbage
from coder.base.config import Option, OptionValue
from coder.cli.core.command_table import ALIASES, COMMANDS, GROUPS
from coder.cli.core.options import GLOBAL_OPTIONS, GlobalOptions, Options, OrgOption

O_co = TypeVar("O_co", bound=Options, covariant=True)
O_inv = TypeVar("O_inv", bound=Options)


class Command(Generic[O_co]):
    """Declaration of a command."""

    def __init__(
        self,
        words: str,
        summary: str,
        options: type[O_co],
        *,
        usage: str = "",
        min_args: int = 0,
        max_args: int | None = None,
        raw_after: int | None = None,
        long: str = "",
        examples: Sequence[tuple[str, str]] = (),
        more_options: tuple[Option, ...] = (),
    ) -> None:
        self.words = words
        'Full name without the program, e.g. "templates push".'
        self.summary = summary
        self.options_class = options
        self.usage = usage
        'Arguments as help shows them, e.g. "<workspace> [command]".'
        self.min_args = min_args
        self.max_args = max_args
        "Maximum number of arguments; None for no limit."
        self.raw_after = raw_after
        "Number of arguments after which all further words are passed on unparsed (a remote command)."
        self.long = long
        self.examples = examples
        "Descriptions and command lines."
        own = {item.flag for item in options.declared}
        self.options = (*options.declared, *(item for item in more_options if item.flag not in own))
        "Options of the class, and those declared elsewhere: by the command's groups, or by the server."

    def with_options(self, more: tuple[Option, ...]) -> Command[O_co]:
        """Return the command with the options of its groups."""
        return Command(
            self.words,
            self.summary,
            self.options_class,
            usage=self.usage,
            min_args=self.min_args,
            max_args=self.max_args,
            raw_after=self.raw_after,
            long=self.long,
            examples=self.examples,
            more_options=(*self.options, *more),
        )

    def run(self, invocation: Invocation[Options]) -> int | None:
        """Import the implementation and run it; it returns the exit code, None for 0."""
        return implementation(self.words)(invocation)


class Invocation(Generic[O_co]):
    """Parsed command line."""

    def __init__(
        self,
        command: Command[O_co],
        args: list[str],
        options: O_co,
        sources: Mapping[str, str],
        globals: GlobalOptions,
        global_sources: Mapping[str, str],
        *,
        env: Mapping[str, str],
        raw: Mapping[str, str | list[str]],
        typed: list[str],
    ) -> None:
        self.command = command
        self.args = args
        self.options = options
        self.sources = sources
        "Source of each option's value: default, env or flag."
        self.globals = globals
        self.global_sources = global_sources
        self.env = env
        self.raw = raw
        "Flags of the command line, by flag name, for servers that resolve options again with a configuration file."
        self.typed = typed
        "Words of the command line as typed, for errors."

    def given(self, name: str) -> bool:
        """Return whether the option does not have its default."""
        return self.sources[name] != "default"

    def given_values(self, keys: Mapping[str, str]) -> dict[str, OptionValue]:
        """Return the values of the options that were given, by the API's names; `keys` maps options to them."""
        values = vars(self.options)
        return {key: values[name] for name, key in keys.items() if self.given(name)}


_LARGE = frozenset({"server"})
"""Commands whose modules are so many that the collector would take a fifth of the time of loading them."""
_IMPLEMENTATIONS: dict[str, Callable[[Invocation[Never]], int | None]] = {}


def implements(
    command: Command[O_inv],
) -> Callable[[Callable[[Invocation[O_inv]], int | None]], Callable[[Invocation[O_inv]], int | None]]:
    """Mark the function that runs a command."""

    def register(function: Callable[[Invocation[O_inv]], int | None]) -> Callable[[Invocation[O_inv]], int | None]:
        _IMPLEMENTATIONS[command.words] = function
        return function

    return register


def implementation(words: str) -> Callable[[Invocation[Options]], int | None]:
    """Import and return the function that runs a command."""
    if words not in _IMPLEMENTATIONS:
        with garbage.paused() if words in _LARGE else nullcontext():
            import_module(f"coder.cli.{COMMANDS[words][0].partition(':')[0]}")
    # The declaration types both the parsed options and the function.
    return cast("Callable[[Invocation[Options]], int | None]", _IMPLEMENTATIONS[words])


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
    command: Command[Options] = getattr(import_module(f"coder.cli.declarations.{module}"), attribute)
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
