"""Terminals that outlive their connection (overlay port 2), for the web terminal.

Wire format (docs/protocol/agent-services.md#terminals): u16 little-endian length and a JSON init message from the
client, then JSON objects with data and size; raw terminal bytes back, the last 64 KiB first.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import trio

from coder.agent.network.terminal_replay import replay_of
from coder.agent.platform import system
from coder.agent.state import AgentState
from coder.agent.upgrade.handover import KeptTerminal
from coder.agent.workspace import environment
from coder.agent.workspace.children import Child, end_group, kill_group
from coder.agent.workspace.containers import Container
from coder.agent.workspace.files import workdir
from coder.base.json_types import Json, JsonObject
from coder.base.log import get_logger

log = get_logger("agent.pty")

REPLAY_SIZE = 64 << 10
IDLE_LIFETIME = 300.0
FIRST_ATTACH_TIMEOUT = 30.0
MAX_INIT = 64 << 10
HANGUP_TIMEOUT = 3.0
"Seconds for a program to exit after SIGHUP (ours)."
VIEWER_QUEUE = 256
"Chunks queued for one slow viewer; at the limit the viewer is disconnected, because the terminal must not wait for it."
_SPACE = re.compile(r"\s*+")


@dataclass(frozen=True, slots=True)
class Init:
    ident: str
    height: int
    width: int
    command: str
    container: Container | None = None


class PtyService:
    """All terminal sessions of this agent; `serve` handles one connection."""

    def __init__(self, state: AgentState, nursery: trio.Nursery) -> None:
        self._state, self._nursery = state, nursery
        self._sessions: dict[str, _Session] = {}

    def release(self) -> None:
        """Stop reading the terminals without ending their programs, for the next program of this process. Cancel the
        service afterwards."""
        for session in self._sessions.values():
            session.release()

    def count(self) -> int:
        """Return the number of terminals."""
        return len(self._sessions)

    def handover_state(self) -> list[KeptTerminal]:
        """Return the sessions that the next program continues with."""
        return [session.handover_state(ident) for ident, session in self._sessions.items() if session.is_released]

    def resume(self, kept: list[KeptTerminal]) -> None:
        """Continue the terminals of the previous program."""
        for state in kept:
            self._register(state.ident, _Session(Child(state.pid), state.master, state.replay))

    async def serve(self, stream: trio.abc.Stream) -> None:
        """Serve one connection to its end. Invalid input closes it silently."""
        async with stream:
            try:
                init, rest = await _read_init(stream)
            except (ValueError, TypeError, OverflowError, RecursionError, trio.BrokenResourceError):
                return
            folder = await workdir(self._state)  # before the session lookup: two viewers may connect concurrently
            session = self._sessions.get(init.ident)
            if session is None:
                try:
                    session = self._open(init, folder)
                except OSError as error:
                    await stream.send_all(f"coder agent: {error.strerror or error}\r\n".encode())
                    return
                except ValueError as error:  # a zero byte, which no argument can hold
                    await stream.send_all(f"coder agent: {error}\r\n".encode())
                    return
            else:
                session.resize(init.height, init.width)  # the newest viewer's window size applies, as in the recordings
            ident = self._state.open_session("reconnecting_pty")
            self._state.counters.count("agent_reconnecting_pty_connections_total")
            code = 1
            try:
                await session.attach(stream, rest)
                code = 0
            except* (trio.BrokenResourceError, trio.ClosedResourceError):
                pass  # the viewer disconnected; the session stays
            finally:
                self._state.close_session(ident, "reconnecting_pty", code)

    def _open(self, init: Init, folder: Path) -> _Session:
        env = environment.command_environment(self._state) | {"TERM": "xterm-256color"}
        if (
            not any("utf" in env.get(name, "").lower() for name in ("LC_ALL", "LC_CTYPE", "LANG"))
            and "LC_ALL" not in env
        ):
            env["LC_CTYPE"] = "C.UTF-8"
        if init.container is None:
            argv = environment.command_line(self._state.identity, init.command)
        else:
            passed = [*environment.container_variables(self._state), "TERM"]
            argv = init.container.command_line(init.command, env, tty=True, passed=passed)
        process, master, _ = system.spawn_terminal(argv, env, folder, height=init.height or 80, width=init.width or 80)
        session = _Session(Child(process.pid), master)
        # unused from here on: the child is reaped here, and Popen's finalizer would reap it, too
        process.returncode = 0
        self._register(init.ident, session)
        return session

    def _register(self, ident: str, session: _Session) -> None:
        self._sessions[ident] = session
        self._nursery.start_soon(self._run, ident, session)

    async def _run(self, ident: str, session: _Session) -> None:
        try:
            await session.run()
        finally:
            if not session.is_released:
                self._sessions.pop(ident, None)


class _Session:
    """Terminal with its replay buffer and viewers."""

    def __init__(self, child: Child, master: int, replay: bytes = b"") -> None:
        self._child, self._master = child, master
        self._replay = deque([replay] if replay else [])
        self._replay_size = len(replay)
        self._viewers: set[trio.MemorySendChannel[bytes]] = set()
        self._typing = trio.Lock()
        "Serializes input: one viewer at a time waits for a program that does not read, the next one's input follows."
        self._attached = trio.Event()
        self._life = IDLE_LIFETIME if replay else FIRST_ATTACH_TIMEOUT
        self._over = self.is_released = False

    async def run(self) -> None:
        """Read the terminal until its program ends or it had no viewer for too long."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._expire, nursery.cancel_scope)
                await self._read()
                nursery.cancel_scope.cancel()
        finally:
            self._over = True
            for viewer in list(self._viewers):
                viewer.close()
            if not self.is_released:
                kill_group(self._child.pid, system.HANGUP)
                trio.lowlevel.notify_closing(self._master)
                system.close_terminal(self._master)
                with trio.CancelScope(shield=True):
                    await self._reap()

    def release(self) -> None:
        """Leave the terminal's further output to the next program. A session that is ending still ends."""
        self.is_released = not self._over

    def handover_state(self, ident: str) -> KeptTerminal:
        return KeptTerminal(ident, self._child.pid, self._master, replay_of(b"".join(self._replay), REPLAY_SIZE))

    async def _reap(self) -> None:
        with trio.move_on_after(HANGUP_TIMEOUT) as scope:
            await self._child.wait()
        if scope.cancelled_caught:
            await end_group(self._child)

    async def _read(self) -> None:
        while not self.is_released:
            try:
                data = system.read_terminal(self._master, 65536)
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
            # A program that writes without a pause would fill the queues of viewers that never get their turn.
            await trio.lowlevel.checkpoint()

    def _remember(self, data: bytes) -> None:
        self._replay.append(data)
        self._replay_size += len(data)
        while self._replay_size - len(self._replay[0]) > REPLAY_SIZE:  # more is kept than sent, if anything is dropped
            self._replay_size -= len(self._replay.popleft())

    async def _expire(self, scope: trio.CancelScope) -> None:
        while True:
            if self._viewers:
                await trio.sleep(IDLE_LIFETIME / 2)
                self._life = IDLE_LIFETIME
                continue
            self._attached = trio.Event()
            with trio.move_on_after(self._life):
                await self._attached.wait()
                self._life = IDLE_LIFETIME
                continue
            scope.cancel()
            return

    async def attach(self, stream: trio.abc.Stream, rest: bytes) -> None:
        """Copy both ways until the viewer disconnects or the program ends."""
        send, receive = trio.open_memory_channel[bytes](VIEWER_QUEUE)
        replay = replay_of(b"".join(self._replay), REPLAY_SIZE)
        self._viewers.add(send)
        self._attached.set()
        try:
            if replay:
                await stream.send_all(replay)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._from_viewer, stream, rest, nursery.cancel_scope)
                async for data in receive:
                    await stream.send_all(data + _queued(receive))
                nursery.cancel_scope.cancel()
        finally:
            self._viewers.discard(send)

    async def _from_viewer(self, stream: trio.abc.Stream, rest: bytes, scope: trio.CancelScope) -> None:
        buffer = rest.decode("utf-8", "surrogateescape")
        decoder = json.JSONDecoder()
        pending = b""
        while True:
            try:
                messages, buffer = _split_messages(decoder, buffer)
            except (
                RecursionError,
                ValueError,
            ):  # nested levels or digits by the thousand: not a terminal client either
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
                scope.cancel()  # a megabyte without a complete object is not a terminal client
                return

    def resize(self, height: Json, width: Json) -> None:
        """Set the program's window size to the viewer's; out-of-range sizes are ignored."""
        if self._over or not isinstance(height, int) or not isinstance(width, int):
            return
        if 0 < height < 1 << 16 and 0 < width < 1 << 16:
            system.resize_terminal(self._master, height, width)

    async def _on_message(self, message: JsonObject) -> None:
        self.resize(message.get("height"), message.get("width"))
        text = message.get("data") or ""
        data = _input_bytes(text) if isinstance(text, str) else b""
        async with self._typing:
            while data and not self._over:
                try:
                    data = data[system.write_terminal(self._master, data) :]
                except BlockingIOError:
                    await trio.lowlevel.wait_writable(self._master)
                except (OSError, trio.ClosedResourceError):
                    return


def _queued(receive: trio.MemoryReceiveChannel[bytes]) -> bytes:
    """Return all that waits: sent one by one, many small chunks would look like a slow viewer."""
    chunks = []
    with contextlib.suppress(trio.WouldBlock, trio.EndOfChannel):
        while True:
            chunks.append(receive.receive_nowait())
    return b"".join(chunks)


def _input_bytes(text: str) -> bytes:
    """Return the viewer's input as bytes. Bytes that were not UTF-8 are restored; half a surrogate pair becomes U+FFFD,
    as in Go."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def _split_messages(decoder: json.JSONDecoder, buffer: str) -> tuple[list[JsonObject], str]:
    """Return the complete JSON objects at the front of `buffer`, and the rest. Raises RecursionError, ValueError."""
    objects: list[JsonObject] = []
    at = 0  # the text is cut once: it may be thirty thousand objects of two letters
    while (start := _skip_space(buffer, at)) < len(buffer):
        try:
            value, at = decoder.raw_decode(buffer, start)
        except json.JSONDecodeError:
            break
        if isinstance(value, dict):
            objects.append(value)
    return objects, buffer[at:].lstrip()


def _skip_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


def _decode_partial(data: bytes) -> tuple[str, bytes]:
    """Return UTF-8 text and the bytes of a character cut off at the end."""
    for cut in range(min(3, len(data)) + 1):
        head = data[: len(data) - cut]
        try:
            return head.decode(), data[len(data) - cut :]
        except UnicodeDecodeError:
            continue
    return data.decode("utf-8", "surrogateescape"), b""


async def _read_init(stream: trio.abc.Stream) -> tuple[Init, bytes]:
    """Read the init message; return it and the bytes after it. Raises ValueError for anything malformed."""
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
    container = Container.from_request(str(value.get("Container") or ""), str(value.get("ContainerUser") or ""))
    height, width = int(value.get("Height") or 0), int(value.get("Width") or 0)
    init = Init(value["ID"], height, width, str(command), container)
    return init, data[2 + size :]
