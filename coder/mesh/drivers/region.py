"""Trying the nodes of a region: the first has a head start, and a dead one costs no more than that.

Obeys docs/protocol/derp.md, "Opening", which gives each node of a region 1.5 s.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import trio

from coder.mesh.core.paths.derpmap import DerpNode

NODE_TIMEOUT = 1.5
"""Seconds until the next node is tried as well."""

_Answer = TypeVar("_Answer")


async def first_to_answer(
    nodes: Sequence[DerpNode],
    ask: Callable[[DerpNode], Awaitable[_Answer]],
    discard: Callable[[_Answer], Awaitable[object]] | None = None,
) -> _Answer:
    """Return the answer of the first node; the next is tried when those before it failed or were silent for 1.5 s.

    Earlier attempts continue meanwhile: on a slow path, past a proxy that swallows upgrades, a good node may need
    several seconds. `discard` gets an answer that is not used. Raises the error of the last node to fail.
    """
    answers: list[_Answer] = []
    failures: list[Exception] = []

    async def attempt(node: DerpNode, failed: trio.Event) -> None:
        try:
            answers.append(await ask(node))
            nursery.cancel_scope.cancel()
        except Exception as error:  # the attempt is the caller's code: after any error this node counts as unreachable
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
