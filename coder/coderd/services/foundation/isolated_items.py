"""A turn over many things, of which one that fails keeps nobody behind it waiting.

What is due stays due: the next turn comes to it again, in the same order, so without this those behind it would never
have theirs. Each has a transaction of its own for the same reason.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from coder.api.base.refusals import Refusal
from coder.base.log import Logger

Item = TypeVar("Item")
Done = TypeVar("Done")


async def one_by_one(
    log: Logger,
    failed: str,
    found: Iterable[Item],
    step: Callable[[Item], Awaitable[Done | None]],
    named: Callable[[Item], Mapping[str, object]],
    *,
    most: int | None = None,
) -> list[Done]:
    """What each `step` did, without those that did nothing (None); no more than `most`.

    One that fails is logged with the words `failed` and what `named` calls it: a refusal as a warning with its reason.
    """
    done: list[Done] = []
    for one in found:
        if len(done) == most:
            break
        try:
            result = await step(one)
        except Refusal as refusal:
            log.warn(failed, **named(one), reason=refusal.message)
        except Exception as error:  # whatever it is, it concerns this one
            log.error(failed, **named(one), error=error)
        else:
            done += [] if result is None else [result]
    return done
