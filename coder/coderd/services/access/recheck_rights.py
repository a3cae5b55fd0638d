"""Recheck the right to read an object while a stream about it is open.

`session_revocation.py` ends a stream whose reader changed. Here the object changed: its owner stopped sharing it, or
transferred it. A source that checks before each message still keeps an idle stream open, and its messages may be sent
only once. So every stream about an object runs through this module.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import trio

from coder.api.base.refusals import Forbidden, NotFound
from coder.base.exception_groups import single_failure
from coder.base.log import get_logger

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

PAUSE = 5.0
"""Seconds between two checks of a stream, within a fifth: builds send changes all day, and the checks of a thousand
streams must not coincide.
"""
CHECK_INTERVAL = 30.0
"""Seconds between two checks without a notice of a change: notices may be lost."""

_T = TypeVar("_T")
_log = get_logger("open_streams")


async def run_while_allowed(
    ctx: Context, ask: Callable[[], Awaitable[_T]], follow: Callable[[_T], Awaitable[object]]
) -> bool:
    """Run `follow` with the result of `ask` to its end, or until `ask` raises NotFound or Forbidden; then return False.

    An error of the first check is raised, before `follow` has sent anything.
    """
    is_allowed = True
    changes = ctx.services.rights_changes
    changed = changes.next_change()  # taken before the check: a change during the check counts
    result = await ask()
    with single_failure(), trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:

            async def recheck() -> None:
                nonlocal is_allowed, changed
                while True:
                    with trio.move_on_after(CHECK_INTERVAL):
                        await changed.wait()
                    next_change = changes.next_change()
                    allowed = await _is_allowed(ask)
                    if allowed is False:
                        is_allowed = False
                        scope.cancel()
                        return
                    if allowed:
                        changed = next_change  # otherwise the announced change has not been checked yet
                    await trio.sleep(PAUSE * random.uniform(0.8, 1.2))

            nursery.start_soon(recheck)
            await follow(result)
            nursery.cancel_scope.cancel()
    return is_allowed


async def _is_allowed(ask: Callable[[], Awaitable[object]]) -> bool | None:
    """Return whether `ask` raises no refusal; None when it failed: a short database outage ends no stream."""
    try:
        await ask()
    except (NotFound, Forbidden):
        return False
    except Exception as error:
        _log.warn("rights of a stream could not be checked; retrying", error=error)
        return None
    return True
