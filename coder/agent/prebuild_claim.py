"""Wait until a user claims a prebuilt workspace (docs/protocol/agents.md#outside-the-rpc-connection).

The server keeps the request open and sends one event. 409 means that no event will come: most workspaces were created
for their owner.
"""

from __future__ import annotations

import json
from contextlib import aclosing

import h11
import trio

from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.base.retry import Backoff
from coder.net.errors import error_from_body
from coder.net.http1 import MAX_REFUSAL, HttpClient
from coder.net.policy import DialPolicy

log = get_logger("agent")

PREBUILDS_OWNER = "prebuilds"
"""System user that owns prebuilt workspaces until a user claims them."""
_PATH = "/api/v2/workspaceagents/me/reinit?wait=true"
_FIRST_DELAY, _LAST_DELAY = 1.0, 30.0
"""Seconds between requests: proxies occasionally close connections that stay silent."""
_MAX_LINE = 64 << 10
_NO_CLAIM, _UNKNOWN_ROUTE = 409, 404
"""Final answers; with 404 a server does not know prebuilt workspaces."""


async def wait_until_claimed(policy: DialPolicy) -> bool:
    """Return True when a user has claimed the workspace, False when it had an owner from the start."""
    backoff = Backoff(_FIRST_DELAY, _LAST_DELAY)
    while True:
        began = trio.current_time()
        try:
            claimed = await _ask(policy)
        except (CoderError, OSError, trio.BrokenResourceError, h11.RemoteProtocolError) as error:
            log.debug("waiting for an owner was interrupted", error=error)
            claimed = None
        if claimed is not None:
            return claimed
        if trio.current_time() - began > _LAST_DELAY:
            backoff.reset()
        await trio.sleep(backoff.next_delay())


async def _ask(policy: DialPolicy) -> bool | None:
    """Return None when the request must be repeated."""
    async with HttpClient(policy) as client, client.stream("GET", _PATH) as answer:
        if answer.status == _NO_CLAIM:
            return False
        if answer.status == _UNKNOWN_ROUTE:
            refusal = error_from_body(answer.status, await answer.first(MAX_REFUSAL))
            return False if refusal.is_enveloped else None  # a proxy answers so for a server that restarts
        if answer.status != 200:
            return None
        text = bytearray()
        async with aclosing(answer.chunks()) as chunks:
            async for chunk in chunks:
                text += chunk
                if b"\n" not in chunk:
                    del text[:-_MAX_LINE]
                elif has_claim_event(bytes(text)):
                    return True
                else:
                    del text[: text.rindex(b"\n") + 1]  # already parsed
    return None


def has_claim_event(text: bytes) -> bool:
    """Return whether these lines of a stream contain the event."""
    for line in text.split(b"\n")[:-1]:
        if line.startswith(b"data:"):
            try:
                event = json.loads(line[5:])
            except (ValueError, RecursionError):
                continue
            if isinstance(event, dict) and event.get("reason") == "prebuild_claimed":
                return True
    return False
