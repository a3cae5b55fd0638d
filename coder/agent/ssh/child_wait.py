"""Waiting for the commands of sessions, in place of trio-asyncio's own way.

trio-asyncio gives every child a thread that blocks in waitpid. Such a thread outlives the agent's loop when a command
does, and then fails with a traceback on the agent's stderr (RunFinishedError); a hundred commands need a hundred
threads.
"""

from __future__ import annotations

from coder.agent.platform import system


def install() -> None:
    """Make trio-asyncio wait by `wait_for_child`."""
    import trio_asyncio._base as base

    base.wait_for_child = system.wait_for_child
