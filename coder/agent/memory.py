"""An agent that was busy becomes as small again as it was."""

from __future__ import annotations

import trio

from coder.agent.activity import Activity

SETTLE = 2.0
"Ours: seconds after something has ended. What ends together with it is freed by then, and many ends are one."


async def stay_small(activity: Activity) -> None:
    """Wakes up for nothing but the end of connections and scripts."""
    ended = activity.next_end()
    while True:
        await ended.wait()
        ended = activity.next_end()  # what ends from now on may not be freed yet when this one is given back
        await trio.sleep(SETTLE)
        _give_back()


def _give_back() -> None:
    from coder.mesh.node import give_back_freed_memory  # an agent starts before it needs the mesh

    give_back_freed_memory()
