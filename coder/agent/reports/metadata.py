"""Agent metadata: short commands run at intervals, their output reported in batches.

Source: docs/protocol/agents.md#limits (ticks of one second, 10 KiB of output, one call in flight).
"""

from __future__ import annotations

import math
import subprocess
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import trio

from coder.agent.platform import system
from coder.agent.state import AgentState
from coder.agent.workspace import environment
from coder.agent.workspace.children import end_group
from coder.agent.workspace.files import workdir
from coder.rpc.proto import agent_pb2

TICK = 1.0
MAX_OUTPUT = 10 << 10
DEFAULT_TIMEOUT = 3.0
MAX_RUNNING = 64
"Commands (ours) that run at a time; others wait for their turn."

Description = agent_pb2.WorkspaceAgentMetadata.Description
Send = Callable[[agent_pb2.BatchUpdateMetadataRequest], Awaitable[object]]


def wire_seconds(duration: object) -> float:
    """Return the seconds of an interval or timeout: on the wire a Duration whose *nanoseconds* count seconds."""
    seconds, nanos = getattr(duration, "seconds", 0), getattr(duration, "nanos", 0)
    return float(seconds) * 1e9 + float(nanos)


class MetadataCollector:
    """Collector of the current manifest's metadata. A manifest that arrives while `loop` runs applies from the next
    tick."""

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._results: dict[str, agent_pb2.WorkspaceAgentMetadata.Result] = {}
        self._due: dict[str, float] = {}
        self._running: set[str] = set()
        self._slots = trio.Semaphore(MAX_RUNNING)

    async def loop(self, send: Send) -> None:
        """Collect and report until cancelled; a failing `send` ends it."""
        async with trio.open_nursery() as nursery:
            while True:
                if self._state.manifest is not None:
                    for description in self._state.manifest.metadata:
                        self._start_if_due(nursery, description)
                if self._results:
                    await self._flush(send)
                await trio.sleep_until(self._next_tick())

    def _next_tick(self) -> float:
        """Return the time of the next tick. An agent with nothing due does not wake up."""
        manifest, now = self._state.manifest, trio.current_time()
        if manifest is None or self._running or self._results:
            return now + TICK
        due = (self._due.get(description.key, 0) for description in manifest.metadata)
        return max(now + TICK, min(due, default=math.inf))

    async def _flush(self, send: Send) -> None:
        results, self._results = self._results, {}
        request = agent_pb2.BatchUpdateMetadataRequest()
        for key, result in results.items():
            request.metadata.append(agent_pb2.Metadata(key=key, result=result))
        try:
            await send(request)
        except BaseException:
            self._results = results | self._results
            raise

    def _start_if_due(self, nursery: trio.Nursery, description: Description) -> None:
        now, key = trio.current_time(), description.key
        if key in self._running or now < self._due.get(key, 0):
            return
        interval = wire_seconds(description.interval)
        self._due[key] = now + interval if interval > 0 else math.inf
        self._running.add(key)
        nursery.start_soon(self._collect, description, interval)

    async def _collect(self, description: Description, interval: float) -> None:
        timeout = next((time for time in (wire_seconds(description.timeout), interval) if time > 0), DEFAULT_TIMEOUT)
        result = agent_pb2.WorkspaceAgentMetadata.Result()
        try:
            async with self._slots:
                result.value, result.error = await self._run(description.script, timeout)
        except (OSError, ValueError) as error:  # a zero byte, which no command line can hold
            result.error = f"run cmd: {error}"
        except trio.Cancelled:
            self._due.pop(description.key, None)  # it is still due: there may be no later turn
            raise
        finally:
            self._running.discard(description.key)
        result.collected_at.FromDatetime(datetime.now(UTC))
        self._results[description.key] = result

    async def _run(self, script: str, timeout: float) -> tuple[str, str]:
        process = await trio.lowlevel.open_process(
            environment.command_line(self._state.identity, script),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment.command_environment(self._state),
            cwd=await workdir(self._state),
            **system.START,
        )
        output = bytearray()
        size = 0
        try:
            with trio.move_on_after(timeout) as scope:
                if process.stdout is not None:
                    async for chunk in process.stdout:
                        size += len(chunk)
                        output += chunk[: MAX_OUTPUT - len(output)]
                await process.wait()
        finally:
            await end_group(process)
        error = ""
        if scope.cancelled_caught:
            error = "run cmd: timed out"
        elif process.returncode:
            error = f"run cmd: exit status {process.returncode}"
        elif size > MAX_OUTPUT:
            error = f"output truncated from {size} to {MAX_OUTPUT} bytes"
        return output.decode("utf-8", "replace"), error
