"""State that the agent's services share: the manifest, the user the agent runs as, open sessions.

Plain data and counters; no I/O. Services read it, the main loop writes the manifest.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import trio

from coder.agent.activity import Activity
from coder.agent.counters import AgentCounters
from coder.agent.shared_poll import SharedPoll
from coder.base.json_types import Json, JsonObject
from coder.rpc.proto import agent_pb2

if TYPE_CHECKING:
    from coder.mesh.description import NodeStatus


@dataclass(frozen=True, slots=True)
class Identity:
    """Operating-system user the agent runs as."""

    name: str
    home: Path
    shell: str


@dataclass(frozen=True, slots=True)
class ConnectionEvent:
    """Begin or end of a session, for the connection log."""

    id: bytes
    connect: bool
    kind: str
    "Application: ssh, vscode, jetbrains or reconnecting_pty."
    ip: str = ""
    status_code: int = 0
    reason: str = ""


class RemoteProcess(Protocol):
    """Command that was started through the API."""

    id: str
    exited: float | None
    ended: trio.Event

    def output_json(self) -> JsonObject: ...

    def send(self, signal_name: str) -> None: ...


class ProcessTable(Protocol):
    """Table that starts such commands and keeps them (`coder/agent/workspace/processes.py`)."""

    async def start(self, command: str, workdir: str, env: Mapping[str, str], *, background: bool) -> RemoteProcess: ...

    def get(self, ident: str) -> RemoteProcess | None: ...

    def rows(self) -> list[JsonObject]: ...


class ToolTable(Protocol):
    """MCP servers of the workspace's project (`coder/agent/workspace/mcp_servers.py`)."""

    async def tools(self) -> list[JsonObject]: ...

    async def call(self, tool: str, arguments: Mapping[str, Json]) -> JsonObject: ...


class DevcontainerBusyError(Exception):
    """The dev container is being built or removed; the text is its status."""


class ContainerRefusedError(Exception):
    """The engine or the server cannot do what is needed; the text is a sentence for the user."""


class ContainerTable(Protocol):
    """Containers on the agent's machine (`coder/agent/devcontainers/table.py`)."""

    watchers: int

    async def fresh_listing(self) -> JsonObject: ...

    def cached_listing(self) -> JsonObject: ...

    def next_change(self) -> trio.Event: ...

    def watched(self) -> AbstractContextManager[None]: ...

    def recreate(self, ident: uuid.UUID) -> bool: ...

    async def delete(self, ident: uuid.UUID) -> bool: ...


class Upgrades(Protocol):
    """Watch for newer programs of the server (`coder/agent/upgrade/upgrader.py`)."""

    def describe(self) -> JsonObject: ...

    def request(self) -> None: ...


@dataclass(slots=True)
class AgentState:
    """State shared by all services of one agent process."""

    identity: Identity
    token: str
    url: str
    executable: str
    "Path of the running program, for git's helpers."
    manifest: agent_pb2.Manifest | None = None
    directory: Path | None = None
    "Expanded directory of the manifest; None before the first manifest."
    script_bin: Path | None = None
    "Directory of programs that scripts install; None when it is not safe to use."
    program_folder: Path | None = None
    "Directory that has this program under the name `coder`."
    socket_path: Path | None = None
    "Path of the socket that scripts connect to."
    banners: list[agent_pb2.BannerConfig] = field(default_factory=list)
    sessions: Counter[str] = field(default_factory=Counter)
    "Number of open sessions by application name."
    counters: AgentCounters = field(default_factory=AgentCounters)
    report: Callable[[ConnectionEvent], None] = lambda _event: None
    block_file_transfer: bool = False
    block_local_forwarding: bool = False
    block_reverse_forwarding: bool = False
    log_file: Path | None = None
    "File of the agent's own log; None for standard error."
    overlay: Callable[[], NodeStatus | None] = lambda: None
    "Function that returns the state of the network; None before the first manifest."
    processes: ProcessTable | None = None
    "Commands started through the API; None before and after the agent's life."
    tool_servers: ToolTable | None = None
    "MCP servers; None before and after the agent's life."
    containers: ContainerTable | None = None
    "Containers; None where container management is disabled."
    upgrades: Upgrades | None = None
    "Upgrades; None before the first manifest and where the agent does not upgrade itself."
    activity: Activity = field(default_factory=Activity)
    "Activity that an upgrade waits for."
    repositories: SharedPoll[object] = field(default_factory=SharedPoll)
    "Shared poll of the workspace's git status (`coder/agent/workspace/git_changes.py`)."
    debug_ports: frozenset[int] = frozenset()
    "Ports of the agent's own listeners, never listed as the workspace's."

    def open_session(self, kind: str, ip: str = "") -> bytes:
        """Count and report a new session. Returns its id for `close_session`."""
        self.sessions[kind] += 1
        ident = uuid.uuid4().bytes
        self.report(ConnectionEvent(ident, True, kind, ip))
        return ident

    def close_session(self, ident: bytes, kind: str, status: int = 0, reason: str = "") -> None:
        self.sessions[kind] -= 1
        self.report(ConnectionEvent(ident, False, kind, "", status, reason))

    def workdirs(self) -> list[Path]:
        """Return the folders where commands may start, in order of preference: `workspace/files.py` selects the first
        that exists."""
        return [folder for folder in (self.directory, self.identity.home) if folder is not None]
