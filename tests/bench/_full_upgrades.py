"""Part `upgrades`: all processes of a server are replaced again and again while sessions of every kind go on.

Sessions are OpenSSH shells, `coder ssh`, web terminals and scp of a file that is compared afterwards; half of the first
two may use the relay only. All but scp carry a line every quarter of a second, with its number and the time at which
the workspace wrote it. A pause is the longest time from there to its arrival here, so it contains what else the machine
did. A web terminal whose connection ends connects again, as the dashboard does, and is lost after 30 s without one.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import trio

from coder.base.secret import Secret
from coder.net.errors import HttpError, NetError
from coder.net.policy import DialPolicy
from coder.net.websocket import connect_websocket
from tests.bench._full import Emit, Options
from tests.bench._full_place import serving
from tests.bench._workspace import program
from tests.bench.first import Place, note, prepare
from tests.bench.replacements import DONE

INTERVAL = 0.25
LINES = f"""
import time
number, began = 0, time.monotonic()
while True:
    print(number, repr(time.monotonic()), "end", flush=True)
    number += 1
    time.sleep(max(began + number * {INTERVAL} - time.monotonic(), 0))
"""
"""What a session runs in the workspace, on this machine's clock."""
LIMITS = {"direct": 1.0, "relayed": 3.0, "web terminal": 3.0}
"""Paths, and the target of their pauses in seconds; the terminals' is the relay's."""
START_LIMIT = 120.0
RECONNECT_LIMIT, SILENCE = 30.0, 5.0
FILE_BYTES = 4 << 20
SCP_KBITS = 2_000
REPLACE_LIMIT = 120.0


def run(options: Options, folder: Path, emit: Emit) -> None:
    """Emit all rows."""
    place = Place(program(folder), folder)
    place.env |= {"CODER_PROCESSES": str(max(options.processes, 2)), "CODER_NO_COMMAND_SERVER": "1"}
    place.env["CODER_API_RATE_LIMIT"] = "-1"  # one user has all sessions, which connect again at the same time
    with serving(place, {"CODER_DANGEROUS_DISABLE_RATE_LIMITS": "true"}) as server:
        prepare(place)
        with place.agent():
            place.coder("config-ssh", "-y", "--ssh-config-file", str(folder / "ssh_config"))
            (folder / "lines.py").write_text(LINES)
            (folder / "file").write_bytes(os.urandom(FILE_BYTES))
            trio.run(Upgrades(place, server.pid, options, emit).run)


@dataclass
class Session:
    """What has arrived of a session."""

    kind: str
    path: str
    lines: int = 0
    lost: int = 0
    "Lines that were missing between two."
    longest: float = 0.0
    last: float = 0.0
    "When the latest new line came."
    connections: int = 0
    ended: str = ""
    "Why it ended before it was told to; empty while it goes on."

    def take(self, line: bytes) -> None:
        """Count a line, unless a terminal repeats it."""
        words = line.split()
        if len(words) != 3 or words[2] != b"end" or not words[0].isdigit():
            return
        number = int(words[0])
        if number < self.lines:
            return
        self.lost += number - self.lines
        self.lines, self.last = number + 1, time.monotonic()
        self.longest = max(self.longest, self.last - float(words[1]))

    def judge(self) -> None:
        """Count as lost what is silent at the end."""
        if not self.ended and time.monotonic() - self.last > SILENCE:
            self.ended = f"silent for {time.monotonic() - self.last:.0f} s"


@dataclass
class Copies:
    """What scp did."""

    done: int = 0
    failures: list[str] = field(default_factory=list)
    changed: int = 0


@dataclass
class Upgrades:
    """A run of the part."""

    place: Place
    server: int
    options: Options
    emit: Emit
    sessions: list[Session] = field(default_factory=list)
    copies: Copies = field(default_factory=Copies)
    is_over: bool = False

    async def run(self) -> None:
        count = self.options.count(self.options.sessions, 8)
        rounds = self.options.count(self.options.replacements, 2)
        seconds = max(self.options.seconds(self.options.upgrade_minutes), rounds * 2.0)
        shown = json.loads(self.place.coder("list", "-o", "json").stdout)
        agent = next(a["id"] for r in shown[0]["latest_build"]["resources"] for a in r.get("agents") or [])
        async with trio.open_nursery() as nursery:
            note(f"{count} sessions …")
            for number in range(count):
                await self._start(nursery, number, agent)
                await trio.sleep(0.2)
            await self._wait_started()
            for session in self.sessions:
                session.longest = 0.0
            took: list[float] = []
            try:
                await self._replace_all(rounds, seconds, took)
                await trio.sleep(3)
            finally:  # a run that is stopped has rows, too
                self.is_over = True
                for session in self.sessions:
                    session.judge()
                self._report(count, rounds, seconds, took)
            nursery.cancel_scope.cancel()

    async def _start(self, nursery: trio.Nursery, number: int, agent: str) -> None:
        path = "relayed" if number % 2 else "direct"
        kind = number % 10
        if kind == 9:
            nursery.start_soon(self._copy, number, path)
        elif kind in (7, 8):
            nursery.start_soon(self._terminal, self._add("web terminal", "web terminal"), agent)
        elif kind in (2, 3, 6):
            nursery.start_soon(self._process, self._add("coder ssh", path), ["coder"])
        else:
            nursery.start_soon(self._process, self._add("OpenSSH", path), ["ssh"])

    def _add(self, kind: str, path: str) -> Session:
        self.sessions.append(session := Session(kind, path))
        return session

    async def _wait_started(self) -> None:
        """Wait until each has written lines; those that have not by then are lost."""
        with trio.move_on_after(START_LIMIT):
            while any(session.lines < 20 and not session.ended for session in self.sessions):
                await trio.sleep(0.5)
        for session in self.sessions:
            if session.lines < 20 and not session.ended:
                session.ended = "never started"

    async def _replace_all(self, rounds: int, seconds: float, took: list[float]) -> None:
        """Replace all processes so often, evenly spread; add the seconds of each. Fewer where that takes too long."""
        log, began = self.place.folder / "server.log", trio.current_time()
        for number in range(rounds):
            await trio.sleep_until(began + number * seconds / rounds)
            if trio.current_time() - began > 1.3 * seconds + 60:
                break
            started = trio.current_time()
            os.kill(self.server, signal.SIGHUP)
            with trio.move_on_after(REPLACE_LIMIT) as scope:
                while log.read_bytes().count(DONE.encode()) <= number:
                    await trio.sleep(0.1)
            if scope.cancelled_caught:
                note(f"  replacement {number + 1} was not done within {REPLACE_LIMIT:.0f} s")
                break
            took.append(trio.current_time() - started)
            note(f"  replacement {number + 1}: {took[-1]:.1f} s, {self._lost()} sessions lost")

    def _lost(self) -> int:
        return sum(bool(session.ended) for session in self.sessions) + len(self.copies.failures)

    def _report(self, count: int, rounds: int, seconds: float, took: list[float]) -> None:
        name, emit = f"{rounds} replacements in {seconds / 60:.1f} minutes, {count} sessions", self.emit
        emit(f"{name}: replacements done", len(took), "", rounds, better="higher")
        emit(f"{name}: sessions lost", self._lost(), "sessions", 0)
        emit(f"{name}: lines lost", sum(session.lost for session in self.sessions), "lines", 0)
        emit(f"{name}: files of scp that came changed", self.copies.changed, "files", 0)
        emit(f"{name}: files copied by scp", self.copies.done, "files", None)
        for path, limit in LIMITS.items():
            pauses = [session.longest for session in self.sessions if session.path == path]
            if pauses:
                emit(f"{name}: longest pause, {path}", max(pauses), "s", limit)
                emit(f"{name}: median of the sessions' longest pauses, {path}", statistics.median(pauses), "s", None)
        again = sum(max(session.connections - 1, 0) for session in self.sessions)
        emit(f"{name}: web terminals connected again", again, "times", None)
        if took:
            emit("replacement of all processes, median", statistics.median(took), "s", None)
            emit("replacement of all processes, longest", max(took), "s", None)
        for session in self.sessions:
            if session.ended:
                note(f"  lost: {session.kind}, {session.path}: {session.ended}")
        for failure in self.copies.failures[:5]:
            note(f"  lost: scp: {failure}")

    # ---- kinds of sessions

    def _env(self, path: str) -> dict[str, str]:
        return {**self.place.env, "CODER_DISABLE_DIRECT_CONNECTIONS": str(path == "relayed").lower()}

    def _script(self) -> str:
        return f"{sys.executable} -S -E {self.place.folder / 'lines.py'}"

    async def _process(self, session: Session, kind: list[str]) -> None:
        config = str(self.place.folder / "ssh_config")
        command = [str(self.place.binary), "ssh", "ws"] if kind == ["coder"] else ["ssh", "-F", config, "coder.ws"]
        async with _running([*command, self._script()], self._env(session.path)) as process:
            assert process.stdout is not None
            await _feed(process.stdout, session)
            status = await process.wait()
            if not self.is_over:
                session.ended = f"ended with status {status}"

    async def _terminal(self, session: Session, agent: str) -> None:
        query = {"reconnect": str(uuid4()), "width": 200, "height": 50, "backend_type": "buffered"}
        path = f"/api/v2/workspaceagents/{agent}/pty?{urlencode({**query, 'command': self._script()})}"
        token = (self.place.folder / "config/session").read_text().strip()
        policy = DialPolicy(self.place.url, Secret(token), proxies={})
        since = trio.current_time()
        while trio.current_time() - since < RECONNECT_LIMIT:
            with contextlib.suppress(HttpError, NetError, OSError, trio.BrokenResourceError, trio.EndOfChannel):
                async with await connect_websocket(policy, path) as socket:
                    session.connections += 1
                    await _feed(socket, session)
                    since = trio.current_time()
            await trio.sleep(0.25)
        session.ended = f"no connection for {RECONNECT_LIMIT:.0f} s"

    async def _copy(self, number: int, path: str) -> None:
        """Copy a file in, slowly, and compare; again and again."""
        source, target = self.place.folder / "file", self.place.folder / f"copy-{number}"
        command = ["scp", "-q", "-l", str(SCP_KBITS), "-F", str(self.place.folder / "ssh_config")]
        while True:
            done = await trio.run_process(
                [*command, str(source), f"coder.ws:{target}"],
                env=self._env(path),
                stdin=subprocess.DEVNULL,
                capture_stdout=True,
                capture_stderr=True,
                check=False,
            )
            if done.returncode:
                self.copies.failures.append(done.stderr.decode(errors="replace")[-200:] or f"status {done.returncode}")
                await trio.sleep(5)
                continue
            self.copies.done += 1
            self.copies.changed += target.read_bytes() != source.read_bytes()


@asynccontextmanager
async def _running(command: list[str], env: dict[str, str]) -> AsyncIterator[trio.Process]:
    process: Any = await trio.lowlevel.open_process(
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with trio.CancelScope(shield=True), contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
            with trio.move_on_after(5):
                await process.wait()
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                await process.wait()


async def _feed(stream: Any, session: Session) -> None:
    """Give a stream's lines to the session until it ends."""
    buffer = b""
    while data := await stream.receive_some(65536):
        *lines, buffer = (buffer + data).split(b"\n")
        for line in lines:
            session.take(line)
