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
    """Settings of dev containers."""

    discover: bool = True
    "Whether to list the projects of the workspace's folders that contain a description."
    autostart: bool = False
    "Whether to build discovered projects whose description requests it."


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """Settings one agent process needs at its start."""

    policy: DialPolicy
    "Dial settings of the deployment; their token is the agent's."
    token: Secret
    "Token of the agent; empty until it is exchanged."
    log_dir: Path
    script_data_dir: Path
    executable: str
    listen_port: int = 0
    "UDP port of direct paths; 0 lets the system choose."
    ssh_max_timeout: timedelta = timedelta(hours=72)
    block_file_transfer: bool = False
    block_local_forwarding: bool = False
    "Whether to reject `ssh -L`: connections from the client's machine into the workspace's network."
    block_reverse_forwarding: bool = False
    "Whether to reject `ssh -R`."
    subsystems: tuple[str, ...] = ()
    exchange: Callable[[], Awaitable[Secret]] | None = None
    "Function that returns the token. Called before every dial, because a build may give the machine another token."
    log_file: Path | None = None
    "File of this agent's own log, if it is a file."
    debug_address: tuple[str, int] | None = None
    "Host and port of a listener for `/debug/*`."
    prometheus_address: tuple[str, int] | None = None
    "Host and port of a listener for `/metrics`."
    socket_path: Path | None = None
    "Path of the socket for scripts; None creates one in a new directory."
    socket_enabled: bool = True
    self_upgrade: bool = False
    "Whether a newer server's program replaces the running one."
    upgrade_keyring: Path | None = None
    "Keyring whose signature such a program must have; None requires no signature."
    devcontainers: DevcontainerSettings | None = None
    "Settings of dev containers; None disables container management."
    state_dir: Path | None = None
    "Directory of the flight recorder; None keeps it in memory."
