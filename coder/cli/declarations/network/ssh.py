"""Declaration of `coder ssh`."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from coder.cli.core.command import Command
from coder.cli.core.options import option
from coder.cli.declarations.network.options import (
    LOG_DIR,
    NETWORK_INFO_DIR,
    NETWORK_INFO_INTERVAL,
    WAIT,
    DisableAutostartOption,
)


class SshOptions(DisableAutostartOption):
    """Options of `coder ssh`."""

    stdio: bool = option(
        False,
        "Carry SSH over standard input and output, for OpenSSH's ProxyCommand.",
        env="CODER_SSH_STDIO",
    )
    ssh_host_prefix: str = option(
        "",
        "Prefix to strip from the host name to get the workspace's name.",
        env="CODER_SSH_SSH_HOST_PREFIX",
    )
    hostname_suffix: str = option(
        "",
        "Suffix to strip from the host name to get the workspace's name.",
        env="CODER_SSH_HOSTNAME_SUFFIX",
    )
    forward_agent: bool = option(
        False,
        "Forward your SSH agent: the workspace can use your keys without storing them.",
        env="CODER_SSH_FORWARD_AGENT",
        short="A",
    )
    forward_gpg: bool = option(
        False,
        "Forward your GPG agent: the workspace can sign with your keys without storing them.",
        env="CODER_SSH_FORWARD_GPG",
        short="G",
    )
    identity_agent: str = option(
        "",
        "Socket of the SSH agent to forward; defaults to SSH_AUTH_SOCK.",
        env="CODER_SSH_IDENTITY_AGENT",
    )
    poll: timedelta = option(
        timedelta(minutes=1),
        "Interval of polls for a workspace stop; the session ends when it stops.",
        flag="workspace-poll-interval",
        env="CODER_WORKSPACE_POLL_INTERVAL",
        least=timedelta(seconds=1),
    )
    wait: Literal["yes", "no", "auto"] = WAIT
    no_wait: bool = option(
        False,
        "Open the shell while start scripts still run; the same as --wait=no.",
        env="CODER_SSH_NO_WAIT",
    )
    log_dir: str = LOG_DIR
    remote_forward: tuple[str, ...] = option(
        (),
        "Forward a workspace port to this machine: remote_port:local_address:local_port, or two sockets.",
        env="CODER_SSH_REMOTE_FORWARD",
        short="R",
    )
    env: tuple[str, ...] = option(
        (),
        "Set an environment variable of the session, name=value; may be repeated.",
        env="CODER_SSH_ENV",
        short="e",
    )
    tty: bool = option(
        False,
        "Allocate a terminal for the remote command, as editors and pagers require.",
        env="CODER_SSH_TTY",
        short="t",
    )
    usage_app: str = option(
        "",
        "Application to report in usage statistics.",
        env="CODER_SSH_USAGE_APP",
        hidden=True,
    )
    force_new_tunnel: bool = option(
        False,
        "Open a separate tunnel instead of sharing one with other commands.",
        env="CODER_SSH_FORCE_NEW_TUNNEL",
        hidden=True,
    )
    network_info_dir: str = NETWORK_INFO_DIR
    network_info_interval: timedelta = NETWORK_INFO_INTERVAL
    container: str = option(
        "",
        "Name or id of the workspace container to connect to.",
        short="c",
    )
    container_user: str = option(
        "",
        "User in the container; defaults to the container's user.",
    )


SSH = Command(
    words="ssh",
    summary="Start a shell into a workspace or run a command",
    options=SshOptions,
    usage="<workspace> [command]",
    min_args=1,
    raw_after=1,
    examples=(
        ("Start a shell", "coder ssh my-workspace"),
        ("Run a command", "coder ssh my-workspace git status"),
        ("Connect to one agent of another user's workspace", "coder ssh alice/her-workspace.gpu"),
        ("Forward port 8080 of the workspace to this machine", "coder ssh my-workspace -R 8080:localhost:8080"),
    ),
)
