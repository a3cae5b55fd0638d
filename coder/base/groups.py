"""Exceptions out of nurseries: a group of one is that one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from coder.base.errors import CoderError


@contextmanager
def single_failure() -> Iterator[None]:
    """Around a nursery: re-raises the only exception bare, leaves a real group as it is.

    For functions that use a nursery inside and whose callers expect ordinary exceptions. Several `CoderError`s are
    one cause that met several tasks (a connection that ended): the first stands for all.
    """
    try:
        yield
    except BaseExceptionGroup as group:
        leaves = list(_leaves(group))
        if len(leaves) > 1 and not all(isinstance(leaf, CoderError) for leaf in leaves):
            raise
        raise leaves[0] from leaves[0].__cause__


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for inner in group.exceptions:
        if isinstance(inner, BaseExceptionGroup):
            yield from _leaves(inner)
        else:
            yield inner
