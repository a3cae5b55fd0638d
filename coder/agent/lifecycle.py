"""State machine of the agent's lifecycle, and the queue that reports every state in order, even across reconnects.

Source: docs/protocol/agents.md#order. States only ever move forward within one process.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import trio

from coder.rpc.proto import agent_pb2

State = agent_pb2.Lifecycle.State

ORDER = (
    State.CREATED,
    State.STARTING,
    State.START_TIMEOUT,
    State.START_ERROR,
    State.READY,
    State.SHUTTING_DOWN,
    State.SHUTDOWN_TIMEOUT,
    State.SHUTDOWN_ERROR,
    State.OFF,
)


class Lifecycle:
    """Record of each state reached, handed out in order for reporting."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._states: list[agent_pb2.Lifecycle] = []
        self._reported = 0
        self._changed = trio.Event()

    @property
    def current(self) -> agent_pb2.Lifecycle.State.ValueType:
        return self._states[-1].state if self._states else State.CREATED

    def set(self, state: agent_pb2.Lifecycle.State.ValueType) -> None:
        """Move forward to `state`. A step back is ignored: a late script must not undo a shutdown."""
        if ORDER.index(state) <= ORDER.index(self.current):
            return
        entry = agent_pb2.Lifecycle(state=state)
        entry.changed_at.FromDatetime(self._now())
        self._states.append(entry)
        self._wake()

    def history(self) -> list[tuple[int, float]]:
        """Return every state reached with its time in seconds since 1970, for the program that takes over."""
        return [(entry.state, entry.changed_at.ToNanoseconds() / 1e9) for entry in self._states]

    def __len__(self) -> int:
        """Return the number of states that the server has not confirmed."""
        return len(self._states) - self._reported

    def resume(self, states: list[tuple[int, float]], reported: int | None) -> None:
        """Continue the history of a previous program. `reported` is the number of states the server has confirmed;
        None: all of them."""
        for state, at in states:
            entry = agent_pb2.Lifecycle(state=State.ValueType(state))
            entry.changed_at.FromNanoseconds(int(at * 1e9))
            self._states.append(entry)
        self._reported = len(self._states) if reported is None else max(0, min(reported, len(self._states)))

    def resend_all(self) -> None:
        """Report every state again: the server created a new agent record, which has no states yet."""
        self._reported = 0
        self._wake()

    async def next_unreported(self) -> agent_pb2.Lifecycle:
        """Return the oldest state the server has not confirmed; wait for one."""
        while self._reported >= len(self._states):
            await self._changed.wait()
        return self._states[self._reported]

    def confirm(self) -> None:
        self._reported += 1
        self._wake()

    @property
    def reported(self) -> int:
        """Number of states the server has confirmed."""
        return self._reported

    async def wait_sent(self) -> None:
        while len(self):
            await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()
