"""This process's answer to the sibling that answers a scrape."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
import trio

from coder.coderd.services.foundation.sibling_messages import SiblingMessage

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


async def run(ctx: Context, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Part: answer siblings' questions for metrics."""

    async def answer(_head: SiblingMessage, _data: bytes, descriptor: int, stream: trio.SocketStream) -> None:
        if descriptor >= 0:
            os.close(descriptor)
        await stream.send_all(msgspec.json.encode(await ctx.services.metrics.of_this_process()))

    await trio.lowlevel.checkpoint()
    ctx.process.handlers["metrics"] = answer
    task_status.started()
