"""Log streams over WebSockets: build and import logs (one object per message), agent logs (arrays)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TypeVar
from uuid import UUID

import msgspec
import trio

from coder.api.agents.agent_streams import WorkspaceAgentLog
from coder.api.base.answers import read_answer
from coder.api.provisioning.jobs import ProvisionerJobLog
from coder.base.retry import Backoff
from coder.client.answers import read
from coder.client.patience import Patience, aread_patiently
from coder.net.errors import HttpError, NetError, is_outage, is_own_refusal
from coder.net.http1 import HttpClient
from coder.net.policy import DialPolicy
from coder.net.websocket import connect_websocket

T = TypeVar("T", ProvisionerJobLog, WorkspaceAgentLog)


class _Job(msgspec.Struct):
    status: str = ""


class _Owner(_Job):
    """A build or a version with its job, or a job itself."""

    job: _Job | None = None


POLL = 1.0
"""Seconds between requests where a proxy lets no stream through."""
_ENDED = frozenset({"succeeded", "failed", "canceled"})


async def follow_job_logs(policy: DialPolicy, path: str, *, after: int = -1) -> AsyncIterator[ProvisionerJobLog]:
    """Yield each log line from `after` until the job has ended; reconnect at the last line after a network failure.

    `path` is the logs endpoint, e.g. `/api/v2/workspacebuilds/{id}/logs`. Raise HttpError if the server rejects it,
    NetError if the server stays unreachable.
    """
    async for line in _follow(policy, path, after, ProvisionerJobLog):
        yield line


async def follow_agent_logs(policy: DialPolicy, agent_id: UUID, *, after: int = 0) -> AsyncIterator[WorkspaceAgentLog]:
    """Yield each agent log line until a newer build replaces the agent."""
    async for line in _follow(policy, f"/api/v2/workspaceagents/{agent_id}/logs", after, WorkspaceAgentLog):
        yield line


async def _follow(policy: DialPolicy, path: str, after: int, kind: type[T]) -> AsyncIterator[T]:
    backoff, patience = Backoff(0.1, 5), Patience(trio.current_time)
    attempts = 0
    while True:
        try:
            socket = await connect_websocket(policy, f"{path}?follow&after={after}")
        except (NetError, HttpError) as error:
            if isinstance(error, HttpError) and error.status == 426:
                # A proxy strips upgrades, and these streams have no other form: ask again and again.
                async for line in _polled(policy, path, after, kind):
                    yield line
                return
            if is_outage(error):
                await trio.sleep(patience.next_delay(error))
                continue
            attempts += 1
            if attempts > 8 or is_own_refusal(error):
                raise
            await trio.sleep(backoff.next_delay())
            continue
        try:
            while (message := await socket.receive_message()) is not None:
                attempts = 0
                patience.answered()
                for line in _lines(message, kind):
                    after = max(after, line.id)
                    yield line
            if socket.close_code == 1000:
                return
        except trio.BrokenResourceError:
            pass  # reconnect below, from the last line seen
        finally:
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(socket)
        await trio.sleep(backoff.next_delay())


async def _polled(policy: DialPolicy, path: str, after: int, kind: type[T]) -> AsyncIterator[T]:
    """Yield log lines by plain requests until the job has ended, or the agent is replaced."""
    owner = path.removesuffix("/logs")
    async with HttpClient(policy) as client:
        while True:
            try:
                found = read(await aread_patiently(client, owner), _Owner)
            except HttpError as error:
                if error.status == 404:
                    return
                raise
            is_over = (found.job or found).status in _ENDED
            # Asked after the status, so that the last lines of an ended job are not missed.
            for line in _lines((await aread_patiently(client, f"{path}?after={after}")).body, kind):
                after = max(after, line.id)
                yield line
            if is_over:
                return
            await trio.sleep(POLL)


def _lines(message: bytes | str, kind: type[T]) -> list[T]:
    """Parse a message: one line for job logs, a list for agent logs."""
    data = message.encode() if isinstance(message, str) else message
    return read_answer(data, list[kind]) if data.lstrip().startswith(b"[") else [read_answer(data, kind)]  # type: ignore[valid-type]
