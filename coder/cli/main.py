"""Entry point: find the command of argv and run it. Only that command's module is imported, for a fast start."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from coder.cli.command_table import ALIASES, COMMANDS, GROUPS

DAEMONS = frozenset({"agent", "provisioner start", "provisionerd start", "server", "workspace-proxy server"})
"""Commands whose errors are read later in a log, so hints are printed there too."""


OPTIONS_OF_GROUPS = {
    "external-workspaces": "command:ORG",
    "organizations": "command:ORG",
    "exp sync": "agents.sync:SOCKET",
}
"""Options of groups, which apply to each of their commands, before or after the command's words."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code: 0, the command's own, or 1 for a failure."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["sandbox-worker"]:
        return _serve_sandbox(words[1:])
    if words == ["command-server"]:
        return _serve_commands()
    _open_standard_descriptors()
    _write_utf8()
    _keep_order()
    _filter_terminals()
    if _is_completion():
        return _invoke(load("completion words"), ["--", *words])
    if words and words[0] == "--version":
        words = ["version", *words[1:]]
    if len(words) == 1 and words[0].startswith(("Username for '", "Password for '")):
        words = ["gitaskpass", *words]  # git calls askpass programs with the prompt as their only argument
    try:
        return _run(words)
    except ModuleNotFoundError as error:
        from coder.cli.edition import explain_missing

        return explain_missing(error)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of the output (head, grep -q) closed the pipe.
        sys.stderr.close()
        return 141


def command_name(words: Sequence[str]) -> str | None:
    """Return the name of the command or group that `main` would choose."""
    return choose(list(words))[0]


def _serve_sandbox(limits: list[str]) -> int:
    """Run the sandbox process that a server starts to evaluate templates; users do not call it."""
    # Import by name, as for commands: the slim edition has no server but imports this module.
    from importlib import import_module

    worker = import_module("coder.coderd.services.templates.sandbox_worker")
    cpu_seconds, memory = limits
    return int(worker.serve(int(cpu_seconds), int(memory)))


def _serve_commands() -> int:
    """Run the command server that the launcher starts (build/command_client.c); users do not call it."""
    from coder.base.config import process_environment

    env = process_environment()
    if "CODER_COMMAND_SERVER_SOCKET" not in env:
        return _run(["command-server"])
    from coder.cli.command_server.listener import serve

    modules = {name: f"coder.cli.{location.partition(':')[0]}" for name, (location, _) in COMMANDS.items()}
    return serve(env, modules, main, command_name)


def _open_standard_descriptors() -> None:
    """Open /dev/null for closed standard streams: otherwise the next file or socket gets their descriptor."""
    import os

    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            setattr(sys, name, open(number, mode, closefd=False, encoding="utf-8"))  # noqa: SIM115


def _write_utf8() -> None:
    """Write UTF-8 in every locale, as upstream. A legacy encoding, also that of redirected output on Windows, has no
    characters for parts of the progress: the command would end between the steps of its work."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None and stream.encoding.lower().replace("-", "") != "utf8":
            reconfigure(encoding="utf-8")


def _keep_order() -> None:
    """Keep the order of results and messages if both streams are one file (`2>&1`): a log shows them as written.

    Python buffers a stdout that is no terminal, and every message on stderr would come first.
    """
    import os

    reconfigure = getattr(sys.stdout, "reconfigure", None)
    try:
        is_same = os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except (OSError, ValueError):  # replaced by a stream without a descriptor, or closed
        return
    if is_same and reconfigure is not None:
        reconfigure(line_buffering=True)


def _filter_terminals() -> None:
    """Filter the standard streams, so that text of other users cannot control the terminal."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream.isatty():
            from coder.cli.terminal_text import filtered

            setattr(sys, name, filtered(stream))


def _is_completion() -> bool:
    """Return whether a shell requests completions: the original's completion scripts set this variable."""
    from coder.base.config import process_environment

    return "COMPLETION_MODE" in process_environment()


def _run(words: list[str]) -> int:
    name, rest = choose(words)
    if name is None or name not in COMMANDS:
        return _group(name or "", rest, words, _requests_help(rest[: rest.index("--")] if "--" in rest else rest))
    from coder.cli.command import scan

    command = load(name)
    if _requests_help(rest[: scan(command, rest).own]):
        from coder.cli.help_text import help_text

        sys.stdout.write(help_text(command, children(name), aliases_of(name)))
        return 0
    return _invoke(command, rest, words)


def _requests_help(words: list[str]) -> bool:
    return any(word in {"-h", "--help"} for word in words)


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
    from coder.cli.command import GLOBAL_OPTIONS, ORG

    known = (*GLOBAL_OPTIONS, ORG, *options_of_groups(group))
    kinds = {f"--{option.flag}": option.kind for option in known}
    kinds |= {f"-{option.short}": option.kind for option in known if option.short}
    index = 0
    while index < len(words) and words[index].startswith("-") and words[index] not in {"-h", "--help"}:
        takes_value = kinds.get(words[index], "bool") != "bool"
        index += 2 if takes_value else 1
    return words[:index], words[index:]


def load(name: str):  # type: ignore[no-untyped-def]
    """Import and return the `Command` with this name."""
    from importlib import import_module

    module, _, attribute = COMMANDS[name][0].partition(":")
    command = getattr(import_module(f"coder.cli.{module}"), attribute)
    own = {option.flag for option in command.options}
    if more := tuple(option for option in options_of_groups(name) if option.flag not in own):
        from dataclasses import replace

        return replace(command, options=(*command.options, *more))
    return command


def options_of_groups(name: str):  # type: ignore[no-untyped-def]
    """Return the `Option`s of a command's or group's parent groups, and of the group itself."""
    from importlib import import_module

    options = []
    for group, location in OPTIONS_OF_GROUPS.items():
        if f"{name} ".startswith(f"{group} "):
            module, _, attribute = location.partition(":")
            options.append(getattr(import_module(f"coder.cli.{module}"), attribute))
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


def _group(name: str, rest: list[str], typed: list[str], requests_help: bool) -> int:
    from coder.cli.command import GLOBAL_OPTIONS, Command, UsageError, parse
    from coder.cli.help_text import help_text

    options = options_of_groups(name) if name else GLOBAL_OPTIONS
    summary = GROUPS.get(name, "Coder: self-hosted remote development environments.")
    command = Command(words=name, summary=summary, run=lambda _: 0, options=options, usage="[subcommand]")
    if not requests_help:
        try:
            words = parse(Command(name, "", run=lambda _: 0, options=options_of_groups(name)), rest, {}, typed).args
        except UsageError as error:
            sys.stderr.write(f"{error.message}\n")
            return 1
        if words:
            from coder.cli.advice.suggestions import for_subcommand
            from coder.cli.failures import unknown_subcommand

            sys.stderr.write(unknown_subcommand(name, words[0]))
            sys.stderr.write(for_subcommand(name, words[0], (word for word, _ in children(name))))
            return 1
    sys.stdout.write(help_text(command, children(name), aliases_of(name)))
    return 0


def _invoke(command, words: list[str], typed: list[str] | None = None) -> int:  # type: ignore[no-untyped-def]
    from coder.base.config import process_environment
    from coder.base.errors import CoderError
    from coder.cli.command import UsageError, option_report, parse
    from coder.cli.failures import defect_text

    _treat_sigterm_as_interrupt()
    verbose, invocation = False, None
    try:
        invocation = parse(command, words, process_environment(), typed, is_group=bool(children(command.words)))
        if invocation.globals["debug_options"]:
            sys.stdout.write(option_report(invocation))
            return 0
        verbose = invocation.globals["verbose"]
        if verbose:
            _show_requests()
        return command.run(invocation) or 0
    except UsageError as error:
        from coder.cli.advice.suggestions import for_usage_error
        from coder.cli.command import GLOBAL_OPTIONS

        suggestion = for_usage_error(error.message, (*command.options, *GLOBAL_OPTIONS))
        sys.stderr.write(f"{error.message}\n{suggestion}")
        return 1
    except CoderError as error:
        _print_errors(command, [_error_text(command, error)])
        return 1
    except BaseExceptionGroup as group:
        return _report_group(command, group, verbose)
    except (BrokenPipeError, ModuleNotFoundError):
        raise  # `main` handles these
    except Exception as error:
        _print_errors(command, [defect_text(error, verbose=verbose)])
        return 1
    finally:
        # Also warn after a failure, which the difference of releases may have caused.
        if invocation is not None and command.words not in DAEMONS:
            _warn_of_version(invocation)


def _show_requests() -> None:
    """Print each request to stderr, for `--verbose`."""
    from coder.net.request_log import REQUESTS

    REQUESTS.listener = lambda exchange: print(exchange, file=sys.stderr)


def _warn_of_version(invocation) -> None:  # type: ignore[no-untyped-def]
    log = sys.modules.get("coder.net.request_log")
    if log is None or not log.REQUESTS.server_version or invocation.globals["no_version_warning"]:
        return
    from coder.base.version import BUILD_VERSION
    from coder.cli.failures import version_warning

    sys.stderr.write(version_warning(BUILD_VERSION, log.REQUESTS.server_version))


def _print_errors(command, texts: list[str]) -> None:  # type: ignore[no-untyped-def]
    name = f"coder {command.words}"
    sys.stderr.write(f'Encountered an error running "{name}", see "{name} --help" for more information\n')
    for text in texts:
        sys.stderr.write(f"{_error_label()} {text}\n")


def _error_label() -> str:
    if not sys.stderr.isatty():
        return "error:"
    from coder.cli.colour import paint

    return paint("error:", "red", sys.stderr)


def _error_text(command, error) -> str:  # type: ignore[no-untyped-def]
    from coder.cli.failures import error_text

    return error_text(error, is_terminal=sys.stderr.isatty() or command.words in DAEMONS)


def _treat_sigterm_as_interrupt() -> None:
    """Handle SIGTERM like Ctrl-C: close connections and restore the terminal. Daemons install their own handlers."""
    import signal
    import threading

    on_main_thread = threading.current_thread() is threading.main_thread()
    if on_main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGTERM, lambda _number, _frame: signal.raise_signal(signal.SIGINT))


def _report_group(command, group: BaseExceptionGroup, verbose: bool) -> int:  # type: ignore[no-untyped-def]
    """Print the errors that a nursery wrapped in a group and return the exit code; 130 for Ctrl-C."""
    from coder.base.errors import CoderError
    from coder.cli.failures import defect_text

    inner = _flatten(group)
    if any(isinstance(error, KeyboardInterrupt) for error in inner):
        return 130
    if all(isinstance(error, BrokenPipeError) for error in inner):
        raise inner[0]
    known = [error for error in inner if isinstance(error, CoderError)]
    unexpected = [error for error in inner if isinstance(error, Exception) and error not in known]
    if len(known) + len(unexpected) != len(inner):
        raise group
    texts = [_error_text(command, error) for error in known] or [
        defect_text(error, verbose=verbose) for error in unexpected
    ]
    _print_errors(command, texts)
    return 1


def _flatten(group: BaseExceptionGroup) -> list[BaseException]:
    errors: list[BaseException] = []
    for error in group.exceptions:
        errors += _flatten(error) if isinstance(error, BaseExceptionGroup) else [error]
    return errors
