"""Cancel a test that hangs and report where each of its tasks waits.

pytest's own timeout is a signal in the middle of trio: the interrupted run is not torn down, and the next test of the
process fails as well. This limit expires first and is an ordinary cancellation. Tests on a jumping clock are left
alone: hours pass there in no time, and they wait for nothing real.
"""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, TypeVar

import trio
from trio.lowlevel import Task

PATIENCE = 280.0
"""Seconds: more than any test takes on a machine that has much else to do, less than `timeout` in pyproject.toml."""

T = TypeVar("T")


class HangsError(Exception):
    """What a test waits for does not come."""


def run(main: Callable[[], Awaitable[T]], *, patience: float = PATIENCE, **options: Any) -> T:
    """`trio.run` for a test. Raises HangsError."""
    return trio.run(main if options.get("clock") is not None else lambda: _bounded(main, patience), **options)


async def _bounded(main: Callable[[], Awaitable[T]], patience: float) -> T:
    stood: list[str] = []
    this = trio.lowlevel.current_task()
    with trio.CancelScope() as scope:

        async def watch() -> None:
            await trio.sleep(patience)
            stood.extend(_stacks([this]))
            scope.cancel()

        trio.lowlevel.spawn_system_task(watch)
        try:
            return await main()
        except BaseException as error:
            if stood and not isinstance(error, trio.Cancelled):
                raise HangsError("\n".join(stood)) from error
            raise
    raise HangsError("\n".join(stood))


def _stacks(tasks: Sequence[Task]) -> Iterator[str]:
    """Where these tasks and those of their nurseries stand."""
    for task in tasks:
        frames = traceback.StackSummary.extract(task.iter_await_frames())
        yield "".join([f"task {task.name}\n", *frames.format()])
        for nursery in task.child_nurseries:
            yield from _stacks(list(nursery.child_tasks))
