"""The tool servers a workspace's project names in its `.mcp.json`: started when somebody asks, kept while they answer.

The Model Context Protocol's client side over a child's standard streams, as far as tools need it
(modelcontextprotocol.io, 2025-06-18). Its server side is `coder/cli/tasks/mcp_protocol.py`.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import trio

from coder.agent.disk import on_disk
from coder.agent.state import AgentState
from coder.agent.workspace import environment
from coder.agent.workspace.children import end_group, kill_group
from coder.agent.workspace.files import read_regular, workdir
from coder.base.log import get_logger
from coder.base.version import BUILD_VERSION

log = get_logger("agent.mcp")

FILE = ".mcp.json"
SEPARATOR = "__"
"""Between a server's name and its tool's, in the name of a tool here."""
PROTOCOL = "2025-06-18"
START_TIME, CALL_TIME, READ_TIME = 30.0, 240.0, 10.0
MAX_SERVERS = 16
MAX_ANSWER = 4 << 20
MAX_FILE = 1 << 20
"""Ours: seconds to start, for one call and to read the file, servers, bytes of an answer, bytes of the file."""


class ToolServerError(Exception):
    """A server that cannot be asked, or an answer that is none; its text is for a person."""


class ToolServerGoneError(ToolServerError):
    """It is of no use any more."""


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """One entry of the file."""

    command: str
    args: tuple[str, ...]
    env: tuple[tuple[str, str], ...]


def read_specs_untrusted(text: bytes) -> dict[str, ServerSpec]:
    """The servers of a file that can be started here (those with a command). Raises ToolServerError."""
    try:
        servers = json.loads(text)["mcpServers"]
        found = {
            str(name): ServerSpec(
                str(one["command"]),
                tuple(str(word) for word in one.get("args") or ()),
                tuple((str(key), str(value)) for key, value in (one.get("env") or {}).items()),
            )
            for name, one in servers.items()
            if one.get("command")
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ToolServerError(f"{FILE} is not what it should be") from error
    return dict(list(found.items())[:MAX_SERVERS])


@dataclass(slots=True)
class _Server:
    """One that runs."""

    spec: ServerSpec
    process: trio.Process
    asking: trio.Lock = field(default_factory=trio.Lock)
    buffer: bytearray = field(default_factory=bytearray)
    last: int = 0

    async def ask(self, method: str, params: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """One request and its answer within `seconds`, the wait for others' calls included. Raises ToolServerError."""
        end = trio.current_time() + seconds
        try:
            with trio.fail_at(end):
                await self.asking.acquire()
        except trio.TooSlowError as error:  # it works for somebody else, who would lose it if it were ended
            raise ToolServerError(f"busy with other calls for {seconds:g} s") from error
        try:
            self.last += 1
            with trio.fail_at(end):
                await self._send({"jsonrpc": "2.0", "id": self.last, "method": method, "params": dict(params)})
                return await self._answer(self.last)
        except trio.TooSlowError as error:
            raise ToolServerGoneError(f"no answer to {method} within {seconds:g} s") from error
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise ToolServerGoneError("it has ended") from error
        finally:
            self.asking.release()

    async def notify(self, method: str) -> None:
        try:
            await self._send({"jsonrpc": "2.0", "method": method})
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise ToolServerGoneError("it has ended") from error

    async def _send(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None  # noqa: S101 - asked for
        await self.process.stdin.send_all(json.dumps(message).encode() + b"\n")

    async def _answer(self, ident: int) -> dict[str, Any]:
        """What else it says meanwhile is left alone: logs, and questions of its own, which it numbers as it likes."""
        while True:
            try:
                message = json.loads(await self._line())
            except (ValueError, RecursionError):
                continue
            if not isinstance(message, dict) or "method" in message or message.get("id") != ident:
                continue
            if isinstance(message.get("result"), dict):
                return dict(message["result"])
            error = message.get("error")
            raise ToolServerError(str(error.get("message") if isinstance(error, dict) else "an odd answer")[:1000])

    async def _line(self) -> bytes:
        assert self.process.stdout is not None  # noqa: S101 - asked for
        while (end := self.buffer.find(b"\n")) < 0:
            if len(self.buffer) > MAX_ANSWER:
                raise ToolServerGoneError("its answer is too large")
            chunk = await self.process.stdout.receive_some()
            if not chunk:
                raise ToolServerGoneError("it has ended")
            self.buffer += chunk
        line = bytes(self.buffer[:end])
        del self.buffer[: end + 1]
        return line


class ToolServers:
    """All of one agent; they end with it, or at the first request after the file has lost their entry."""

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._running: dict[str, _Server] = {}
        self._changing: defaultdict[str, trio.Lock] = defaultdict(trio.Lock)
        "By name: a slow start holds up nobody else's."

    async def run(self) -> None:
        """Until cancelled; then every server is ended."""
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                async with trio.open_nursery() as nursery:
                    for name in list(self._running):
                        nursery.start_soon(self._end, name)

    async def tools(self) -> list[dict[str, Any]]:
        """Every tool of every server that answers, in the file's order; the servers are asked all at once.

        Raises ToolServerError when the file cannot be read.
        """
        specs = await self._specs()
        found: dict[str, list[dict[str, Any]]] = {}

        async def list_one(name: str, spec: ServerSpec) -> None:
            try:
                answer = await self._ask(name, spec, "tools/list", {}, START_TIME)
            except ToolServerError as error:
                log.warn("a tool server gives no tools", server=name, error=error)
                return
            tools = answer.get("tools")
            rows = tools if isinstance(tools, list) else []
            found[name] = [_row(name, tool) for tool in rows if isinstance(tool, dict) and _is_named(name, tool, specs)]

        async with trio.open_nursery() as nursery:
            for name, spec in specs.items():
                nursery.start_soon(list_one, name, spec)
        return [row for name in specs for row in found.get(name, ())]

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """`content` and `is_error`. Raises ToolServerError, KeyError for a tool of no server."""
        specs = await self._specs()
        server, name = _split(tool, specs)
        params = {"name": name, "arguments": dict(arguments)}
        answer = await self._ask(server, specs[server], "tools/call", params, CALL_TIME)
        parts = [part for part in answer.get("content") or () if isinstance(part, dict)]
        return {"content": [_content(part) for part in parts], "is_error": answer.get("isError") is True}

    async def _specs(self) -> dict[str, ServerSpec]:
        """What the file names now; servers it does not name any more are ended. Raises ToolServerError."""
        specs = await self._read_specs()
        for name in [name for name, lock in self._changing.items() if name not in specs and not lock.locked()]:
            del self._changing[name]
        async with trio.open_nursery() as nursery:
            for name in self._running.keys() - specs.keys():
                nursery.start_soon(self._end, name)
        return specs

    async def _read_specs(self) -> dict[str, ServerSpec]:
        path = await workdir(self._state) / FILE
        try:
            with trio.fail_after(READ_TIME):
                text = await on_disk(read_regular, path, MAX_FILE)
        except trio.TooSlowError as error:
            raise ToolServerError(f"{path} was not read within {READ_TIME:g} s") from error
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ToolServerError(f"{path}: {error.strerror}") from error
        return read_specs_untrusted(text)

    async def _ask(
        self, name: str, spec: ServerSpec, method: str, params: Mapping[str, Any], seconds: float
    ) -> dict[str, Any]:
        server = await self._started(name, spec)
        try:
            return await server.ask(method, params, seconds)
        except ToolServerGoneError:
            await self._end(name, server)
            raise

    async def _started(self, name: str, spec: ServerSpec) -> _Server:
        """The running server of that name, anew when it has ended or its entry was another."""
        async with self._changing[name]:
            server = self._running.get(name)
            if server is not None and server.spec == spec and server.process.poll() is None:
                return server
            await self._end(name)
            env = {**environment.command_environment(self._state), **dict(spec.env)}
            try:
                process = await trio.lowlevel.open_process(
                    [spec.command, *spec.args],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env=env,
                    cwd=await workdir(self._state),
                    start_new_session=True,
                )
            except OSError as error:
                raise ToolServerError(f"{spec.command} cannot be started: {error.strerror}") from error
            except ValueError as error:  # a zero byte in a word
                raise ToolServerError(f"{spec.command!r} cannot be started: {error}") from error
            server = self._running[name] = _Server(spec, process)
            hello = {"protocolVersion": PROTOCOL, "capabilities": {}}
            hello["clientInfo"] = {"name": "coder-agent", "version": BUILD_VERSION}
            try:
                await server.ask("initialize", hello, START_TIME)
                await server.notify("notifications/initialized")
            except BaseException:
                with trio.CancelScope(shield=True):
                    await self._end(name)
                raise
            return server

    async def _end(self, name: str, only: _Server | None = None) -> None:
        """`only`: unless another has taken its place meanwhile."""
        server = self._running.get(name)
        if server is None or (only is not None and server is not only):
            return
        del self._running[name]
        kill_group(server.process.pid, signal.SIGKILL)  # also what an ended one has left
        await end_group(server.process)
        for pipe in (server.process.stdin, server.process.stdout):
            if pipe is not None:
                await trio.aclose_forcefully(pipe)


def _split(tool: str, servers: Collection[str]) -> tuple[str, str]:
    """Server and name of a tool as it is called here: of servers whose names begin alike, the longest's.

    Raises KeyError for a tool of none.
    """
    server = max((name for name in servers if tool.startswith(name + SEPARATOR)), key=len, default=None)
    if server is None:
        raise KeyError(tool)
    return server, tool.removeprefix(server + SEPARATOR)


def _is_named(server: str, tool: Mapping[str, Any], servers: Collection[str]) -> bool:
    """Whether it can be called: it has a name, and one that does not mean another server's tool."""
    name = tool.get("name")
    if not isinstance(name, str) or not name:
        return False
    if _split(server + SEPARATOR + name, servers) == (server, name):
        return True
    log.warn("a tool is left out: its name means another server's", server=server, tool=name)
    return False


def _row(server: str, tool: Mapping[str, Any]) -> dict[str, Any]:
    schema = tool.get("inputSchema")
    schema = schema if isinstance(schema, dict) else {}
    return {
        "server_name": server,
        "name": f"{server}{SEPARATOR}{tool['name']}",
        "description": str(tool.get("description") or ""),
        "schema": schema.get("properties") or {},
        "required": schema.get("required") or [],
    }


def _content(part: Mapping[str, Any]) -> dict[str, Any]:
    found = {"type": str(part.get("type") or "text"), "text": str(part.get("text") or "")}
    if part.get("data"):
        found |= {"data": str(part["data"]), "media_type": str(part.get("mimeType") or "")}
    return found
