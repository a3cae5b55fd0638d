"""Race a request against a concurrent transaction: allowed when it reads, too late when it writes."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import trio
from sqlalchemy import text

from tests.kit.agents.scripted_agent import eventually
from tests.kit.server.server_in_process import World

Answer = TypeVar("Answer")
_WAITING = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()")
_A_MOMENT = text("SELECT pg_sleep(0.01)")


async def overtaken(
    world: World, change: Callable[[Any], Awaitable[Any]], request: Callable[[], Awaitable[Answer]]
) -> Answer:
    """The answer to a request that finds a row being changed by `change(tx)`: it reads what was there before, waits
    where it writes, and goes on when the change is committed."""

    async def overtake(tx: Any, pause: Pause) -> None:
        await change(tx)
        await pause(tx)

    return await meeting(world, overtake, request, waits=True)


Pause = Callable[[Any], Awaitable[None]]


async def meeting(
    world: World,
    work: Callable[[Any, Pause], Awaitable[Any]],
    request: Callable[[], Awaitable[Answer]],
    *,
    waits: bool = False,
) -> Answer:
    """The answer to a request that comes in the middle of a transaction, which says where that is: `work(tx, pause)`
    goes on after its pause as soon as the request waits for a lock or, unless it has to wait, was answered."""

    async def is_met() -> bool:
        async def count(tx: Any) -> int:
            return int((await tx.execute(_WAITING)).scalar_one())

        return bool((answers and not waits) or await world.ctx.db.read(count))

    answers: list[Answer] = []
    # Transactions run in the database's thread, beside trio.
    reached, ends = threading.Event(), threading.Event()

    async def pause(tx: Any) -> None:
        reached.set()
        while not ends.is_set():
            await tx.execute(_A_MOMENT)

    async def ask() -> None:
        answers.append(await request())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.ctx.db.run, work, pause)
        await trio.to_thread.run_sync(reached.wait)
        nursery.start_soon(ask)
        try:
            await eventually(is_met)
        finally:
            ends.set()
    return answers[0]


def filled(body: Any, values: Mapping[str, str]) -> Any:
    """A body of a table with `{name}` replaced, in keys too."""
    if isinstance(body, dict):
        return {filled(key, values): filled(value, values) for key, value in body.items()}
    if isinstance(body, list):
        return [filled(item, values) for item in body]
    return body.format(**values) if isinstance(body, str) else body
