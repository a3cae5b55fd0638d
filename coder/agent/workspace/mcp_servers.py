"""MCP servers that a workspace's project configures in its `.mcp.json`: started on demand, kept while they answer.

Client side of the Model Context Protocol over a child's standard streams, as far as tools need it
(modelcontextprotocol.io, 2025-06-18). The server side is in `coder/cli/tasks/mcp_protocol.py`.
"""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import trio

from coder.agent.disk import on_disk
from coder.agent.platform import system
from coder.agent.state import AgentState
from coder.agent.workspace import environment
from coder.agent.workspace.children import end_group, kill_group
from coder.agent.workspace.files import read_regular, workdir
from coder.base.json_types import Json, JsonObject, as_list
from coder.base.log import get_logger
from coder.base.version import BUILD_VERSION

log = get_logger("agent.mcp")

FILE = ".mcp.json"
SEPARATOR = "__"
"""Separator between a server's name and its tool's name, in the name of a tool here."""
PROTOCOL = "2025-06-18"
START_TIMEOUT, CALL_TIMEOUT, READ_TIMEOUT = 30.0, 240.0, 10.0
MAX_SERVERS = 16
MAX_ANSWER = 4 << 20
MAX_FILE = 1 << 20
"""Limits (ours): seconds to start, for one call and to read the file; servers; bytes of an answer; bytes of the
file."""


class ToolServerError(Exception):
    """A server failed or sent an invalid answer; the text is for users."""


class ToolServerExitedError(ToolServerError):
    """The server has ended or must be restarted."""


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """Server entry of the file."""

    command: str
    args: tuple[str, ...]
    env: tuple[tuple[str, str], ...]


def read_specs_untrusted(text: bytes) -> dict[str, ServerSpec]:
    """Return the file's servers that can be started here (those with a command). Raises ToolServerError."""
    try:
        servers = json.loads(text)["mcpServers"]
        result = {
            str(name): ServerSpec(
                str(entry["command"]),
                tuple(str(word) for word in entry.get("args") or ()),
                tuple((str(key), str(value)) for key, value in (entry.get("env") or {}).items()),
            )
            for name, entry in servers.items()
            if entry.get("command")
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ToolServerError(f"{FILE} is not a valid server list") from error
    return dict(list(result.items())[:MAX_SERVERS])


@dataclass(slots=True)
class _Server:
    """Running MCP server."""

    spec: ServerSpec
    process: trio.Process
    call_lock: trio.Lock = field(default_factory=trio.Lock)
    buffer: bytearray = field(default_factory=bytearray)
    last_id: int = 0

    async def ask(self, method: str, params: Mapping[str, Json], seconds: float) -> JsonObject:
        """Send a request and return its answer within `seconds`, including the wait for other calls. Raises
        ToolServerError."""
        end = trio.current_time() + seconds
        try:
            with trio.fail_at(end):
                await self.call_lock.acquire()
        except trio.TooSlowError as error:  # it serves another caller, whose call a restart would lose
            raise ToolServerError(f"busy with other calls for {seconds:g} s") from error
        try:
            self.last_id += 1
            with trio.fail_at(end):
                await self._send({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": dict(params)})
                return await self._answer(self.last_id)
        except trio.TooSlowError as error:
            raise ToolServerExitedError(f"no answer to {method} within {seconds:g} s") from error
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise ToolServerExitedError("it has exited") from error
        finally:
            self.call_lock.release()

    async def notify(self, method: str) -> None:
        try:
            await self._send({"jsonrpc": "2.0", "method": method})
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise ToolServerExitedError("it has exited") from error

    async def _send(self, message: Mapping[str, Json]) -> None:
        assert self.process.stdin is not None  # noqa: S101 - requested
        await self.process.stdin.send_all(json.dumps(message).encode() + b"\n")

    async def _answer(self, ident: int) -> JsonObject:
        """Return the answer to request `ident`. Other messages meanwhile are ignored: logs, and the server's own
        requests with their own ids."""
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
            raise ToolServerError(str(error.get("message") if isinstance(error, dict) else "an invalid answer")[:1000])

    async def _line(self) -> bytes:
        assert self.process.stdout is not None  # noqa: S101 - requested
        while (end := self.buffer.find(b"\n")) < 0:
            if len(self.buffer) > MAX_ANSWER:
                raise ToolServerExitedError("its answer is too large")
            chunk = await self.process.stdout.receive_some()
            if not chunk:
                raise ToolServerExitedError("it has exited")
            self.buffer += chunk
        line = bytes(self.buffer[:end])
        del self.buffer[: end + 1]
        return line


class ToolServers:
    """MCP servers of one agent. They end with the agent, or at the first request after their entry was removed from the
    file."""

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._running: dict[str, _Server] = {}
        self._locks: defaultdict[str, trio.Lock] = defaultdict(trio.Lock)
        "Lock for each name: a slow start delays no other server."

    async def run(self) -> None:
        """Run until cancelled; then terminate every server."""
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                async with trio.open_nursery() as nursery:
                    for name in list(self._running):
                        nursery.start_soon(self._end, name)

    async def tools(self) -> list[JsonObject]:
        """Return every tool of every server that answers, in the file's order; the servers are asked concurrently.

        Raises ToolServerError when the file cannot be read.
        """
        specs = await self._specs()
        result: dict[str, list[JsonObject]] = {}

        async def list_one(name: str, spec: ServerSpec) -> None:
            try:
                answer = await self._ask(name, spec, "tools/list", {}, START_TIMEOUT)
            except ToolServerError as error:
                log.warn("listing an MCP server's tools failed", server=name, error=error)
                return
            tools = answer.get("tools")
            rows = tools if isinstance(tools, list) else []
            result[name] = [
                _row(name, tool) for tool in rows if isinstance(tool, dict) and _is_named(name, tool, specs)
            ]

        async with trio.open_nursery() as nursery:
            for name, spec in specs.items():
                nursery.start_soon(list_one, name, spec)
        return [row for name in specs for row in result.get(name, ())]

    async def call(self, tool: str, arguments: Mapping[str, Json]) -> JsonObject:
        """Call a tool; return `content` and `is_error`. Raises ToolServerError, KeyError for an unknown tool."""
        specs = await self._specs()
        server, name = _split(tool, specs)
        params: JsonObject = {"name": name, "arguments": dict(arguments)}
        answer = await self._ask(server, specs[server], "tools/call", params, CALL_TIMEOUT)
        parts = [part for part in as_list(answer.get("content")) if isinstance(part, dict)]
        return {"content": [_content(part) for part in parts], "is_error": answer.get("isError") is True}

    async def _specs(self) -> dict[str, ServerSpec]:
        """Read the file's servers; terminate servers that were removed from it. Raises ToolServerError."""
        specs = await self._read_specs()
        for name in [name for name, lock in self._locks.items() if name not in specs and not lock.locked()]:
            del self._locks[name]
        async with trio.open_nursery() as nursery:
            for name in self._running.keys() - specs.keys():
                nursery.start_soon(self._end, name)
        return specs

    async def _read_specs(self) -> dict[str, ServerSpec]:
        path = await workdir(self._state) / FILE
        try:
            with trio.fail_after(READ_TIMEOUT):
                text = await on_disk(read_regular, path, MAX_FILE)
        except trio.TooSlowError as error:
            raise ToolServerError(f"{path} was not read within {READ_TIMEOUT:g} s") from error
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ToolServerError(f"{path}: {error.strerror}") from error
        return read_specs_untrusted(text)

    async def _ask(
        self, name: str, spec: ServerSpec, method: str, params: Mapping[str, Json], seconds: float
    ) -> JsonObject:
        server = await self._started(name, spec)
        try:
            return await server.ask(method, params, seconds)
        except ToolServerExitedError:
            await self._end(name, server)
            raise

    async def _started(self, name: str, spec: ServerSpec) -> _Server:
        """Return the running server of that name; restart it when it has exited or its entry has changed."""
        async with self._locks[name]:
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
                    **system.START,
                )
            except OSError as error:
                raise ToolServerError(f"{spec.command} cannot be started: {error.strerror}") from error
            except ValueError as error:  # a zero byte in an argument
                raise ToolServerError(f"{spec.command!r} cannot be started: {error}") from error
            server = self._running[name] = _Server(spec, process)
            init_params: JsonObject = {"protocolVersion": PROTOCOL, "capabilities": {}}
            init_params["clientInfo"] = {"name": "coder-agent", "version": BUILD_VERSION}
            try:
                await server.ask("initialize", init_params, START_TIMEOUT)
                await server.notify("notifications/initialized")
            except BaseException:
                with trio.CancelScope(shield=True):
                    await self._end(name)
                raise
            return server

    async def _end(self, name: str, only: _Server | None = None) -> None:
        """Terminate a server; with `only`, unless another server has replaced that one meanwhile."""
        server = self._running.get(name)
        if server is None or (only is not None and server is not only):
            return
        del self._running[name]
        kill_group(server.process.pid, system.KILL)  # also children of an ended server
        await end_group(server.process)
        for pipe in (server.process.stdin, server.process.stdout):
            if pipe is not None:
                await trio.aclose_forcefully(pipe)


def _split(tool: str, servers: Collection[str]) -> tuple[str, str]:
    """Split a tool's full name into server and name; of server names with a common start, the longest wins.

    Raises KeyError for an unknown server.
    """
    server = max((name for name in servers if tool.startswith(name + SEPARATOR)), key=len, default=None)
    if server is None:
        raise KeyError(tool)
    return server, tool.removeprefix(server + SEPARATOR)


def _is_named(server: str, tool: Mapping[str, Json], servers: Collection[str]) -> bool:
    """Return whether the tool can be called: it has a name, and the full name does not denote another server's tool."""
    name = tool.get("name")
    if not isinstance(name, str) or not name:
        return False
    if _split(server + SEPARATOR + name, servers) == (server, name):
        return True
    log.warn("a tool is left out: its name denotes another server's tool", server=server, tool=name)
    return False


def _row(server: str, tool: Mapping[str, Json]) -> JsonObject:
    schema = tool.get("inputSchema")
    schema = schema if isinstance(schema, dict) else {}
    return {
        "server_name": server,
        "name": f"{server}{SEPARATOR}{tool['name']}",
        "description": str(tool.get("description") or ""),
        "schema": schema.get("properties") or {},
        "required": schema.get("required") or [],
    }


def _content(part: Mapping[str, Json]) -> JsonObject:
    result: JsonObject = {"type": str(part.get("type") or "text"), "text": str(part.get("text") or "")}
    if part.get("data"):
        result |= {"data": str(part["data"]), "media_type": str(part.get("mimeType") or "")}
    return result
