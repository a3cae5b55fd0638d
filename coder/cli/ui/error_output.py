"""Output of a command's failure: errors of the API, of the command line and defects."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import cast

from coder.base.errors import CoderError
from coder.base.json_types import Json
from coder.base.version import BUILD_VERSION
from coder.cli.core import session
from coder.cli.core.command import Command, Invocation
from coder.cli.core.failures import defect_text, error_text, missing_note, unknown_subcommand, version_warning
from coder.cli.core.missing_names import Missing, suggested_names
from coder.cli.core.options import GLOBAL_OPTIONS, Options
from coder.cli.core.parsing import UsageError
from coder.cli.core.suggestions import for_subcommand, for_usage_error, plain_fault
from coder.net.request_log import REQUESTS

DAEMONS = frozenset({"agent", "provisioner start", "provisionerd start", "server", "workspace-proxy server"})
"""Commands whose errors are read later in a log, so hints are printed there too."""


def report_error(
    command: Command[Options], error: Exception, *, verbose: bool, invocation: Invocation[Options] | None = None
) -> int:
    """Print an error and return the exit code. `invocation`: the session that may list names for suggestions."""
    if isinstance(error, CoderError):
        _print_errors(command, [_error_text(command, error, invocation)], _note(command, error, invocation))
    else:
        _print_errors(command, [defect_text(error, verbose=verbose)])
    return 1


def report_usage(command: Command[Options], error: UsageError) -> int:
    """Print what is wrong with the command line, and what was probably meant. Return the exit code."""
    suggestion = for_usage_error(error.message, (*command.options, *GLOBAL_OPTIONS))
    message = error.message
    if sys.stderr.isatty():  # scripts get upstream's line
        message, step = plain_fault(message)
        suggestion = suggestion or (f"{step}\n" if step else "")
    sys.stderr.write(f"{message}\n{suggestion}")
    return 1


def report_unknown(group: str, word: str, subcommands: Sequence[tuple[str, str]]) -> int:
    """Print that a group has no such subcommand, and what was probably meant. Return the exit code."""
    suggestion = for_subcommand(group, word, (name for name, _ in subcommands))
    sys.stderr.write(unknown_subcommand(group, word) + suggestion)
    return 1


def report_group(
    command: Command[Options],
    group: BaseExceptionGroup,
    *,
    verbose: bool,
    invocation: Invocation[Options] | None = None,
) -> int:
    """Print the errors that a nursery wrapped in a group and return the exit code; 130 for Ctrl-C."""
    inner = _flatten(group)
    if any(isinstance(error, KeyboardInterrupt) for error in inner):
        return 130
    if all(isinstance(error, BrokenPipeError) for error in inner):
        raise inner[0]
    known = [error for error in inner if isinstance(error, CoderError)]
    unexpected = [error for error in inner if isinstance(error, Exception) and error not in known]
    if len(known) + len(unexpected) != len(inner):
        raise group
    texts = [_error_text(command, error, invocation) for error in known] or [
        defect_text(error, verbose=verbose) for error in unexpected
    ]
    _print_errors(command, texts, _note(command, known[0], invocation) if known else "")
    return 1


def warn_of_version(invocation: Invocation[Options]) -> None:
    """Warn about different releases of client and server, after a request."""
    if invocation.command.words not in DAEMONS and not invocation.globals.no_version_warning:
        sys.stderr.write(version_warning(BUILD_VERSION, REQUESTS.server_version))


def _print_errors(command: Command[Options], texts: list[str], note: str = "") -> None:
    name = f"coder {command.words}"
    sys.stderr.write(f'Encountered an error running "{name}", see "{name} --help" for more information\n{note}')
    for text in texts:
        sys.stderr.write(f"{_error_label()} {text}\n")


def _error_label() -> str:
    if not sys.stderr.isatty():
        return "error:"
    from coder.cli.ui.colour import paint

    return paint("error:", "red", sys.stderr)


def _error_text(command: Command[Options], error: CoderError, invocation: Invocation[Options] | None) -> str:
    return error_text(error, is_terminal=_prints_sentences(command), suggest=partial(_suggest, invocation))


def _note(command: Command[Options], error: CoderError, invocation: Invocation[Options] | None) -> str:
    """Return the line about a missing resource if upstream's lines, which do not name it, follow."""
    return "" if _prints_sentences(command) else missing_note(error, partial(_suggest, invocation))


def _prints_sentences(command: Command[Options]) -> bool:
    return sys.stderr.isatty() or command.words in DAEMONS


def _suggest(invocation: Invocation[Options] | None, missing: Missing) -> list[str]:
    """Return names that were probably meant; none if the deployment does not list any."""
    if invocation is None:
        return []
    try:
        client = session.client(invocation)

        def fetch(path: str) -> Json:
            answer = client.request("GET", path)
            return cast("Json", answer.json())  # of any shape: only names are read

        return suggested_names(missing, fetch)
    except (CoderError, OSError):
        return []


def _flatten(group: BaseExceptionGroup) -> list[BaseException]:
    errors: list[BaseException] = []
    for error in group.exceptions:
        errors += _flatten(error) if isinstance(error, BaseExceptionGroup) else [error]
    return errors
