"""What the server hears while a job runs: log lines in batches, heartbeats, and its answer that the job is canceled."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable

import trio

from coder.provisionerd.config import DaemonConfig
from coder.provisionerd.executors.contract import Emit
from coder.provisionerd.link import Link
from coder.provisionerd.redact import Redactor
from coder.rpc.proto import provisioner_pb2 as pb
from coder.rpc.proto import provisionerd_pb2 as pd

_FULL_BUFFER = 100
"Lines that are sent without waiting for more (docs/protocol/provisioners.md#the-daemon)."
_MAX_OUTPUT = 1_200_000
"""Bytes of output sent for one job. The server keeps 1 MiB and says so in the log; more would only be carried there
to be thrown away. A little above its limit, so that the sentence about it comes from one place."""
_MAX_REQUEST = 1024 * 1024
"Bytes of output in one update, well below the 4 MiB a message may have."
_MAX_STATE = 2 * 1024 * 1024
"Bytes of a state that goes along with an update; a bigger one travels with the end of the job only."


class Reporter:
    """Reports of one job. `run` must be running for buffered lines and heartbeats to leave."""

    def __init__(self, link: Link, job_id: str, config: DaemonConfig) -> None:
        self._link = link
        self._job_id = job_id
        self._config = config
        self._lines: list[pd.Log] = []
        self._sent_bytes = 0
        self._wake = trio.Event()
        self._full = trio.Event()
        self._one_at_a_time = trio.Lock()
        self._is_over = False
        self._last_update = trio.current_time()
        self.canceled = trio.Event()
        "The owner canceled the job."
        self.secrets = Redactor()
        "Never leave in a log line."
        self.state: Callable[[], bytes] | None = None
        "The state as it is now, while something changes it: the server keeps it, should this machine be lost."
        self._sent_state = 0

    def stage(self, name: str, *, mark: bool = True) -> Emit:
        """Where the lines of a stage go; `mark` writes the daemon's own empty line that opens it."""
        if mark:
            self._add(pd.LogSource.PROVISIONER_DAEMON, pb.LogLevel.INFO, name, "")

        def emit(level: pb.LogLevel.ValueType, output: str) -> None:
            self._add(pd.LogSource.PROVISIONER, level, name, output)

        return emit

    def _add(self, source: pd.LogSource.ValueType, level: pb.LogLevel.ValueType, stage: str, output: str) -> None:
        if self._sent_bytes > _MAX_OUTPUT:
            return
        output = self.secrets.clean(output)
        self._sent_bytes += len(output)
        now = time.time_ns() // 1_000_000
        self._lines.append(pd.Log(source=source, level=level, created_at=now, stage=stage, output=output))
        self._wake.set()
        if len(self._lines) > _FULL_BUFFER:
            self._full.set()

    async def run(self) -> None:
        """Sends batches and heartbeats until `finish`. Raises RpcError when the server refuses an update.

        A batch under way is waited for, however long the server is away: cancelled, its lines would be lost, and sent
        again they might be there twice.
        """
        while not self._is_over:
            silence = self._last_update + self._config.heartbeat - trio.current_time()
            with trio.move_on_after(max(0.0, silence)):
                await self._wake.wait()
            if self._lines:
                with trio.move_on_after(self._config.log_debounce):
                    await self._full.wait()
            if not self._is_over:
                await self.flush()

    def finish(self) -> None:
        """The job ended: `run` returns when what is under way has arrived. `flush` sends the rest."""
        self._is_over = True
        self._wake.set()
        self._full.set()

    async def flush(self) -> None:
        """Sends what is buffered; with nothing buffered it is a heartbeat. Raises RpcError."""
        async with self._one_at_a_time:
            self._wake, self._full = trio.Event(), trio.Event()
            while True:
                request = pd.UpdateJobRequest(
                    job_id=self._job_id, logs=self._take(), workspace_state=self._changed_state()
                )
                await self._update(request)
                if not self._lines:
                    return

    def _take(self) -> list[pd.Log]:
        size = count = 0
        for line in self._lines:
            size += len(line.output)
            count += 1
            if size > _MAX_REQUEST:
                break
        taken, self._lines = self._lines[:count], self._lines[count:]
        return taken

    def _changed_state(self) -> bytes:
        """The state, when the server does not have it yet."""
        if self.state is None:
            return b""
        state = self.state()
        digest = zlib.crc32(state)
        if len(state) > _MAX_STATE or digest == self._sent_state:
            return b""
        self._sent_state = digest
        return state

    async def update(self, request: pd.UpdateJobRequest) -> pd.UpdateJobResponse:
        """An update with more than logs. Raises RpcError."""
        async with self._one_at_a_time:
            return await self._update(request)

    async def _update(self, request: pd.UpdateJobRequest) -> pd.UpdateJobResponse:
        response = await self._link.call("UpdateJob", request, pd.UpdateJobResponse)
        self._last_update = trio.current_time()
        if response.canceled:
            self.canceled.set()
        return response
