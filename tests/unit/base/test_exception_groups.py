"""Exceptions of nurseries as single ones, and that they leave no cycles."""

from __future__ import annotations

import contextlib
import gc
import weakref

import pytest
import trio

from coder.base.errors import CoderError
from coder.base.exception_groups import single_failure


class Held:
    """An object of a frame."""


async def _fail(error: BaseException) -> None:
    raise error


async def _lose_connection() -> None:
    raise OSError


async def test_single_failure_keeps_cause_and_context() -> None:
    cause, context = ValueError("cause"), KeyError("context")
    error = OSError("failed")
    error.__context__, error.__cause__ = context, cause
    with pytest.raises(OSError, match="failed") as caught, single_failure():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_fail, error)
    assert caught.value is error
    assert (caught.value.__cause__, caught.value.__context__) == (cause, context)


async def test_failures_of_several_kinds_stay_a_group() -> None:
    with pytest.raises(BaseExceptionGroup) as caught, single_failure():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_fail, OSError("one"))
            nursery.start_soon(_fail, ValueError("another"))
    assert len(caught.value.exceptions) == 2


async def test_first_of_several_known_errors_is_raised() -> None:
    with pytest.raises(CoderError), single_failure():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_fail, CoderError("one", "one"))
            nursery.start_soon(_fail, CoderError("two", "two"))


@pytest.mark.parametrize("fails", [False, True], ids=["cancelled", "failed"])
async def test_ended_nursery_is_freed_without_collector(fails: bool) -> None:
    seen: list[weakref.ref[Held]] = []

    async def serve() -> None:
        held = Held()
        seen.append(weakref.ref(held))
        with single_failure():
            async with trio.open_nursery() as nursery:
                if fails:
                    nursery.start_soon(_lose_connection)
                await trio.sleep_forever()

    gc.disable()
    try:
        with contextlib.suppress(OSError), trio.CancelScope() as scope:
            if not fails:
                scope.cancel()
            await serve()
        assert [ref() for ref in seen] == [None]
    finally:
        gc.enable()
