"""Reports of a running job: log lines in batches, heartbeats, and the server's reply that the job is canceled."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable

import trio

from coder.base.log import get_logger
from coder.provisionerd.config import DaemonConfig
from coder.provisionerd.executors.contract import Emit
from coder.provisionerd.link import Link
from coder.provisionerd.redact import Redactor
from coder.rpc.errors import OUTCOME_UNKNOWN, RpcError
from coder.rpc.proto import provisioner_pb2 as pb
from coder.rpc.proto import provisionerd_pb2 as pd

_FULL_BUFFER = 100
"Number of lines sent without waiting for more (docs/protocol/provisioners.md#the-daemon)."
_MAX_OUTPUT = 1_200_000
"""Bytes of output sent for one job. The server keeps 1 MiB and notes the limit in the log; it would discard more. The
value is slightly above its limit, so that only the server writes that note."""
_MAX_REQUEST = 1024 * 1024
"Bytes of output in one update, well below the 4 MiB limit of a message."
_MAX_STATE = 2 * 1024 * 1024
"Bytes of a state sent with an update; a bigger state is sent with the end of the job only."
_log = get_logger("provisionerd")


class Reporter:
    """Reporter of one job. `run` must be running to send buffered lines and heartbeats."""

    def __init__(self, link: Link, job_id: str, config: DaemonConfig) -> None:
        self._link = link
        self._job_id = job_id
        self._config = config
        self._lines: list[pd.Log] = []
        self._sent_bytes = 0
        self._wake = trio.Event()
        self._full = trio.Event()
        self._update_lock = trio.Lock()
        self._is_finished = False
        self._last_update = trio.current_time()
        self.canceled = trio.Event()
        "Set when the owner canceled the job."
        self.secrets = Redactor()
        "Secrets that must never appear in a log line."
        self.state: Callable[[], bytes] | None = None
        """Function that returns the current state while an apply changes it: the server stores it in case this machine
        is lost."""
        self._sent_state = 0

    def stage(self, name: str, *, mark: bool = True) -> Emit:
        """Return the log sink of a stage; `mark` writes the daemon's own empty line that opens it."""
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
        """Send batches and heartbeats until `finish`. Raises RpcError when the server rejects an update.

        A batch in flight is never cancelled, however long the server is away: its lines would be lost, or duplicated by
        a retry.
        """
        while not self._is_finished:
            silence = self._last_update + self._config.heartbeat - trio.current_time()
            with trio.move_on_after(max(0.0, silence)):
                await self._wake.wait()
            if self._lines:
                with trio.move_on_after(self._config.log_debounce):
                    await self._full.wait()
            if not self._is_finished:
                await self.flush()

    def finish(self) -> None:
        """End the reports: `run` returns when the batch in flight has arrived. `flush` sends the rest."""
        self._is_finished = True
        self._wake.set()
        self._full.set()

    async def flush(self) -> None:
        """Send the buffered lines; an empty buffer makes it a heartbeat. Raises RpcError."""
        async with self._update_lock:
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
        batch, self._lines = self._lines[:count], self._lines[count:]
        return batch

    def _changed_state(self) -> bytes:
        """Return the state when the server does not have it yet, else b""."""
        if self.state is None:
            return b""
        state = self.state()
        digest = zlib.crc32(state)
        if len(state) > _MAX_STATE or digest == self._sent_state:
            return b""
        self._sent_state = digest
        return state

    async def update(self, request: pd.UpdateJobRequest) -> pd.UpdateJobResponse:
        """Send an update with more than logs. Raises RpcError."""
        async with self._update_lock:
            return await self._update(request)

    async def _update(self, request: pd.UpdateJobRequest) -> pd.UpdateJobResponse:
        try:
            response = await self._link.call("UpdateJob", request, pd.UpdateJobResponse)
        except RpcError as problem:
            if problem.number != OUTCOME_UNKNOWN:
                raise
            # The rest of an update may be repeated; the server would store the lines twice.
            _log.warn("lines may be missing in a job's log", job=self._job_id, lines=len(request.logs), error=problem)
            del request.logs[:]
            response = await self._link.call("UpdateJob", request, pd.UpdateJobResponse)
        self._last_update = trio.current_time()
        if response.canceled:
            self.canceled.set()
        return response
