"""Bytes of a request's body: maximum size, minimum speed, and the budget they count for.

`_receive` enforces `limit=` of a route's declaration (usually 1 MiB, 64 KiB without authentication: `declarations.py`).
Does not live here: the total over all bodies (`body_bounds.py`), and decoding (`json.py`).
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, AsyncExitStack
from typing import BinaryIO, Protocol

import trio
from quart import request

from coder.api.base.refusals import TooLarge, TooSlow
from coder.coderd.http.server.auth import account, context, recheck_caller, remote_ip
from coder.coderd.http.server.body_bounds import STRANGERS, BodyShare

BODY_PATIENCE = 30.0
"""Seconds a body may take besides the time for its bytes; the same as common reverse proxies."""
BODY_SLOWEST = 4096.0
"""Minimum bytes per second of a sender."""

BODY_LONGEST = 3600.0
"""Maximum seconds for any body: an upload of the largest size at 28 KiB a second."""

_WRITE_SIZE = 1 << 20
"""Bytes of an upload written to its file per call: a thread costs more than a few bytes."""


async def read_bytes(limit: int) -> bytes:
    """Return the body of `received`, for callers that release it after reading."""
    async with received(limit) as raw:
        return raw


class Holds(Protocol):
    """Budget that the bytes of a body count for."""

    def take(self, count: int) -> None:
        """Take `count` more bytes; a refusal ends the request."""


async def read_for(holder: Holds, limit: int) -> bytes:
    """Read like `read_bytes`, for callers that count the bytes themselves instead of the sender."""
    pieces: list[bytes] = []

    async def keep(piece: bytes) -> None:
        pieces.append(piece)

    await _receive(limit, holder, keep)
    return b"".join(pieces)


@contextlib.asynccontextmanager
async def received(limit: int) -> AsyncIterator[bytes]:
    """Receive the whole body, at most `limit` bytes, which counts for its sender until the end of the block.

    Raises TooLarge as soon as it exceeds the limit, TooSlow when it trickles, RateLimited when too much arrives
    concurrently.
    """
    pieces: list[bytes] = []

    async def keep(piece: bytes) -> None:
        pieces.append(piece)

    async with AsyncExitStack() as held:
        account_name = account()
        if account_name != STRANGERS:
            size = min(request.content_length if request.content_length is not None else limit, limit)
            await held.enter_async_context(context().services.api.body_budget.turn(account_name, size, BODY_PATIENCE))
        await _receive(limit, held.enter_context(_share()), keep)
        raw = b"".join(pieces)
        pieces.clear()
        yield raw


@contextlib.asynccontextmanager
async def read_file(limit: int) -> AsyncIterator[BinaryIO]:
    """Receive the same into an unnamed file, at its beginning: for large bodies, which would occupy shared memory for
    as long as a slow line takes."""
    with tempfile.TemporaryFile(prefix="coder-upload-") as file, _share() as share:
        gathered = bytearray()

        async def keep(piece: bytes) -> None:
            gathered.extend(piece)
            if len(gathered) >= _WRITE_SIZE:
                await trio.to_thread.run_sync(file.write, bytes(gathered))
                gathered.clear()

        await _receive(limit, share, keep)
        file.write(gathered)
        file.seek(0)
        yield file


def _share() -> AbstractContextManager[BodyShare]:
    return context().services.api.body_budget.sender(account(), remote_ip())


async def _receive(limit: int, share: Holds, keep: Callable[[bytes], Awaitable[None]]) -> None:
    size, last = 0, trio.current_time() + BODY_LONGEST
    with trio.move_on_after(BODY_PATIENCE) as scope:
        async for piece in request.body:
            share.take(len(piece))
            size += len(piece)
            if size > limit:
                raise TooLarge("Request body too large.", f"The limit is {limit} bytes.")
            await keep(piece)
            # Every byte extends the deadline, so that a slow line is served and a trickle is not.
            scope.deadline = min(scope.deadline + len(piece) / BODY_SLOWEST, last)
        await recheck_caller()
        return
    raise TooSlow(
        "Request body arrived too slowly.", f"{size} bytes had arrived; send it faster or in smaller requests."
    )
