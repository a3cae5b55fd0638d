"""Settings of the agent role, from flags and environment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from coder.base.secret import Secret
from coder.net.policy import DialPolicy


@dataclass(frozen=True, slots=True)
class DevcontainerSettings:
    """How dev containers are looked after."""

    discover: bool = True
    "Show the projects of the workspace's folders that describe one."
    autostart: bool = False
    "Build those of them whose description asks for it."


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """Everything one agent process needs to know at its start."""

    policy: DialPolicy
    "How the deployment is reached; its token is the agent's."
    token: Secret
    "Empty as long as it has to be exchanged."
    log_dir: Path
    script_data_dir: Path
    executable: str
    listen_port: int = 0
    "UDP port of direct paths; 0 lets the system choose."
    ssh_max_timeout: timedelta = timedelta(hours=72)
    block_file_transfer: bool = False
    block_local_forwarding: bool = False
    "No `ssh -L`: connections from the client's machine into the workspace's network."
    block_reverse_forwarding: bool = False
    "No `ssh -R`."
    subsystems: tuple[str, ...] = ()
    exchange: Callable[[], Awaitable[Secret]] | None = None
    "Gets the token, before every dial: a build may give the machine another."
    log_file: Path | None = None
    "Where this agent's own log goes, if it is a file."
    debug_address: tuple[str, int] | None = None
    "Host and port of a listener for `/debug/*`."
    prometheus_address: tuple[str, int] | None = None
    "Host and port of a listener for `/metrics`."
    socket_path: Path | None = None
    "Of the socket for scripts; None makes one in a directory of its own."
    socket_enabled: bool = True
    self_upgrade: bool = False
    "Whether a newer server's program replaces ours."
    upgrade_keyring: Path | None = None
    "Whose signature such a program must have; None asks for none."
    devcontainers: DevcontainerSettings | None = None
    "None: containers beside the agent are nobody's business."
    state_dir: Path | None = None
    "Where the flight recorder is kept; None keeps it in memory."
