"""Asking the nodes of one region: the first has a head start, and a dead one costs no more than that.

Obeys docs/protocol/derp.md, "Opening", which gives each node of a region 1.5 s.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import trio

from coder.mesh.core.paths.derpmap import DerpNode

NODE_TIMEOUT = 1.5
"""Seconds until the next node is asked as well."""

_Answer = TypeVar("_Answer")


async def first_to_answer(
    nodes: Sequence[DerpNode],
    ask: Callable[[DerpNode], Awaitable[_Answer]],
    discard: Callable[[_Answer], Awaitable[object]] | None = None,
) -> _Answer:
    """What the first of the nodes answers; one is asked when those before it failed or were silent for 1.5 s.

    Those asked before are listened to meanwhile: on a slow way, past a proxy that swallows upgrades, a good node may
    need several seconds. `discard` gets an answer nobody will use. Raises what the last node to fail raised.
    """
    answers: list[_Answer] = []
    failures: list[Exception] = []

    async def attempt(node: DerpNode, failed: trio.Event) -> None:
        try:
            answers.append(await ask(node))
            nursery.cancel_scope.cancel()
        except Exception as error:  # who asks is not ours: whatever ails it, this node is not reached now
            failures.append(error)
            failed.set()

    is_kept = False
    try:
        async with trio.open_nursery() as nursery:
            for node in nodes:
                failed = trio.Event()
                nursery.start_soon(attempt, node, failed)
                with trio.move_on_after(NODE_TIMEOUT):
                    await failed.wait()
        is_kept = True
    finally:
        with trio.CancelScope(shield=True):
            for answer in answers[1:] if is_kept else answers:
                if discard is not None:
                    await discard(answer)
    if answers:
        return answers[0]
    raise failures[-1]
