"""What is followed by the right to see it is followed no longer than that: the question is put again and again.

`session_revocation.py` ends a stream whose reader changed. Here the thing changed: its owner shares it no longer, or
gave it away. Sources that ask before each word still keep a silent stream open, and what they hand on may be read once
and for all, so that every stream about a thing runs through here.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import trio

from coder.api.base.refusals import Forbidden, NotFound
from coder.base.groups import single_failure
from coder.base.log import get_logger
from coder.coderd.services.access.rights_changes import RightsChanges

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

PAUSE = 5.0
"""Seconds between two questions of one stream, give or take a fifth: builds tell of changes all day, and a thousand
streams shall not ask in one moment."""
LOOK_EVERY = 30.0
"""Seconds between two questions while nobody tells of a change: notices may be lost."""

_T = TypeVar("_T")
_log = get_logger("open_streams")


async def run_while_allowed(
    ctx: Context, ask: Callable[[], Awaitable[_T]], follow: Callable[[_T], Awaitable[object]]
) -> bool:
    """Runs `follow` with what `ask` found to its end, or until `ask` raises NotFound or Forbidden; False then.

    What the first question raises is raised, before `follow` has answered anything.
    """
    is_allowed = True
    changes = ctx.part(RightsChanges)
    changed = changes.next_change()  # before the question: what changes during it counts
    found = await ask()
    with single_failure(), trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:

            async def keep_asking() -> None:
                nonlocal is_allowed, changed
                while True:
                    with trio.move_on_after(LOOK_EVERY):
                        await changed.wait()
                    coming = changes.next_change()
                    answer = await _answer(ask)
                    if answer is False:
                        is_allowed = False
                        scope.cancel()
                        return
                    if answer:
                        changed = coming  # else what was told of has not been looked at
                    await trio.sleep(PAUSE * random.uniform(0.8, 1.2))

            nursery.start_soon(keep_asking)
            await follow(found)
            nursery.cancel_scope.cancel()
    return is_allowed


async def _answer(ask: Callable[[], Awaitable[object]]) -> bool | None:
    """None when it could not be asked: a database that is away for a moment ends nothing."""
    try:
        await ask()
    except (NotFound, Forbidden):
        return False
    except Exception as error:
        _log.warn("whether a stream may go on could not be asked", error=error)
        return None
    return True
