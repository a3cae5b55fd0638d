"""Logs of provisioner jobs over HTTP: a list, a text, or a WebSocket that follows until the job ends.

Versions, dry runs and builds share this; they look up the job and check permissions themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from uuid import UUID

import trio
from quart import Response, request, websocket

from coder.api.base import codec
from coder.api.base.refusals import Invalid
from coder.coderd.http.server.auth import context
from coder.coderd.http.server.json import reply
from coder.coderd.http.server.query import go_int
from coder.coderd.http.server.streams import needs_upgrade
from coder.coderd.services.provisioning.job_logs import follow_logs, format_log, present_log, read_logs


async def send_job_logs(job_id: UUID) -> Response:
    """Respond to `GET …/logs`: `after` is a log id, `format` json or text. `before` is accepted and ignored, as
    upstream does."""
    after, as_text = read_after(request.args), wants_text(request.args)
    if wants_follow(request.args):
        return needs_upgrade()
    rows = await read_logs(context(), job_id, after)
    if as_text:
        return Response("".join(map(format_log, rows)), content_type="text/plain; charset=utf-8")
    return reply([present_log(row) for row in rows])


async def stream_job_logs(job_id: UUID) -> None:
    """Serve `GET …/logs?follow` as a WebSocket: one object a message, closed with 1000 after the last line."""
    ctx = context()
    after = read_after(websocket.args)
    wants_text(websocket.args, follow=True)
    await websocket.accept()
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_leave_on_stop, ctx.stopping, scope)
            async with aclosing(follow_logs(ctx, job_id, after)) as batches:
                async for rows in batches:
                    for row in rows:
                        await websocket.send(codec.encode(present_log(row)).decode())
            nursery.cancel_scope.cancel()
    if ctx.stopping.is_set():
        await websocket.close(1001, "the server is stopping")
    else:
        await websocket.close(1000, "done")


async def _leave_on_stop(stopping: trio.Event, scope: trio.CancelScope) -> None:
    await stopping.wait()
    scope.cancel()


def wants_follow(args: Mapping[str, str]) -> bool:
    return "follow" in args and args["follow"].lower() not in {"0", "f", "false"}


def wants_text(args: Mapping[str, str], *, follow: bool = False) -> bool:
    """Parse `?format=`: plain lines for users instead of JSON, for existing lines only. Raises Invalid."""
    shape = args.get("format", "") or "json"
    if shape not in {"json", "text"}:
        raise Invalid("Invalid format parameter.", 'Allowed values are "json" and "text".')
    if shape == "text" and (follow or wants_follow(args)):
        raise Invalid("Text format is not supported with follow mode.", "Use format=json or omit the follow parameter.")
    return shape == "text"


def read_after(args: Mapping[str, str]) -> int:
    """Parse `?after=`, the number of a log line; genuine clients send -1 for "from the beginning". Raises Invalid."""
    after = go_int(args.get("after", "") or "0")
    if after is None:
        raise Invalid('Query param "after" must be an integer.', validations=[("after", "Must be an integer")])
    return max(after, 0)
