"""Parser of command lines.

`parse` turns argv into an `Invocation` without side effects. Error texts are the original's, so that scripts that match
on them keep working. Default < environment < flag.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TypeVar

from coder.base.config import LIST_KINDS, Inputs, Option, resolve
from coder.base.duration import format_duration
from coder.base.errors import CoderError
from coder.cli.core.command import Command, Invocation
from coder.cli.core.options import GLOBAL_OPTIONS, GlobalOptions, Options

O_inv = TypeVar("O_inv", bound=Options)


class UsageError(CoderError):
    """Invalid command line; the message is printed verbatim, and the exit code is 1."""

    def __init__(self, message: str) -> None:
        super().__init__("usage", message)


def parse(
    command: Command[O_inv],
    argv: Sequence[str],
    env: Mapping[str, str],
    typed: Sequence[str] | None = None,
    *,
    is_group: bool = False,
) -> Invocation[O_inv]:
    """Parse `argv` (without program and command words). Raise UsageError, which shows the line as typed.

    `is_group`: the command has subcommands, so an extra word is an unknown subcommand.
    """
    line = [*command.words.split(), *argv] if typed is None else typed
    flags, args = _split(command, list(argv), line)
    own = {option.flag: flags[option.flag] for option in command.options if option.flag in flags}
    shared = {option.flag: flags[option.flag] for option in GLOBAL_OPTIONS if option.flag in flags}
    try:
        resolved = resolve(command.options, Inputs(flags=own, env=env))
        glob = resolve(GLOBAL_OPTIONS, Inputs(flags=shared, env=env))
    except CoderError as error:
        raise usage_error(command, line, error.message) from error
    low, high = command.min_args, command.max_args
    hint = f"Usage: coder {command.words} {command.usage}".rstrip() if command.usage else ""
    if not low <= len(args) <= (len(args) if high is None else high):
        raise CoderError("usage", _count_message(command, args, is_group=is_group), hint)
    if (
        "" in args[: command.raw_after]
    ):  # an unset variable of a script: in a URL path an empty argument would name another resource
        raise CoderError("usage", f"argument {args.index('') + 1} is empty", hint)
    return Invocation(
        command,
        args,
        command.options_class(**resolved.values),
        resolved.sources,
        GlobalOptions().replaced(glob.values),
        glob.sources,
        env=env,
        raw=own,
        typed=list(line),
    )


def _count_message(command: Command[Options], args: Sequence[str], *, is_group: bool) -> str:
    low, high, got = command.min_args, command.max_args, len(args)
    if low == high == 0:
        return f'unrecognized subcommand "{args[0]}"' if is_group else f"wanted no args but got {got} {_go_list(args)}"
    if low == high:
        return f"wanted {low} args but got {got} {_go_list(args)}"
    return (
        f"wanted at least {low} args but got {got}"
        if high is None
        else (f"wanted between {low} and {high} args but got {got}")
    )


def _go_list(words: Sequence[str]) -> str:
    return f"[{' '.join(words)}]"


def usage_error(command: Command[Options], typed: Sequence[str], message: str) -> UsageError:
    """Return the error of an invalid line, with the line as typed."""
    return UsageError(f'parsing flags ({_go_list(typed)}) for "{f"coder {command.words}".rstrip()}": {message}')


class CommandLine:
    """Words of a command line, split into flags and arguments without validation."""

    def __init__(self) -> None:
        self.args: list[str] = []
        self.flags: list[_ParsedFlag] = []
        "Flags in the order of the line; the value is None if the line ends before it."
        self.own = 0
        "Number of words before `--` or a remote command."

    @property
    def pending(self) -> Option | None:
        """Option whose value is the next word."""
        return self.flags[-1][0] if self.flags and self.flags[-1][1] is None else None


def scan(command: Command[Options], argv: Sequence[str]) -> CommandLine:
    """Split `argv` (without program and command words) into flags with values and arguments."""
    options = {option.flag: option for option in (*GLOBAL_OPTIONS, *command.options) if option.flag}
    shorts = {option.short: option for option in (*GLOBAL_OPTIONS, *command.options) if option.short}
    result, index = CommandLine(), 0
    while index < len(argv):
        word = argv[index]
        if word == "--":
            result.args += argv[index + 1 :]
            break
        if not word.startswith("-") or word == "-":
            if command.raw_after is not None and len(result.args) >= command.raw_after:
                result.args += argv[index:]
                break
            result.args.append(word)
        else:
            for option, value, message in (
                _long_flag(word, options) if word[1] == "-" else _short_flags(word[1:], shorts)
            ):
                argument = value
                if option is not None and value is None:
                    index += 1
                    argument = argv[index] if index < len(argv) else None
                result.flags.append((option, argument, message))
        index += 1
    result.own = min(index, len(argv))
    return result


def _split(
    command: Command[Options], argv: list[str], typed: Sequence[str]
) -> tuple[dict[str, str | list[str]], list[str]]:
    result, flags = scan(command, argv), dict[str, str | list[str]]()
    for option, value, message in result.flags:
        if option is None:
            raise usage_error(command, typed, message)
        if value is None:
            raise usage_error(command, typed, f"flag needs an argument: {message}")
        _store(command, typed, flags, option, value)
    return flags, result.args


_ParsedFlag = tuple[Option | None, str | None, str]
"""Option (None on error); its value (None if that is the next word); the error text, or the flag."""


def _long_flag(word: str, options: Mapping[str, Option]) -> list[_ParsedFlag]:
    name, equals, value = word[2:].partition("=")
    if not name or name.startswith("-"):
        return [(None, None, f"bad flag syntax: {word}")]
    option = options.get(name)
    if option is None:
        return [(None, None, f"unknown flag: --{name}")]
    return [(option, value if equals else "true" if option.kind == "bool" else None, word)]


def _short_flags(letters: str, shorts: Mapping[str, Option]) -> list[_ParsedFlag]:
    """Split short flags (`-ay`, `-n5`, `-n=5`): combined switches, of which the last can have a value."""
    results: list[_ParsedFlag] = []
    while letters:
        letter, tail = letters[0], letters[1:]
        option = shorts.get(letter)
        if option is None:
            return [*results, (None, None, f"unknown shorthand flag: '{letter}' in -{letters}")]
        if option.kind == "bool" and not (tail.startswith("=") and len(tail) > 1):
            results.append((option, "true", ""))
            letters = tail
            continue
        value = tail.removeprefix("=") if len(tail) > 1 else tail
        return [*results, (option, value or None, f"'{letter}' in -{letters}")]
    return results


def _store(
    command: Command[Options], typed: Sequence[str], flags: dict[str, str | list[str]], option: Option, value: str
) -> None:
    from coder.cli.core import flag_values  # most lines have no flags

    message = flag_values.fault(option, value)
    if message:
        label = f"-{option.short}, --{option.flag}" if option.short else f"--{option.flag}"
        raise usage_error(command, typed, f'invalid argument "{value}" for "{label}" flag: {message}')
    if option.kind in LIST_KINDS:
        before = flags.setdefault(option.flag, [])
        if isinstance(before, list):
            before.append(value)
    else:
        flags[option.flag] = value


def option_report(invocation: Invocation[Options]) -> str:
    """Return the output of `--debug-options`: every option with its value (secrets masked) and its source."""
    from coder.net.masking import shown_setting  # not for every short command

    rows = [("Option", "Value", "Value Source")]
    sides = (
        (invocation.command.options, vars(invocation.options), invocation.sources),
        (GLOBAL_OPTIONS, vars(invocation.globals), invocation.global_sources),
    )
    for options, values, sources in sides:
        for option in options:
            value = values[option.name]
            text = "***" if option.secret and value else format_value(shown_setting(value))
            rows.append((option.flag or option.name, text, sources[option.name]))
    widths = [max(len(row[index]) for row in rows) for index in range(2)]
    return "".join(
        f"{name.ljust(widths[0])}  {value_text.ljust(widths[1])}  {source}\n" for name, value_text, source in rows
    )


def format_value(value: object) -> str:
    """Return an option's value as a user writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return ",".join(str(item) for item in value)
    if isinstance(value, timedelta):
        return format_duration(value)
    return str(value)
