"""Errors of the database under names that services may use: they catch them, and only the store speaks SQL."""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError, IntegrityError

from coder.base.errors import OUTCOME_UNKNOWN, CoderError
from coder.coderd.store.engine.availability import DatabaseAwayError

__all__ = [
    "DBAPIError",
    "DatabaseAwayError",
    "IntegrityError",
    "OutcomeUnknownError",
    "constraint_of",
    "is_value_refused",
]


class OutcomeUnknownError(CoderError):
    """The answer to a commit was lost, and the database does not tell whether the changes were made."""

    def __init__(self) -> None:
        super().__init__(
            OUTCOME_UNKNOWN,
            "the database does not tell whether the change was made",
            "Look before you try again.",
        )


def constraint_of(error: IntegrityError) -> str:
    """Return the name of the constraint, or unique index, that was violated; empty when there is none.

    Taken from the driver's own field: the text of the error contains values from users, too.
    """
    refusal = error.orig.__cause__ if error.orig else None
    return str(getattr(refusal, "constraint_name", None) or "")


def is_value_refused(error: DBAPIError) -> bool:
    """Return whether the value was the reason: a number out of range, an invalid text, a duplicate.

    False when the database was unavailable, or two transactions conflicted: then a retry may succeed. Classes 22 and 23
    of SQLSTATE, and 54000, a name that no index can hold. A number out of a column's range is refused by the driver,
    which gives no state.
    """
    state = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return str(state).startswith(("22", "23", "54000"))
    return isinstance(error.orig.__cause__ if error.orig else None, ValueError)
