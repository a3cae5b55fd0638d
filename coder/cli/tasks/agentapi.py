"""Monitoring of AgentAPI alongside the tools: reports the model's state to the server even if the model does not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import aclosing

import trio

from coder.base.errors import CoderError
from coder.cli.tasks.app_status import AppStatusReporter, EventStream
from coder.cli.ui.output import say
from coder.net.http1 import HttpClient
from coder.net.policy import DialPolicy

AGAIN = 1.0
"""Seconds until AgentAPI is retried (our choice): it starts concurrently, and its stream ends when it exits."""


async def serve_watching(answer: Callable[[str], str | None], policy: DialPolicy, reporter: AppStatusReporter) -> None:
    """Answer the lines of standard input until it ends, watching AgentAPI meanwhile."""
    readline = sys.stdin.readline
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_watch, policy, reporter)
        while line := await trio.to_thread.run_sync(readline, abandon_on_cancel=True):
            # On a thread, because workspace tools call trio.run themselves.
            reply = await trio.to_thread.run_sync(answer, line) if line.strip() else None
            if reply is not None:
                sys.stdout.write(reply + "\n")
                sys.stdout.flush()
        nursery.cancel_scope.cancel()


async def _watch(policy: DialPolicy, reporter: AppStatusReporter) -> None:
    is_reported = False
    while True:
        try:
            async with HttpClient(policy) as client, client.stream("GET", "/events") as answer:
                if answer.status != 200:
                    raise CoderError("agentapi", f"it answers /events with {answer.status}")
                events = EventStream()
                async with aclosing(answer.chunks()) as chunks:
                    async for chunk in chunks:
                        is_reported = False
                        for event, data in events.feed(chunk):
                            await trio.to_thread.run_sync(reporter.seen, event, data)
        except (CoderError, OSError, ValueError) as error:
            if not is_reported:
                say(f"AgentAPI is not reachable ({error}); retrying")
            is_reported = True
        await trio.sleep(AGAIN)
