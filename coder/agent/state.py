"""What the running agent knows and shares between its services: the manifest, who it runs as, what is open.

Plain data and counters; no I/O. Services read it, the main loop writes the manifest.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import trio

from coder.agent.activity import Activity
from coder.agent.counters import AgentCounters
from coder.agent.shared_look import SharedLook
from coder.rpc.proto import agent_pb2

if TYPE_CHECKING:
    from coder.mesh.description import NodeStatus


@dataclass(frozen=True, slots=True)
class Identity:
    """The operating-system user the agent runs as."""

    name: str
    home: Path
    shell: str


@dataclass(frozen=True, slots=True)
class ConnectionEvent:
    """The begin or end of a session, for the connection log."""

    id: bytes
    connect: bool
    kind: str
    "ssh, vscode, jetbrains, reconnecting_pty."
    ip: str = ""
    status_code: int = 0
    reason: str = ""


class FollowedProcess(Protocol):
    """A command that was started from afar."""

    id: str
    exited: float | None
    ended: trio.Event

    def shown_output(self) -> dict[str, Any]: ...

    def send(self, signal_name: str) -> None: ...


class ProcessTable(Protocol):
    """What starts such commands and remembers them (`coder/agent/workspace/processes.py`)."""

    async def start(
        self, command: str, workdir: str, env: Mapping[str, str], *, background: bool
    ) -> FollowedProcess: ...

    def get(self, ident: str) -> FollowedProcess | None: ...

    def rows(self) -> list[dict[str, Any]]: ...


class ToolTable(Protocol):
    """The tool servers of the workspace's project (`coder/agent/workspace/mcp_servers.py`)."""

    async def tools(self) -> list[dict[str, Any]]: ...

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]: ...


class DevcontainerBusyError(Exception):
    """It is being built or removed; the text is its status."""


class ContainerRefusedError(Exception):
    """The engine, or the server, does not do what is needed; the text is a sentence for a person."""


class ContainerTable(Protocol):
    """Containers beside the agent (`coder/agent/devcontainers/table.py`)."""

    watchers: int

    async def shown(self) -> dict[str, Any]: ...

    def as_known(self) -> dict[str, Any]: ...

    def next_change(self) -> trio.Event: ...

    def watched(self) -> AbstractContextManager[None]: ...

    def recreate(self, ident: uuid.UUID) -> bool: ...

    async def delete(self, ident: uuid.UUID) -> bool: ...


@dataclass(slots=True)
class AgentState:
    """Shared by all services of one agent process."""

    identity: Identity
    token: str
    url: str
    executable: str
    "Our own program, for git's helpers."
    manifest: agent_pb2.Manifest | None = None
    directory: Path | None = None
    "The manifest's directory, expanded; None before the first manifest."
    script_bin: Path | None = None
    socket_path: Path | None = None
    "Of the socket that scripts ask."
    banners: list[agent_pb2.BannerConfig] = field(default_factory=list)
    sessions: Counter[str] = field(default_factory=Counter)
    "Open sessions by application name."
    counters: AgentCounters = field(default_factory=AgentCounters)
    report: Callable[[ConnectionEvent], None] = lambda _event: None
    block_file_transfer: bool = False
    block_local_forwarding: bool = False
    block_reverse_forwarding: bool = False
    log_file: Path | None = None
    "Where the agent's own log goes; None for standard error."
    overlay: Callable[[], NodeStatus | None] = lambda: None
    "How the network stands; None before the first manifest."
    processes: ProcessTable | None = None
    "Commands started from afar; None before and after the agent's life."
    tool_servers: ToolTable | None = None
    "None before and after the agent's life."
    containers: ContainerTable | None = None
    "None where nobody wants containers to be looked after."
    activity: Activity = field(default_factory=Activity)
    "What an upgrade waits for."
    repositories: SharedLook[Any] = field(default_factory=SharedLook)
    "What git says of the workspace (`coder/agent/workspace/git_changes.py`), for all who watch."
    debug_ports: frozenset[int] = frozenset()
    "The agent's own listeners, never shown as the workspace's."

    def open_session(self, kind: str, ip: str = "") -> bytes:
        """Counts and reports a session. Returns its id for `close_session`."""
        self.sessions[kind] += 1
        ident = uuid.uuid4().bytes
        self.report(ConnectionEvent(ident, True, kind, ip))
        return ident

    def close_session(self, ident: bytes, kind: str, status: int = 0, reason: str = "") -> None:
        self.sessions[kind] -= 1
        self.report(ConnectionEvent(ident, False, kind, "", status, reason))

    def workdirs(self) -> list[Path]:
        """Where commands may start, the best first: `workspace/files.py` asks which of them is there."""
        return [folder for folder in (self.directory, self.identity.home) if folder is not None]
