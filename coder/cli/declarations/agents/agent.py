"""Declaration of `coder agent`."""

from __future__ import annotations

from datetime import timedelta

from coder.cli.core.command import Command
from coder.cli.core.options import option
from coder.cli.declarations.agents.credentials import AgentNameOption, AgentSessionOptions


class AgentOptions(AgentSessionOptions, AgentNameOption, bases_first=True):
    """Options of `coder agent`."""

    agent_header: tuple[str, ...] = option(
        (),
        "Send this header, name=value, with every request; may be repeated.",
        env="CODER_AGENT_HEADER",
    )
    agent_header_command: str = option(
        "",
        "Command that prints additional HTTP headers, one key=value a line.",
        env="CODER_AGENT_HEADER_COMMAND",
    )
    log_dir: str = option(
        "",
        "Directory for the logs of start and stop scripts; defaults to the temporary directory.",
        env="CODER_AGENT_LOG_DIR",
    )
    script_data_dir: str = option(
        "",
        "Directory for programs and data of scripts; defaults to the temporary directory.",
        env="CODER_AGENT_SCRIPT_DATA_DIR",
    )
    state_dir: str = option(
        "",
        "Path of the flight recorder, which explains disconnects; defaults to the user's state directory.",
        env="CODER_AGENT_STATE_DIR",
    )
    tailnet_listen_port: int = option(
        0,
        "UDP port for direct connections; 0 lets the system choose.",
        env="CODER_AGENT_TAILNET_LISTEN_PORT",
    )
    ssh_max_timeout: timedelta = option(
        timedelta(hours=72),
        "Close SSH connections that are idle for this long, like 72h.",
        env="CODER_AGENT_SSH_MAX_TIMEOUT",
    )
    block_file_transfer: bool = option(
        False,
        "Block nc, rsync, scp and sftp, so that SSH transfers no files.",
        env="CODER_AGENT_BLOCK_FILE_TRANSFER",
    )
    block_local_forwarding: bool = option(
        False,
        "Block ssh -L: users cannot reach ports of the workspace through SSH.",
        flag="block-local-port-forwarding",
        env="CODER_AGENT_BLOCK_LOCAL_PORT_FORWARDING",
    )
    block_reverse_forwarding: bool = option(
        False,
        "Block ssh -R: the workspace cannot reach ports of users' machines.",
        flag="block-reverse-port-forwarding",
        env="CODER_AGENT_BLOCK_REVERSE_PORT_FORWARDING",
    )
    pprof_address: str = option(
        "",
        env="CODER_AGENT_PPROF_ADDRESS",
        hidden=True,
    )
    firewall_log_socket: str = option(
        "",
        flag="agent-firewall-log-proxy-socket-path",
        env="CODER_AGENT_FIREWALL_LOG_PROXY_SOCKET_PATH",
        hidden=True,
    )
    prometheus_address: str = option(
        "",
        env="CODER_AGENT_PROMETHEUS_ADDRESS",
        hidden=True,
    )
    debug_address: str = option(
        "",
        env="CODER_AGENT_DEBUG_ADDRESS",
        hidden=True,
    )
    devcontainers: bool = option(
        True,
        "List the containers of the workspace, build its dev containers and start an agent in each.",
        flag="devcontainers-enable",
        env="CODER_AGENT_DEVCONTAINERS_ENABLE",
    )
    discovery: bool = option(
        True,
        "Discover repositories with a dev container below the workspace's directory.",
        flag="devcontainers-project-discovery-enable",
        env="CODER_AGENT_DEVCONTAINERS_PROJECT_DISCOVERY_ENABLE",
    )
    discovery_autostart: bool = option(
        False,
        "Build discovered dev containers whose customizations.coder.autoStart is true.",
        flag="devcontainers-discovery-autostart-enable",
        env="CODER_AGENT_DEVCONTAINERS_DISCOVERY_AUTOSTART_ENABLE",
    )
    socket_path: str = option(
        "",
        "Path of the socket that scripts connect to; defaults to a path in a private directory.",
        env="CODER_AGENT_SOCKET_PATH",
    )
    socket_enabled: bool = option(
        True,
        "Serve the socket that workspace scripts use to coordinate their start order.",
        flag="socket-server-enabled",
        env="CODER_AGENT_SOCKET_SERVER_ENABLED",
    )
    self_upgrade: bool = option(
        False,
        "Upgrade to the server's version when it is newer; terminals and commands keep running.",
        env="CODER_AGENT_SELF_UPGRADE",
    )
    self_upgrade_keyring: str = option(
        "",
        "Keyring of the OpenPGP keys that may sign upgrades (requires gpgv).",
        env="CODER_AGENT_SELF_UPGRADE_KEYRING",
    )
    can_take_over: int = option(
        0,
        hidden=True,
    )
    no_reap: bool = option(
        False,
        hidden=True,
    )
    log_human: str = option(
        "/dev/stderr",
        "File to append log lines to as text; empty disables it.",
        env="CODER_AGENT_LOGGING_HUMAN",
    )
    log_json: str = option(
        "",
        "File to append log lines to as JSON, one object a line.",
        env="CODER_AGENT_LOGGING_JSON",
    )
    log_stackdriver: str = option(
        "",
        env="CODER_AGENT_LOGGING_STACKDRIVER",
        hidden=True,
    )


AGENT = Command(
    words="agent",
    summary="Run the workspace agent",
    options=AgentOptions,
    max_args=0,
    examples=(
        (
            "Run the agent of an external machine with its token in a file",
            "coder agent --agent-url https://coder.example.com --agent-token-file ~/.coder-token",
        ),
    ),
)
