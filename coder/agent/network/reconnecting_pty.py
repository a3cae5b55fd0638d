"""Terminals that outlive their connection (overlay port 2): the web terminal's side in the workspace.

Wire form (docs/protocol/agent-services.md#terminals): u16 little-endian length and a JSON init from the client, then
JSON objects with data and size; raw terminal bytes back, the last 64 KiB first.
"""

from __future__ import annotations

import json
import os
import re
import signal
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trio

from coder.agent.state import AgentState
from coder.agent.upgrade.handover import KeptTerminal
from coder.agent.workspace import environment, terminal
from coder.agent.workspace.children import Child, end_group, kill_group
from coder.agent.workspace.containers import Container
from coder.agent.workspace.files import workdir
from coder.base.log import get_logger

log = get_logger("agent.pty")

REPLAY = 64 << 10
UNATTACHED_LIFE = 300.0
FIRST_ATTACH = 30.0
MAX_INIT = 64 << 10
LAST_WORDS = 3.0
"Seconds for a program to end that was hung up (ours)."
OUT_QUEUE = 256
"Chunks waiting for one slow viewer; then it is dropped, the terminal must not wait for it."
_SPACE = re.compile(r"\s*+")


@dataclass(frozen=True, slots=True)
class Init:
    ident: str
    height: int
    width: int
    command: str
    container: Container | None = None


class PtyService:
    """All sessions of this agent; `serve` takes one connection."""

    def __init__(self, state: AgentState, nursery: trio.Nursery) -> None:
        self._state, self._nursery = state, nursery
        self._sessions: dict[str, _Session] = {}

    def let_go(self) -> None:
        """Nothing is read any more, nothing ended: for the next program of this process. To be cancelled after."""
        for session in self._sessions.values():
            session.let_go()

    def left(self) -> list[KeptTerminal]:
        """What that program goes on with."""
        return [session.left(ident) for ident, session in self._sessions.items() if session.is_let_go]

    def resume(self, kept: list[KeptTerminal]) -> None:
        """Goes on with terminals of the program before."""
        for one in kept:
            self._attend(one.ident, _Session(Child(one.pid), one.master, one.replay))

    async def serve(self, stream: trio.abc.Stream) -> None:
        """One connection, to its end. Bad input closes it silently."""
        async with stream:
            try:
                init, rest = await _read_init(stream)
            except (ValueError, TypeError, OverflowError, RecursionError, trio.BrokenResourceError):
                return
            where = await workdir(self._state)  # before the look for the session: two viewers may come at once
            session = self._sessions.get(init.ident)
            if session is None:
                try:
                    session = self._open(init, where)
                except OSError as error:
                    await stream.send_all(f"coder agent: {error.strerror or error}\r\n".encode())
                    return
                except ValueError as error:  # a zero byte, which no command line can hold
                    await stream.send_all(f"coder agent: {error}\r\n".encode())
                    return
            else:
                session.resize(init.height, init.width)  # the newest viewer's window counts, as in the recordings
            ident = self._state.open_session("reconnecting_pty")
            self._state.counters.count("agent_reconnecting_pty_connections_total")
            code = 1
            try:
                await session.attach(stream, rest)
                code = 0
            except* (trio.BrokenResourceError, trio.ClosedResourceError):
                pass  # the viewer left; the session stays
            finally:
                self._state.close_session(ident, "reconnecting_pty", code)

    def _open(self, init: Init, where: Path) -> _Session:
        env = environment.command_environment(self._state) | {"TERM": "xterm-256color"}
        if (
            not any("utf" in env.get(name, "").lower() for name in ("LC_ALL", "LC_CTYPE", "LANG"))
            and "LC_ALL" not in env
        ):
            env["LC_CTYPE"] = "C.UTF-8"
        if init.container is None:
            argv = environment.command_line(self._state.identity, init.command)
        else:
            passed = [*environment.passed_inside(self._state), "TERM"]
            argv = init.container.command_line(init.command, env, tty=True, passed=passed)
        process, master, _ = terminal.spawn(argv, env, where, height=init.height or 80, width=init.width or 80)
        session = _Session(Child(process.pid), master)
        process.returncode = 0  # of no use any more: the child is waited for here, and Popen's finalizer would, too
        self._attend(init.ident, session)
        return session

    def _attend(self, ident: str, session: _Session) -> None:
        self._sessions[ident] = session
        self._nursery.start_soon(self._run, ident, session)

    async def _run(self, ident: str, session: _Session) -> None:
        try:
            await session.run()
        finally:
            if not session.is_let_go:
                self._sessions.pop(ident, None)


class _Session:
    """One terminal, its replay buffer and its viewers."""

    def __init__(self, child: Child, master: int, replay: bytes = b"") -> None:
        self._child, self._master = child, master
        self._replay = deque([replay] if replay else [])
        self._replay_size = len(replay)
        self._viewers: set[trio.MemorySendChannel[bytes]] = set()
        self._typing = trio.Lock()
        "One viewer at a time waits for a program that does not read; what another types comes behind."
        self._attached = trio.Event()
        self._life = UNATTACHED_LIFE if replay else FIRST_ATTACH
        self._over = self.is_let_go = False

    async def run(self) -> None:
        """Reads the terminal until its program ends or nobody has watched for too long."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._expire, nursery.cancel_scope)
                await self._read()
                nursery.cancel_scope.cancel()
        finally:
            self._over = True
            for viewer in list(self._viewers):
                viewer.close()
            if not self.is_let_go:
                kill_group(self._child.pid, signal.SIGHUP)
                trio.lowlevel.notify_closing(self._master)
                os.close(self._master)
                with trio.CancelScope(shield=True):
                    await self._reap()

    def let_go(self) -> None:
        """What the terminal says from now on waits for the next program. One that is ending goes on doing so."""
        self.is_let_go = not self._over

    def left(self, ident: str) -> KeptTerminal:
        return KeptTerminal(ident, self._child.pid, self._master, b"".join(self._replay)[-REPLAY:])

    async def _reap(self) -> None:
        with trio.move_on_after(LAST_WORDS) as scope:
            await self._child.wait()
        if scope.cancelled_caught:
            await end_group(self._child)

    async def _read(self) -> None:
        while not self.is_let_go:
            try:
                data = os.read(self._master, 65536)
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self._master)
                continue
            except OSError:
                return  # EIO: every program has closed the terminal
            if not data:
                return
            self._remember(data)
            for viewer in list(self._viewers):
                try:
                    viewer.send_nowait(data)
                except trio.WouldBlock:
                    self._viewers.discard(viewer)
                    viewer.close()

    def _remember(self, data: bytes) -> None:
        self._replay.append(data)
        self._replay_size += len(data)
        while self._replay_size > REPLAY and len(self._replay) > 1:
            self._replay_size -= len(self._replay.popleft())

    async def _expire(self, scope: trio.CancelScope) -> None:
        while True:
            if self._viewers:
                await trio.sleep(UNATTACHED_LIFE / 2)
                self._life = UNATTACHED_LIFE
                continue
            self._attached = trio.Event()
            with trio.move_on_after(self._life):
                await self._attached.wait()
                self._life = UNATTACHED_LIFE
                continue
            scope.cancel()
            return

    async def attach(self, stream: trio.abc.Stream, rest: bytes) -> None:
        """Copies both ways until the viewer leaves or the program ends."""
        send, receive = trio.open_memory_channel[bytes](OUT_QUEUE)
        replay = b"".join(self._replay)[-REPLAY:]
        self._viewers.add(send)
        self._attached.set()
        try:
            if replay:
                await stream.send_all(replay)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._from_viewer, stream, rest, nursery.cancel_scope)
                async for data in receive:
                    await stream.send_all(data)
                nursery.cancel_scope.cancel()
        finally:
            self._viewers.discard(send)

    async def _from_viewer(self, stream: trio.abc.Stream, rest: bytes, scope: trio.CancelScope) -> None:
        buffer = rest.decode("utf-8", "surrogateescape")
        decoder = json.JSONDecoder()
        pending = b""
        while True:
            try:
                messages, buffer = _messages(decoder, buffer)
            except RecursionError:  # nested by the thousand: no terminal client, either
                scope.cancel()
                return
            for message in messages:
                await self._on_message(message)
            chunk = await stream.receive_some(65536)
            if not chunk:
                scope.cancel()
                return
            text, pending = _decode_partial(pending + bytes(chunk))
            buffer += text
            if len(buffer) > (1 << 20):
                scope.cancel()  # a megabyte without one whole object is no terminal client
                return

    def resize(self, height: object, width: object) -> None:
        """Tell the program the size of the viewer's window; senseless ones are ignored."""
        if self._over or not isinstance(height, int) or not isinstance(width, int):
            return
        if 0 < height < 1 << 16 and 0 < width < 1 << 16:
            terminal.resize(self._master, height, width)

    async def _on_message(self, message: dict[str, Any]) -> None:
        self.resize(message.get("height"), message.get("width"))
        text = message.get("data") or ""
        data = _typed(text) if isinstance(text, str) else b""
        async with self._typing:
            while data and not self._over:
                try:
                    data = data[os.write(self._master, data) :]
                except BlockingIOError:
                    await trio.lowlevel.wait_writable(self._master)
                except (OSError, trio.ClosedResourceError):
                    return


def _typed(text: str) -> bytes:
    """What the viewer typed. Bytes that were no UTF-8 stay as they were; half a surrogate pair is U+FFFD, as in Go."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def _messages(decoder: json.JSONDecoder, buffer: str) -> tuple[list[dict[str, Any]], str]:
    """The complete JSON objects at the front of `buffer`, and what follows them. Raises RecursionError."""
    found: list[dict[str, Any]] = []
    at = 0  # the text is cut once: it may be thirty thousand objects of two letters
    while (start := _behind_space(buffer, at)) < len(buffer):
        try:
            value, at = decoder.raw_decode(buffer, start)
        except json.JSONDecodeError:
            break
        if isinstance(value, dict):
            found.append(value)
    return found, buffer[at:].lstrip()


def _behind_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


def _decode_partial(data: bytes) -> tuple[str, bytes]:
    """UTF-8 text and the bytes of a character cut at the end."""
    for cut in range(min(3, len(data)) + 1):
        head = data[: len(data) - cut]
        try:
            return head.decode(), data[len(data) - cut :]
        except UnicodeDecodeError:
            continue
    return data.decode("utf-8", "surrogateescape"), b""


async def _read_init(stream: trio.abc.Stream) -> tuple[Init, bytes]:
    """The init message and what follows it. Raises ValueError for anything malformed."""
    data = b""
    while len(data) < 2 or len(data) < 2 + int.from_bytes(data[:2], "little"):
        chunk = await stream.receive_some(4096)
        if not chunk or len(data) > MAX_INIT:
            raise ValueError("no init message")
        data += chunk
    size = int.from_bytes(data[:2], "little")
    value = json.loads(data[2 : 2 + size])
    if not isinstance(value, dict) or not isinstance(value.get("ID"), str) or not value["ID"]:
        raise ValueError("init message without an ID")
    command = value.get("Command") or ""
    container = Container.named(str(value.get("Container") or ""), str(value.get("ContainerUser") or ""))
    height, width = int(value.get("Height") or 0), int(value.get("Width") or 0)
    init = Init(value["ID"], height, width, str(command), container)
    return init, data[2 + size :]
