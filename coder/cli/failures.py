"""How a command's failure is printed, and how a command says what it was doing when a request failed.

What the API answered is printed in the lines scripts know from upstream: `Trace=[doing: ]`, the message, validations
one a line, then the detail or a suggestion. Next steps for people go to terminals only, since scripts compare lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from coder.base.errors import CoderError, explain_error
from coder.net.errors import HttpError

_LOGIN = "Suggestion: Try logging in using 'coder login'."


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Names what was tried, should the server or the network refuse it."""
    try:
        yield
    except CoderError as error:
        raise CoderError(error.code, what) from error


def error_text(error: CoderError, *, is_terminal: bool) -> str:
    """Everything after `error: `."""
    chain: list[BaseException] = [error]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    answer = next((one for one in chain if isinstance(one, HttpError)), None)
    if answer is None:
        return explain_error(error)
    traced = [one.message for one in chain[: chain.index(answer)] if isinstance(one, CoderError)]
    lines = [f"Trace=[{': '.join(traced)}: ]"] if traced else []
    lines.append(answer.message or f"HTTP {answer.status}")
    if answer.validations:
        lines.append(f"{len(answer.validations)} validation error(s) found")
        lines += [f"\t {one.get('field', '')} : {one.get('detail', '')}" for one in answer.validations]
    if answer.status == 401:
        lines.append(_LOGIN)
    elif answer.detail:
        lines.append(answer.detail)
    hint = next((one.hint for one in chain if isinstance(one, CoderError) and one.hint), "")
    if hint and is_terminal and answer.status != 401:
        lines.append(f"Suggestion: {hint}")
    return "\n".join(lines)
