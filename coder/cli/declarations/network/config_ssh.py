"""Declarations of `coder config-ssh` and `coder connect exists`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import Options, YesOption, option


class ConfigSshOptions(YesOption):
    """Options of `coder config-ssh`."""

    ssh_config_file: str = option(
        "~/.ssh/config",
        "SSH configuration file to update; only its Coder section changes.",
        env="CODER_SSH_CONFIG_FILE",
    )
    coder_binary_path: str = option(
        "",
        "Path of the coder program in the SSH configuration; defaults to this program.",
        env="CODER_SSH_CONFIG_BINARY_PATH",
    )
    ssh_option: tuple[str, ...] = option(
        (),
        'Add this option to every host, like "ForwardAgent yes"; may be repeated.',
        env="CODER_SSH_CONFIG_OPTS",
        short="o",
    )
    dry_run: bool = option(
        False,
        "Print the diff of the file without writing it.",
        env="CODER_SSH_DRY_RUN",
        short="n",
    )
    use_previous_options: bool = option(
        False,
        "Use the options of the last run (prefix, suffix, wait, SSH options) instead of the current ones.",
        env="CODER_SSH_USE_PREVIOUS_OPTIONS",
    )
    ssh_host_prefix: str = option(
        "",
        'Prefix of host names, like "coder."; defaults to the deployment\'s prefix.',
        env="CODER_CONFIGSSH_SSH_HOST_PREFIX",
    )
    hostname_suffix: str = option(
        "",
        'Suffix of host names, like "coder" for workspace.coder; defaults to that of the deployment.',
        env="CODER_CONFIGSSH_HOSTNAME_SUFFIX",
    )
    wait: str = option(
        "auto",
        "Wait for start scripts before opening a shell; auto follows the template.",
        env="CODER_CONFIGSSH_WAIT",
        choices=("yes", "no", "auto"),
    )
    disable_autostart: bool = option(
        False,
        "Fail to connect to a stopped workspace instead of starting it.",
        env="CODER_CONFIGSSH_DISABLE_AUTOSTART",
    )
    force_unix: bool = option(
        False,
        flag="force-unix-filepaths",
        env="CODER_CONFIGSSH_UNIX_FILEPATHS",
        hidden=True,
    )
    no_wildcard: bool = option(
        False,
        "Write a host for each workspace there is now instead of one pattern for all, for programs that list "
        "hosts; run it again for new workspaces.",
        env="CODER_CONFIGSSH_NO_WILDCARD",
    )


CONFIG_SSH = Command(
    words="config-ssh",
    summary='Add an SSH Host entry for your workspaces "ssh workspace.coder"',
    options=ConfigSshOptions,
    max_args=0,
    examples=(
        ("Write host entries for all your workspaces to ~/.ssh/config", "coder config-ssh"),
        ("Show what would change, without changing it", "coder config-ssh --dry-run"),
        ("Pass an option to SSH", 'coder config-ssh -o "ForwardAgent yes"'),
    ),
)

CONNECT_EXISTS = Command(
    words="connect exists",
    summary="Check whether a host is reachable through a desktop tunnel",
    options=Options,
    usage="<host>",
    min_args=1,
    max_args=1,
    examples=(("Check whether a host is reachable", "coder connect exists my-workspace.coder"),),
)
