"""Root of all errors. Every failure shown to a user is a `CoderError` with a code, a sentence and a next step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

_MAX_PARTS = 4
"Sentences of a chain that one line shows."
DATABASE_AWAY = "database_away"
"""Code of the error that the database does not answer: temporary, unlike every other failure of a request or call."""
DATABASE_FULL = "database_full"
DATABASE_BUSY = "database_busy"
DATABASE_DENIES = "database_denies"
OUTCOME_UNKNOWN = "outcome_unknown"
"""Code of the error that nothing tells whether a change was made: a repetition may make it twice."""
DATABASE_OUTAGES: Mapping[str, str] = MappingProxyType(
    {
        DATABASE_AWAY: "does not answer",
        DATABASE_FULL: "has no room left on its disk",
        "database_memory": "has no memory left",
        "database_connections": "accepts no more connections",
        "database_resources": "lacks a resource of its machine",
        DATABASE_BUSY: "is busy with other work",
        "database_disk": "cannot read or write its disk",
        "database_read_only": "accepts no changes",
        DATABASE_DENIES: "denies access",
    }
)
"""Codes of temporary failures of the database -> what it does, for users. A repetition of the work is expected."""


class CoderError(Exception):
    """Failure with a stable code.

    The message never repeats the cause's text: chain with `raise ... from ...`; `explain_error` prints the chain in one
    line.
    """

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message


def causes(error: BaseException, *, with_context: bool = False) -> Iterator[BaseException]:
    """Yield `error`, then its cause, then the cause of that, each exception once.

    Every walk along a chain uses this function: an exception may be its own cause (`raise x from x`), and a walk that
    ends only at None would never return. `with_context` also follows the exception being handled when an exception
    without a cause was raised.
    """
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        context = following.__context__ if with_context else None
        following = following.__cause__ if following.__cause__ is not None else context


def find_outage(error: BaseException) -> str:
    """Return the code of the temporary failure of the database that an error, its causes or a member of its group mean;
    empty for other errors."""
    for cause in causes(error):
        if isinstance(cause, CoderError) and cause.code in DATABASE_OUTAGES:
            return cause.code
        if isinstance(cause, BaseExceptionGroup):
            for inner in cause.exceptions:
                if outage := find_outage(inner):
                    return outage
    return ""


def explain_error(error: BaseException, *, with_hint: bool = True) -> str:
    """Return one line for users: the message, then its causes, then the hint."""
    chain = [cause for cause in causes(error) if cause is error or not _is_for_programmers(cause)]
    parts = list(dict.fromkeys(text for cause in chain if (text := _sentence(cause))))
    line = ": ".join(parts[:_MAX_PARTS])
    hint = error.hint if isinstance(error, CoderError) and with_hint else ""
    return f"{line}\n{hint}" if hint else line


def _is_for_programmers(error: BaseException) -> bool:
    """Return whether an error's text is for programmers: SQL with its parameters, OpenSSL's codes, Trio's summary of
    the addresses it tried."""
    if isinstance(error, OSError) and str(error).startswith("all attempts to connect to "):
        return True
    return type(error).__module__.partition(".")[0] in {"sqlalchemy", "asyncpg", "alembic", "ssl"}


def _sentence(error: BaseException) -> str:
    if isinstance(error, CoderError):
        return error.message
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_sentence(inner) for inner in error.exceptions)
    if isinstance(error, OSError) and error.strerror and error.errno is not None:
        if error.strerror.startswith("Error connecting to ("):  # Trio's text with a Python tuple
            return error.strerror.rpartition("): ")[2]
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    text = str(error)
    return text or type(error).__name__
