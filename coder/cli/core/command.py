"""Commands and their command lines.

A `Command` is the declaration: words, options, arguments, help. Help and completion import no more than that. The
module of the same name outside `declarations` has the implementation, a function marked with `implements`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Generic, Never, TypeVar, cast

from coder.base.config import Option
from coder.cli.core.command_table import COMMANDS
from coder.cli.core.options import GlobalOptions, Options

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

    def given_values(self, keys: Mapping[str, str]) -> dict[str, object]:
        """Return the values of the options that were given, by the API's names; `keys` maps options to them."""
        values = vars(self.options)
        return {key: values[name] for name, key in keys.items() if self.given(name)}


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
        import_module(f"coder.cli.{COMMANDS[words][0].partition(':')[0]}")
    # The declaration types both the parsed options and the function.
    return cast("Callable[[Invocation[Options]], int | None]", _IMPLEMENTATIONS[words])
