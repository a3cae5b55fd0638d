"""Refusals for unique constraints: the response depends on the constraint that was violated.

A request writes to several constraints, and "the name is taken" is wrong for all but one of them. So services never
catch `IntegrityError` directly. For a constraint that was not named, the caller is refused as the slower of two
concurrent requests (`appproxy/http/errors.py`), or gets an internal error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from coder.api.base.refusals import Refusal
from coder.coderd.store.engine.errors import IntegrityError, constraint_of


@contextmanager
def constraint_refusals(refusals: Mapping[str, Refusal]) -> Iterator[None]:
    """Wrap a write and raise the refusal of the violated constraint, if one is named."""
    try:
        yield
    except IntegrityError as error:
        refusal = refusals.get(constraint_of(error))
        if refusal is None:
            raise
        raise refusal from error
