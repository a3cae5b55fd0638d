"""Exceptions of nurseries: a group with one exception becomes that exception."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from types import TracebackType

import trio

from coder.base.errors import CoderError


def single_failure() -> AbstractContextManager[None]:
    """Re-raise the only exception of a nursery bare; leave a real group as it is.

    For functions that use a nursery internally and whose callers expect ordinary exceptions. Several `CoderError`s have
    one cause that hit several tasks (a closed connection): the first stands for all. Next to an outside cancellation
    they do not count.
    """
    return _SingleFailure()


class _SingleFailure(AbstractContextManager[None]):
    """A class, because the frames of a generator and of contextlib would keep the group: the exception that is raised
    has them in its traceback, so each connection that is cancelled would leave a cycle of all its frames and locals."""

    __slots__ = ()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        failure = _stands_for(error) if isinstance(error, BaseExceptionGroup) else None
        if failure is None:
            return
        context = failure.__context__
        try:
            raise failure
        finally:
            failure.__context__ = context  # not the group, which contains it
            del failure, context, error, traceback


def _stands_for(group: BaseExceptionGroup[BaseException]) -> BaseException | None:
    """Return the exception that is raised instead of a group, None for none."""
    errors = list(leaves(group))
    cancelled = [leaf for leaf in errors if isinstance(leaf, trio.Cancelled)]
    known = [leaf for leaf in errors if isinstance(leaf, CoderError)]
    if len(errors) > 1 and len(known) + len(cancelled) < len(errors):
        return None
    if cancelled:
        cancelled[0].__cause__ = None
        return cancelled[0]
    errors[0].__suppress_context__ = True
    return errors[0]


def leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    """Yield the exceptions of a group that are no groups themselves, in order."""
    for inner in group.exceptions:
        if isinstance(inner, BaseExceptionGroup):
            yield from leaves(inner)
        else:
            yield inner


def is_disconnect(error: BaseException) -> bool:
    """Return whether a connection failed because its client left: every exception of a group says so."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_disconnect, error.exceptions))
    return isinstance(error, (ConnectionError, trio.BrokenResourceError, trio.ClosedResourceError))
