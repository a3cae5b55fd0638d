"""Exceptions out of nurseries: a group of one is that one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import trio

from coder.base.errors import CoderError


@contextmanager
def single_failure() -> Iterator[None]:
    """Around a nursery: re-raises the only exception bare, leaves a real group as it is.

    For functions that use a nursery inside and whose callers expect ordinary exceptions. Several `CoderError`s are
    one cause that met several tasks (a connection that ended): the first stands for all. Beside a cancellation from
    outside they do not count.
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
