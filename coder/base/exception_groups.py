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
        leaves = list(_leaves(group))
        cancelled = [leaf for leaf in leaves if isinstance(leaf, trio.Cancelled)]
        known = [leaf for leaf in leaves if isinstance(leaf, CoderError)]
        if len(leaves) > 1 and len(known) + len(cancelled) < len(leaves):
            raise
        if cancelled:
            raise cancelled[0] from None
        raise leaves[0] from leaves[0].__cause__


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for inner in group.exceptions:
        if isinstance(inner, BaseExceptionGroup):
            yield from _leaves(inner)
        else:
            yield inner
