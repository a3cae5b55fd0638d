"""Entry point: find the command of argv and run it. Only that command's module is imported, for a fast start."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from coder.base.config import process_environment
from coder.base.version import BUILD_VERSION
from coder.cli.core.command import (
    Command,
    Invocation,
    aliases_of,
    children,
    choose,
    command_name,
    load,
    options_of_groups,
)
from coder.cli.core.command_table import COMMANDS, GROUPS
from coder.cli.core.options import GLOBAL_OPTIONS, Options
from coder.cli.core.parsing import UsageError, option_report, parse, scan


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
        from coder.cli.core.edition import explain_missing

        return explain_missing(error)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of the output (head, grep -q) closed the pipe.
        sys.stderr.close()
        return 141


def _serve_sandbox(limits: list[str]) -> int:
    """Run the sandbox process that a server starts to evaluate templates; users do not call it."""
    # Import by name, as for commands: the slim edition has no server but imports this module.
    worker = import_module("coder.coderd.services.templates.sandbox_worker")
    cpu_seconds, memory = limits
    return int(worker.serve(int(cpu_seconds), int(memory)))


def _serve_commands() -> int:
    """Run the command server that the launcher starts (build/command_client.c); users do not call it."""
    env = process_environment()
    if "CODER_COMMAND_SERVER_SOCKET" not in env:
        return _run(["command-server"])
    from coder.cli.command_server.listener import serve

    modules = {name: f"coder.cli.{location.partition(':')[0]}" for name, (location, _) in COMMANDS.items()}
    return serve(env, modules, main, command_name)


def _open_standard_descriptors() -> None:
    """Open /dev/null for closed standard streams: otherwise the next file or socket gets their descriptor."""
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
            from coder.cli.ui.terminal_text import filtered

            setattr(sys, name, filtered(stream))


def _is_completion() -> bool:
    """Return whether a shell requests completions: the original's completion scripts set this variable."""
    return "COMPLETION_MODE" in process_environment()


def _run(words: list[str]) -> int:
    name, rest = choose(words)
    if name is None or name not in COMMANDS:
        return _group(name or "", rest, words, _requests_help(rest[: rest.index("--")] if "--" in rest else rest))
    command = load(name)
    if _requests_help(rest[: scan(command, rest).own]):
        return _help(command)
    return _invoke(command, rest, words)


def _help(command: Command[Options]) -> int:
    from coder.cli.ui.help_text import help_text

    sys.stdout.write(help_text(command, children(command.words), aliases_of(command.words)))
    return 0


def _requests_help(words: list[str]) -> bool:
    return any(word in {"-h", "--help"} for word in words)


def _group(name: str, rest: list[str], typed: list[str], requests_help: bool) -> int:
    options = options_of_groups(name) if name else GLOBAL_OPTIONS
    summary = GROUPS.get(name, "Coder: self-hosted remote development environments.")
    command = Command(name, summary, Options, usage="[subcommand]", more_options=options)
    if not requests_help:
        try:
            words = parse(Command(name, "", Options, more_options=options_of_groups(name)), rest, {}, typed).args
        except UsageError as error:
            sys.stderr.write(f"{error.message}\n")
            return 1
        if words:
            return _unknown(name, words[0])
    return _help(command)


def _unknown(group: str, word: str) -> int:
    from coder.cli.ui.error_output import report_unknown

    return report_unknown(group, word, children(group))


def _invoke(command: Command[Options], words: list[str], typed: list[str] | None = None) -> int:
    _treat_sigterm_as_interrupt()
    verbose, invocation = False, None
    try:
        invocation = parse(command, words, process_environment(), typed, is_group=bool(children(command.words)))
        if invocation.globals.debug_options:
            sys.stdout.write(option_report(invocation))
            return 0
        _warn_of_variables(command, invocation)
        verbose = invocation.globals.verbose
        if verbose:
            _show_requests()
        return command.run(invocation) or 0
    except (BrokenPipeError, ModuleNotFoundError):
        raise  # `main` handles these
    except (Exception, BaseExceptionGroup) as error:
        return _report(command, error, invocation, verbose=verbose)
    finally:
        # Also warn after a failure, which the difference of releases may have caused.
        if invocation is not None:
            _warn_of_version(invocation)


def _report(
    command: Command[Options],
    error: Exception | BaseExceptionGroup,
    invocation: Invocation[Options] | None,
    *,
    verbose: bool,
) -> int:
    from coder.cli.ui.error_output import report_error, report_group, report_usage

    if isinstance(error, BaseExceptionGroup):
        return report_group(command, error, verbose=verbose, invocation=invocation)
    if isinstance(error, UsageError):
        return report_usage(command, error)
    return report_error(command, error, verbose=verbose, invocation=invocation)


def _show_requests() -> None:
    """Print each request to stderr, for `--verbose`."""
    from coder.net.request_log import REQUESTS

    REQUESTS.listener = lambda exchange: print(exchange, file=sys.stderr)


def _warn_of_variables(command: Command[Options], invocation: Invocation[Options]) -> None:
    """Warn about variables that look like a misspelt one of this command. The server logs its own."""
    if command.words in {"server", "completion words"}:
        return
    from coder.cli.core.suggestions import variables_warning

    known = (option.env for option in (*command.options, *GLOBAL_OPTIONS))
    sys.stderr.write(variables_warning(invocation.env, known))


def _warn_of_version(invocation: Invocation[Options]) -> None:
    log = sys.modules.get("coder.net.request_log")
    # Equal releases, the usual case, need none of the modules below.
    if log is not None and log.REQUESTS.server_version not in {"", BUILD_VERSION}:
        from coder.cli.ui.error_output import warn_of_version

        warn_of_version(invocation)


def _treat_sigterm_as_interrupt() -> None:
    """Handle SIGTERM like Ctrl-C: close connections and restore the terminal. Daemons install their own handlers."""
    import signal
    import threading

    on_main_thread = threading.current_thread() is threading.main_thread()
    if on_main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGTERM, lambda _number, _frame: signal.raise_signal(signal.SIGINT))
