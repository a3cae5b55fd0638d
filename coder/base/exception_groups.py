"""Exceptions of nurseries: a group with one exception becomes that exception."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import trio

from coder.base.errors import CoderError


@contextmanager
def single_failure() -> Iterator[None]:
    """Re-raise the only exception of a nursery bare; leave a real group as it is.

    For functions that use a nursery internally and whose callers expect ordinary exceptions. Several `CoderError`s have
    one cause that hit several tasks (a closed connection): the first stands for all. Next to an outside cancellation
    they do not count.
    """
    try:
        yield
    except BaseExceptionGroup as group:
        errors = list(leaves(group))
        cancelled = [leaf for leaf in errors if isinstance(leaf, trio.Cancelled)]
        known = [leaf for leaf in errors if isinstance(leaf, CoderError)]
        if len(errors) > 1 and len(known) + len(cancelled) < len(errors):
            raise
        if cancelled:
            raise cancelled[0] from None
        raise errors[0] from errors[0].__cause__


def leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    """Yield the exceptions of a group that are no groups themselves, in order."""
    for inner in group.exceptions:
        if isinstance(inner, BaseExceptionGroup):
            yield from leaves(inner)
        else:
            yield inner
