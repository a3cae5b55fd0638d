"""Exceptions out of nurseries: a group of one is that one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def single_failure() -> Iterator[None]:
    """Around a nursery: re-raises the only exception bare, leaves a real group as it is.

    For functions that use a nursery inside and whose callers expect ordinary exceptions.
    """
    try:
        yield
    except BaseExceptionGroup as group:
        only: BaseException = group
        while isinstance(only, BaseExceptionGroup) and len(only.exceptions) == 1:
            only = only.exceptions[0]
        if only is group:
            raise
        raise only from only.__cause__
