"""Process items one at a time; a failing item does not block the rest.

Due items stay due: the next run finds the failing item again, in the same order, so without isolation the items after
it would never be processed. Each item has its own transaction for the same reason.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from coder.api.base.refusals import Refusal
from coder.base.log import Logger, LogValue

Item = TypeVar("Item")
Done = TypeVar("Done")


async def process_items(
    log: Logger,
    failed: str,
    items: Iterable[Item],
    step: Callable[[Item], Awaitable[Done | None]],
    named: Callable[[Item], Mapping[str, LogValue]],
    *,
    most: int | None = None,
) -> list[Done]:
    """Return the results of `step`, without None (nothing was done), and at most `most` of them.

    A failure is logged with the message `failed` and the fields that `named` returns: a refusal as a warning with its
    reason.
    """
    results: list[Done] = []
    for item in items:
        if len(results) == most:
            break
        try:
            result = await step(item)
        except Refusal as refusal:
            log.warn(failed, **named(item), reason=refusal.message)
        except Exception as error:  # any failure concerns this item alone
            log.error(failed, **named(item), error=error)
        else:
            results += [] if result is None else [result]
    return results
