"""Start, stop and cron scripts: concurrent, output streamed, result reported, no process left behind."""

from __future__ import annotations

import math
import os
import subprocess
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import trio

from coder.agent.disk import DISK_TIMEOUT, Threads, on_disk
from coder.agent.platform import system
from coder.agent.state import AgentState
from coder.agent.workspace import environment
from coder.agent.workspace.children import kill_group
from coder.agent.workspace.cron import next_run
from coder.agent.workspace.files import workdir
from coder.agent.workspace.logs import LogQueue
from coder.agent.workspace.script_directories import ScriptDirectories
from coder.agent.workspace.script_log import ScriptLog, script_log
from coder.base.errors import explain_error
from coder.base.exception_groups import single_failure
from coder.base.log import get_logger
from coder.base.threads import NoThreadError
from coder.domain.foundation.cron import CronError
from coder.rpc.durations import seconds
from coder.rpc.proto import agent_pb2

log = get_logger("agent.scripts")

Script = agent_pb2.WorkspaceAgentScript
Stage = agent_pb2.Timing.Stage
Status = agent_pb2.Timing.Status
PIPE_GRACE = 10.0
"Seconds for pipes to close after a script has exited; then PIPES_LEFT_OPEN (docs/protocol/agents.md#limits)."
UNKNOWN_EXIT = 255
MAX_REST = 1 << 20
"Bytes of an unterminated line after which it counts as a line."
CHECK_INTERVAL = 3600.0
"Seconds (ours) between checks of the directories on PATH."
_CHUNK = 64 << 10
_THREADS = Threads(8)
"Threads for the scripts' directories, which may be on a disk that does not answer."


@dataclass(frozen=True, slots=True)
class ScriptOutcome:
    """Combined result of a set of scripts."""

    failed: bool = False
    timed_out: bool = False


Report = Callable[[agent_pb2.Timing], Awaitable[None]]


class ScriptRunner:
    """Runner of the manifest's scripts."""

    def __init__(self, state: AgentState, queue: LogQueue, report: Report, log_dir: Path, data_dir: Path) -> None:
        self._state, self._queue, self._report = state, queue, report
        self._log_dir = log_dir
        self._directories = ScriptDirectories(data_dir, state.identity.home)
        self._cron_ended = trio.Event()

    def prepare(self) -> None:
        """Create or check the scripts' directories, and set those that the PATH of commands contains."""
        for create in (partial(self._log_dir.mkdir, parents=True, exist_ok=True), self._set_path):
            try:
                create()
            except OSError as error:
                log.warn("creating the scripts' directories failed", error=error)

    async def keep_directories(self) -> None:
        """Check the directories on PATH again and again: once a cleaner of temporary files has removed one, another
        user could create it."""
        while True:
            await trio.sleep(CHECK_INTERVAL)
            with trio.move_on_after(DISK_TIMEOUT):
                await on_disk(self.prepare, limiter=_THREADS)

    def _set_path(self) -> None:
        state = self._state
        try:
            state.script_bin = self._directories.bin()
            state.program_folder = self._directories.program_folder(Path(state.executable))
        except OSError:
            state.script_bin = state.program_folder = None
            raise

    async def run_all(self, scripts: list[Script], stage: agent_pb2.Timing.Stage.ValueType) -> ScriptOutcome:
        """Run all scripts concurrently; return when every script has ended."""
        results: list[agent_pb2.Timing.Status.ValueType] = []

        async def run_one(script: Script) -> None:
            results.append(await self.run(script, stage))

        async with trio.open_nursery() as nursery:
            for script in scripts:
                nursery.start_soon(run_one, script)
        timed_out = Status.TIMED_OUT in results
        return ScriptOutcome(
            failed=any(result not in {Status.OK, Status.TIMED_OUT} for result in results), timed_out=timed_out
        )

    async def run_cron(self, scripts: list[Script]) -> None:
        """Run cron scripts at their times until `end_cron`; wait for those that run then."""
        async with trio.open_nursery() as nursery:
            for script in scripts:
                if script.cron:
                    nursery.start_soon(self._cron, script)

    def end_cron(self) -> None:
        """Start no further cron script, because it would be killed immediately."""
        self._cron_ended.set()

    async def _cron(self, script: Script) -> None:
        while not self._cron_ended.is_set():
            now = datetime.now().astimezone()
            try:
                at = next_run(script.cron, now)
            except CronError as error:
                self._queue.add(script.log_source_id, f"the cron line is invalid: {error}", agent_pb2.Log.ERROR)
                return
            if at is None:
                log.warn("cron expression can never run", cron=script.cron)
                return
            with trio.move_on_after(max(0.0, (at - now).total_seconds())):
                await self._cron_ended.wait()
            if not self._cron_ended.is_set():
                await self.run(script, Stage.CRON)

    async def run(self, script: Script, stage: agent_pb2.Timing.Stage.ValueType) -> agent_pb2.Timing.Status.ValueType:
        """Run one script to its end. Failures are results, never exceptions."""
        started = datetime.now(UTC)
        try:
            with self._state.activity.of("scripts"), single_failure():
                code, status = await self._execute(script)
        except (OSError, ValueError) as error:  # a zero byte, which no command line can hold
            self._queue.add(script.log_source_id, f"script could not be started: {error}", agent_pb2.Log.ERROR)
            code, status = UNKNOWN_EXIT, Status.EXIT_FAILURE
        if status == Status.TIMED_OUT:
            self._queue.add(script.log_source_id, "script timed out", agent_pb2.Log.ERROR)
        elif code:
            self._queue.add(script.log_source_id, f"script exited with code {code}", agent_pb2.Log.ERROR)
        succeeded = str(status == Status.OK).lower()
        self._state.counters.count("agent_scripts_executed_total", success=succeeded)
        timing = agent_pb2.Timing(script_id=script.id, exit_code=code, stage=stage, status=status)
        timing.start.FromDatetime(started)
        timing.end.FromDatetime(datetime.now(UTC))
        await self._report(timing)
        return status

    async def _execute(self, script: Script) -> tuple[int, agent_pb2.Timing.Status.ValueType]:
        directories = await self._script_directories(script)
        env = environment.command_environment(self._state) | directories
        argv = environment.command_line(self._state.identity, script.script or "true")
        timeout = seconds(script.timeout)
        async with script_log(
            self._log_path(script), fallback=partial(self._directories.log, _log_name(script))
        ) as out:
            process = await trio.lowlevel.open_process(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=env,
                cwd=await workdir(self._state),
                **system.START,
            )
            return await self._follow(script, process, out, timeout if timeout > 0 else math.inf)

    async def _script_directories(self, script: Script) -> dict[str, str]:
        """Return the variables that name the script's directories; none when they cannot be created. Raises
        NoThreadError."""
        try:
            with trio.fail_after(DISK_TIMEOUT):
                return await on_disk(self._variables, str(uuid.UUID(bytes=script.log_source_id)), limiter=_THREADS)
        except trio.TooSlowError:
            reason = "their disk does not answer"
        except NoThreadError:
            raise
        except OSError as error:
            reason = explain_error(error)
        text = f"the script has no directories of its own: {reason}"
        self._queue.add(script.log_source_id, text, agent_pb2.Log.WARN)
        return {}

    def _variables(self, source: str) -> dict[str, str]:
        data, programs = self._directories.data(source), self._directories.bin()
        if programs != self._state.script_bin:
            self._set_path()
        return {"CODER_SCRIPT_DATA_DIR": str(data), "CODER_SCRIPT_BIN_DIR": str(programs)}

    async def _follow(
        self, script: Script, process: trio.Process, out: ScriptLog, timeout: float
    ) -> tuple[int, agent_pb2.Timing.Status.ValueType]:
        status: agent_pb2.Timing.Status.ValueType = Status.OK
        async with trio.open_nursery() as nursery:
            pipes = trio.Event()
            nursery.start_soon(self._copy_both, script, process, out, pipes)
            try:
                with trio.move_on_after(timeout) as scope:
                    await process.wait()
                if scope.cancelled_caught:
                    status = Status.TIMED_OUT
                    kill_group(process.pid, system.TERMINATE)
                    with trio.move_on_after(PIPE_GRACE):
                        await process.wait()
                with trio.move_on_after(PIPE_GRACE) as grace:
                    await pipes.wait()
                if grace.cancelled_caught and status == Status.OK:
                    status = Status.PIPES_LEFT_OPEN
            finally:
                if process.returncode is None:
                    kill_group(process.pid, system.KILL)
                nursery.cancel_scope.cancel()
        code = process.returncode if process.returncode is not None and process.returncode >= 0 else UNKNOWN_EXIT
        if code and status in {Status.OK, Status.PIPES_LEFT_OPEN}:
            status = Status.EXIT_FAILURE
        return code, status

    async def _copy_both(self, script: Script, process: trio.Process, out: ScriptLog, done: trio.Event) -> None:
        """Copy both pipes. They have no common order: of output that arrives together, standard output goes first."""
        assert process.stdout is not None and process.stderr is not None  # noqa: S101 - requested
        plain = _Pipe(self._queue, script.log_source_id, agent_pb2.Log.INFO, out)
        errors = _Pipe(self._queue, script.log_source_id, agent_pb2.Log.ERROR, out)
        stdout = process.stdout

        async def copy_errors(pipe: trio.abc.ReceiveStream) -> None:
            async for chunk in pipe:
                plain.add_chunk(system.read_available(stdout, _CHUNK))
                errors.add_chunk(chunk)
                await out.wait_for_room()
            plain.add_chunk(system.read_available(stdout, _CHUNK))
            errors.finish()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(copy_errors, process.stderr)
            async for chunk in process.stdout:
                plain.add_chunk(chunk)
                await out.wait_for_room()
            plain.finish()
        done.set()

    def _log_path(self, script: Script) -> Path:
        if script.log_path.startswith(("/", "~", "$")):
            return environment.expand_directory(script.log_path, self._state.identity, dict(os.environ))
        return self._log_dir / (script.log_path or _log_name(script))


def _log_name(script: Script) -> str:
    return f"coder-script-{uuid.UUID(bytes=script.log_source_id)}.log"


class _Pipe:
    """Splitter of one pipe's output into log lines."""

    def __init__(self, queue: LogQueue, source: bytes, level: agent_pb2.Log.Level.ValueType, out: ScriptLog) -> None:
        self._queue, self._source, self._level, self._out = queue, source, level, out
        self._rest = b""

    def add_chunk(self, chunk: bytes | bytearray) -> None:
        self._out.write(chunk)
        *lines, rest = (self._rest + chunk).split(b"\n")
        if len(rest) > MAX_REST:
            lines, rest = [*lines, rest], b""
        self._rest = rest
        for line in lines:
            self._add_line(line.rstrip(b"\r"))

    def finish(self) -> None:
        if self._rest:
            self._add_line(self._rest)
            self._rest = b""

    def _add_line(self, line: bytes | bytearray) -> None:
        self._queue.add(self._source, line.decode(system.output_encoding(line), "replace"), self._level)
