"""What the database refuses, under a name the services may use: they catch it, only the store speaks SQL."""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError, IntegrityError

from coder.coderd.store.engine.availability import DatabaseAwayError

__all__ = ["DBAPIError", "DatabaseAwayError", "IntegrityError", "constraint_of", "refuses_the_value"]


def constraint_of(error: IntegrityError) -> str:
    """The name of the constraint, or unique index, that refused something; empty when there is none.

    The driver's own word: the text of the error has what somebody wrote in it, too.
    """
    refusal = error.orig.__cause__ if error.orig else None
    return str(getattr(refusal, "constraint_name", None) or "")


def refuses_the_value(error: DBAPIError) -> bool:
    """Whether it was what somebody wanted stored: a number out of range, a text that is none, one too many.

    Not so when the database was away, or two transactions were in each other's way: then the same may do later. Classes
    22 and 23 of SQLSTATE, and 54000, a name that no index can hold; a number that does not fit its column is refused by
    the driver, which gives no state.
    """
    state = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return str(state).startswith(("22", "23", "54000"))
    return isinstance(error.orig.__cause__ if error.orig else None, ValueError)
