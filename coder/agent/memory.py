"""Return of freed memory to the system after an agent was busy."""

from __future__ import annotations

import trio

from coder.agent.activity import Activity

SETTLE = 2.0
"""Seconds after an activity has ended (ours). Activities that end together are freed by then, and several ends cause
one trim."""


async def trim_memory(activity: Activity) -> None:
    """Trim memory each time a connection or a script ends. The task wakes up for nothing else."""
    ended = activity.next_end()
    while True:
        await ended.wait()
        ended = activity.next_end()  # an activity that ends from now on may not be freed by the next trim
        await trio.sleep(SETTLE)
        _return_freed_memory()


def _return_freed_memory() -> None:
    from coder.mesh.node import release_freed_memory  # an agent starts before it needs the mesh

    release_freed_memory()
