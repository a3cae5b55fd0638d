"""Waiting until a workspace that was made ahead is given to somebody (docs/protocol/agents.md#beside-the-link).

The server keeps the request open and sends one event. 409 means that nothing will come: most workspaces were made for
their owner.
"""

from __future__ import annotations

import json
from contextlib import aclosing

import h11
import trio

from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.base.retry import Backoff
from coder.net.http1 import HttpClient
from coder.net.policy import DialPolicy

log = get_logger("agent")

NOBODY = "prebuilds"
"""The system user that owns workspaces nobody has asked for yet."""
_PATH = "/api/v2/workspaceagents/me/reinit?wait=true"
_FIRST_DELAY, _LAST_DELAY = 1.0, 30.0
"""Seconds between requests: connections that stay silent are cut by proxies now and then."""
_MOST = 64 << 10
_NEVER = frozenset({404, 409})
"""404: a server that knows nothing of prebuilt workspaces."""


async def wait_until_given(policy: DialPolicy) -> bool:
    """True when the workspace has got an owner, False when it had one all along."""
    backoff = Backoff(_FIRST_DELAY, _LAST_DELAY)
    while True:
        began = trio.current_time()
        try:
            found = await _ask(policy)
        except (CoderError, OSError, trio.BrokenResourceError, h11.RemoteProtocolError) as error:
            log.debug("waiting for an owner was interrupted", error=error)
            found = None
        if found is not None:
            return found
        if trio.current_time() - began > _LAST_DELAY:
            backoff.reset()
        await trio.sleep(backoff.next_delay())


async def _ask(policy: DialPolicy) -> bool | None:
    """None: ask again."""
    async with HttpClient(policy) as client, client.stream("GET", _PATH) as answer:
        if answer.status in _NEVER:
            return False
        if answer.status != 200:
            return None
        text = bytearray()
        async with aclosing(answer.chunks()) as chunks:
            async for chunk in chunks:
                text += chunk
                if b"\n" not in chunk:
                    del text[:-_MOST]
                elif is_claim(bytes(text)):
                    return True
                else:
                    del text[: text.rindex(b"\n") + 1]  # looked at, and never again
    return None


def is_claim(text: bytes) -> bool:
    """Whether the event is among these lines of a stream."""
    for line in text.split(b"\n")[:-1]:
        if line.startswith(b"data:"):
            try:
                found = json.loads(line[5:])
            except (ValueError, RecursionError):
                continue
            if isinstance(found, dict) and found.get("reason") == "prebuild_claimed":
                return True
    return False
