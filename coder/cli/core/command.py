"""Commands and the parser of their command lines.

A `Command` is data: words, options, arguments, the function to run. `parse` turns argv into an `Invocation` without
side effects. Error texts are the original's, so that scripts that match on them keep working.
Options are `coder.base.config.Option`s: default < environment < flag.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from coder.base.config import LIST_KINDS, Inputs, Option, resolve
from coder.base.duration import format_duration
from coder.base.errors import CoderError


class UsageError(CoderError):
    """Invalid command line; the message is printed verbatim, and the exit code is 1."""

    def __init__(self, message: str) -> None:
        super().__init__("usage", message)


@dataclass(frozen=True, slots=True)
class Command:
    """Command of the program."""

    words: str
    'Full name without the program, e.g. "templates push".'
    summary: str
    run: Callable[[Invocation], int | None]
    options: tuple[Option, ...] = ()
    usage: str = ""
    'Arguments as help shows them, e.g. "<workspace> [command]".'
    min_args: int = 0
    max_args: int | None = None
    "Maximum number of arguments; None for no limit."
    raw_after: int | None = None
    "Number of arguments after which all further words are passed on unparsed (a remote command)."
    long: str = ""


@dataclass(slots=True)
class Invocation:
    """Parsed command line."""

    command: Command
    args: list[str]
    options: Mapping[str, Any]
    "Command options by name."
    sources: Mapping[str, str]
    globals: Mapping[str, Any]
    argv: list[str] = field(default_factory=list)
    env: Mapping[str, str] = field(default_factory=dict)
    raw: Mapping[str, Any] = field(default_factory=dict)
    "Flags of the command line, by flag name, for servers that resolve options again with a configuration file."
    global_sources: Mapping[str, str] = field(default_factory=dict)
    typed: list[str] = field(default_factory=list)
    "Words of the command line as typed, for errors."

    def __getitem__(self, name: str) -> Any:
        return self.options[name]

    def given(self, name: str) -> bool:
        """Return whether the option does not have its default."""
        return self.sources[name] != "default"


GLOBAL_OPTIONS = (
    Option(
        "url",
        "url",
        "CODER_URL",
        help="Address of the deployment, like https://coder.example.com; defaults to the last login.",
    ),
    Option(
        "token",
        "token",
        "CODER_SESSION_TOKEN",
        secret=True,
        help="Session token for this command instead of the one that login stores.",
    ),
    Option(
        "config_dir",
        "global-config",
        "CODER_CONFIG_DIR",
        help="Directory where login stores address and token; defaults to the user's configuration directory.",
    ),
    Option(
        "header",
        "header",
        "CODER_HEADER",
        kind="string-array",
        help="Send this header, name=value, with every request; may be repeated.",
    ),
    Option(
        "header_command",
        "header-command",
        "CODER_HEADER_COMMAND",
        help="Run this command before requests and send its output as headers, one name=value a line.",
    ),
    Option(
        "client_tls_ca_file",
        "client-tls-ca-file",
        "CODER_CLIENT_TLS_CA_FILE",
        help="PEM file of a certificate authority to trust for the server's certificate, like ca.pem.",
    ),
    Option(
        "client_tls_cert_file",
        "client-tls-cert-file",
        "CODER_CLIENT_TLS_CERT_FILE",
        help="PEM file of the client certificate for servers that request one; requires the key too.",
    ),
    Option(
        "client_tls_key_file",
        "client-tls-key-file",
        "CODER_CLIENT_TLS_KEY_FILE",
        help="PEM file of the private key that belongs to the client certificate.",
    ),
    Option(
        "no_feature_warning",
        "no-feature-warning",
        "CODER_NO_FEATURE_WARNING",
        kind="bool",
        default=False,
        help="Accepted for older scripts, without effect: no feature requires a license.",
    ),
    Option(
        "no_version_warning",
        "no-version-warning",
        "CODER_NO_VERSION_WARNING",
        kind="bool",
        default=False,
        help="Suppress the warning when the versions of client and server differ.",
    ),
    Option(
        "disable_direct",
        "disable-direct-connections",
        "CODER_DISABLE_DIRECT_CONNECTIONS",
        kind="bool",
        default=False,
        help="Reach workspaces through relays only, never directly from this machine.",
    ),
    Option(
        "disable_network_telemetry",
        "disable-network-telemetry",
        "CODER_DISABLE_NETWORK_TELEMETRY",
        kind="bool",
        default=False,
        help="Accepted for older scripts, without effect: no network telemetry is sent.",
    ),
    Option(
        "use_keyring",
        "use-keyring",
        "CODER_USE_KEYRING",
        kind="bool",
        default=False,
        help="Store the session token in the system's keyring (macOS Keychain, Windows Credential Manager, "
        "Secret Service) instead of a file.",
    ),
    Option(
        "verbose",
        "verbose",
        "CODER_VERBOSE",
        kind="bool",
        default=False,
        short="v",
        help="Print each request with its status to standard error, and more details of errors.",
    ),
    Option(
        "force_tty",
        "force-tty",
        "CODER_FORCE_TTY",
        kind="bool",
        default=False,
        help="Make `coder ssh` open a remote terminal even if standard input is not a terminal.",
    ),
    Option("no_open", "no-open", "CODER_NO_OPEN", kind="bool", default=False, hidden=True),
    Option(
        "debug_options",
        "debug-options",
        kind="bool",
        default=False,
        help="Print every option with its value and source, then exit without running the command.",
    ),
)

YES = Option(
    "yes",
    "yes",
    short="y",
    kind="bool",
    default=False,
    help="Skip confirmation prompts, for use in scripts.",
)
ORG = Option(
    "org",
    "org",
    "CODER_ORGANIZATION",
    short="O",
    help="Organization to use, by name or id; required if you belong to several.",
)


def output_option(choices: tuple[str, ...] = ("table", "json"), default: str = "table") -> Option:
    return Option(
        "output",
        "output",
        short="o",
        default=default,
        choices=choices,
        help="Output format: text for people or JSON for scripts.",
    )


def column_option(columns: Sequence[str], default: Sequence[str]) -> Option:
    return Option(
        "column",
        "column",
        short="c",
        kind="string-array",
        default=tuple(default),
        choices=tuple(columns),
        help="Columns of the table, in this order, separated by commas.",
    )


def parse(
    command: Command,
    argv: Sequence[str],
    env: Mapping[str, str],
    typed: Sequence[str] | None = None,
    *,
    is_group: bool = False,
) -> Invocation:
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
    values, sources = resolved.values, resolved.sources
    return Invocation(command, args, values, sources, glob.values, list(argv), env, own, glob.sources, list(line))


def _count_message(command: Command, args: Sequence[str], *, is_group: bool) -> str:
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


def usage_error(command: Command, typed: Sequence[str], message: str) -> UsageError:
    """Return the error of an invalid line, with the line as typed."""
    return UsageError(f'parsing flags ({_go_list(typed)}) for "{f"coder {command.words}".rstrip()}": {message}')


@dataclass(slots=True)
class CommandLine:
    """Words of a command line, split into flags and arguments without validation."""

    args: list[str] = field(default_factory=list)
    flags: list[_ParsedFlag] = field(default_factory=list)
    "Flags in the order of the line; the value is None if the line ends before it."
    own: int = 0
    "Number of words before `--` or a remote command."

    @property
    def pending(self) -> Option | None:
        """Option whose value is the next word."""
        return self.flags[-1][0] if self.flags and self.flags[-1][1] is None else None


def scan(command: Command, argv: Sequence[str]) -> CommandLine:
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


def _split(command: Command, argv: list[str], typed: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    result, flags = scan(command, argv), dict[str, Any]()
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


def _store(command: Command, typed: Sequence[str], flags: dict[str, Any], option: Option, value: str) -> None:
    from coder.cli.core import flag_values  # most lines have no flags

    message = flag_values.fault(option, value)
    if message:
        label = f"-{option.short}, --{option.flag}" if option.short else f"--{option.flag}"
        raise usage_error(command, typed, f'invalid argument "{value}" for "{label}" flag: {message}')
    if option.kind in LIST_KINDS:
        flags.setdefault(option.flag, []).append(value)
    else:
        flags[option.flag] = value


def option_report(invocation: Invocation) -> str:
    """Return the output of `--debug-options`: every option with its value (secrets masked) and its source."""
    rows = [("Option", "Value", "Value Source")]
    sides = (
        (invocation.command.options, invocation.options, invocation.sources),
        (GLOBAL_OPTIONS, invocation.globals, invocation.global_sources),
    )
    for options, values, sources in sides:
        for option in options:
            value = values[option.name]
            text = "***" if option.secret and value else format_value(value)
            rows.append((option.flag or option.name, text, sources[option.name]))
    widths = [max(len(row[index]) for row in rows) for index in range(2)]
    return "".join(
        f"{name.ljust(widths[0])}  {value_text.ljust(widths[1])}  {source}\n" for name, value_text, source in rows
    )


def format_value(value: Any) -> str:
    """Return an option's value as a user writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return ",".join(str(item) for item in value)
    if isinstance(value, timedelta):
        return format_duration(value)
    return str(value)
