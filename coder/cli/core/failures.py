"""Error output of commands.

Errors of the API are printed in upstream's format: `Trace=[action: ]`, the message, one validation per line, then the
detail or a suggestion. Hints are printed to terminals only, since scripts compare lines.

Users never see a traceback unless they pass `--verbose`: an answer that does not have the API's shape (an older server,
a proxy in between) can raise in any code that reads it, so this module handles it in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from coder.base.config import process_environment
from coder.base.errors import CoderError, causes, explain_error
from coder.base.quoted import quoted
from coder.base.version import versions_match
from coder.cli.core.suggestions import plain_fault
from coder.net.errors import NOT_THE_API, HttpError

if TYPE_CHECKING:
    from coder.cli.core.missing_names import Missing

_LOGIN = "Suggestion: Try logging in using 'coder login'."

_OVERRIDDEN = "Correct or unset CODER_SESSION_TOKEN, which replaces the session of `coder login`."


@contextmanager
def add_action_to_errors(action: str, hint: str = "") -> Iterator[None]:
    """Add the attempted action to errors of the server or the network; `hint`: the next step if it is known here."""
    try:
        yield
    except CoderError as error:
        raise CoderError(error.code, action, hint) from error


def error_text(error: CoderError, *, is_terminal: bool, suggest: Callable[[Missing], list[str]] | None = None) -> str:
    """Return the text after `error: `. `suggest` returns names that were probably meant instead of a missing one."""
    from coder.cli.core.missing_names import advice, missing_resource

    chain = list(causes(error))
    answer = next((item for item in chain if isinstance(item, HttpError)), None)
    if answer is None:
        text = explain_error(error, with_hint=False)
        if not is_terminal:
            return text
        # An added action has no next step of its own: that of the cause counts.
        hint = next((item.hint for item in chain if isinstance(item, CoderError) and item.hint), "")
        return plain_fault(f"{text}\n{hint}" if hint else text)[0]
    traced = [item.message for item in chain[: chain.index(answer)] if isinstance(item, CoderError)]
    message = answer.message or f"HTTP {answer.status}"
    missing = missing_resource(answer) if is_terminal else None
    step = advice(missing, suggest(missing) if suggest else []) if missing else ""
    if is_terminal:  # users read sentences; scripts get upstream's lines
        lines = [": ".join([*traced, missing.text if missing else message])]
    else:
        lines = [f"Trace=[{': '.join(traced)}: ]"] if traced else []
        lines.append(message)
    if answer.validations:
        lines.append(f"{len(answer.validations)} validation error(s) found")
        lines += [
            f"\t {validation.get('field', '')} : {validation.get('detail', '')}" for validation in answer.validations
        ]
    is_others = answer.hint == NOT_THE_API
    own_hint = next((item.hint for item in chain[: chain.index(answer)] if isinstance(item, CoderError)), "")
    if answer.status == 401 and not is_others:
        if is_terminal and answer.detail:
            lines.append(answer.detail)  # whether the token is malformed, unknown or expired
        step = own_hint or (_OVERRIDDEN if process_environment().get("CODER_SESSION_TOKEN") else "")
        lines.append(f"Suggestion: {step}" if step and is_terminal else _LOGIN)
    elif answer.detail:
        lines.append(answer.detail)
    hint = step or next((item.hint for item in chain if isinstance(item, CoderError) and item.hint), "")
    if hint and is_terminal and (answer.status != 401 or is_others):
        lines.append(f"Suggestion: {hint}")
    return "\n".join(lines)


def missing_note(error: CoderError, suggest: Callable[[Missing], list[str]]) -> str:
    """Return the line about a missing resource for scripts, before upstream's lines; "" for other errors."""
    from coder.cli.core.missing_names import advice, missing_resource

    answer = next((item for item in causes(error) if isinstance(item, HttpError)), None)
    missing = missing_resource(answer) if answer is not None else None
    return f"{missing.text}. {advice(missing, suggest(missing))}".rstrip() + "\n" if missing else ""


def defect_text(error: Exception, *, verbose: bool) -> str:
    """Return the text after `error: ` for an unexpected exception: an unreadable answer or a defect."""
    from coder.net.request_log import REQUESTS

    request = REQUESTS.last
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    elif isinstance(error, OSError) and error.args and isinstance(error.args[0], list):
        # shutil.Error: (source, target, text) of each file
        source, target, reason = error.args[0][0]
        text = f"cannot copy {source} to {target}: {str(reason).rpartition('] ')[2].partition(': ')[0]}"
    elif isinstance(error, UnicodeEncodeError):
        # Omit the text, which may be a password. Python keeps bytes that are not UTF-8 as lone surrogates.
        undecodable = repr(error.object[error.start : error.end]).replace("\\udc", "\\x")
        is_bytes = "surrogates" in error.reason
        fault = "is not written in UTF-8" if is_bytes else f"cannot be written in {error.encoding}"
        text = f"text from the command line, a variable, a file or an answer {fault}: {undecodable}"
    elif request is not None and not isinstance(error, NameError):  # an answer cannot cause an unbound name
        path = path_of(request.shown_url)
        text = (
            f"the answer to {request.method} {path} has an unexpected format: {describe_exception(error)}\n"
            "Suggestion: Compare the versions (`coder version`, and the server's at /api/v2/buildinfo). A proxy may "
            "have answered instead."
        )
    else:
        slip = describe_exception(error)
        text = f"internal error: {slip}\nSuggestion: Run the command again with --verbose and report the error."
    if verbose:
        import traceback

        text += "\n" + "".join(traceback.format_exception(error)).rstrip()
    return text


def unknown_subcommand(group: str, word: str) -> str:
    """Return the message for an unknown subcommand of a group ("" for the program itself)."""
    command = f"coder {group}".rstrip()
    message = f'error: unrecognized subcommand "{word}"\n'
    before = f"---\n{message}" if group else ""
    return f'{before}Encountered an error running "{command}", see "{command} --help" for more information\n{message}'


def version_warning(own: str, server: str) -> str:
    """Return the warning about different releases of client and server; "" if they match or are unknown."""
    if versions_match(own, server):
        return ""
    return (
        f"version mismatch: this program is {own}, the server {server}. "
        "Download the server's version of the program from /bin at its URL.\n"
    )


def path_of(url: str) -> str:
    """Return the path of a URL without the query, which can be secret."""
    return urlsplit(url).path


def describe_exception(error: Exception) -> str:
    """Describe an unexpected exception briefly."""
    if isinstance(error, KeyError):
        return f"{quoted(error.args[0])} is missing" if error.args else "a name is missing"
    return " ".join(str(error).split())[:200] or type(error).__name__
