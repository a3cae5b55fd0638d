"""What somebody is told when the database refuses a second one of something: by the constraint that refused it.

Everything a request writes has more than one constraint, and "the name is taken" is wrong for all but one of them. So
nobody catches `IntegrityError` by itself: of a constraint that was not named a caller hears only that somebody else was
faster (`appproxy/http/errors.py`), or of an internal error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from coder.api.base.refusals import Refusal
from coder.coderd.store.engine.errors import IntegrityError, constraint_of


@contextmanager
def told_as(refusals: Mapping[str, Refusal]) -> Iterator[None]:
    """Around what writes: raises the refusal of the constraint that was violated, if it has one."""
    try:
        yield
    except IntegrityError as error:
        refusal = refusals.get(constraint_of(error))
        if refusal is None:
            raise
        raise refusal from error
