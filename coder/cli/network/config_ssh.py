"""`coder config-ssh`: writes a section of the SSH configuration, so that plain `ssh workspace.coder` works.

The text between the two marker lines is replaced; the rest of the file is never changed.
"""

from __future__ import annotations

import difflib
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from coder.api.site.deployment import SSHConfigResponse
from coder.base.atomic_file import read_lossless, shown, write_atomically
from coder.base.errors import CoderError
from coder.base.quoted import quoted
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.edition import is_windows
from coder.cli.core.options import Options
from coder.cli.declarations.network.config_ssh import CONFIG_SSH, CONNECT_EXISTS, ConfigSshOptions
from coder.cli.ui.output import confirm, say
from coder.cli.workspaces.workspaces import fetch
from coder.client.answers import read
from coder.domain.network.ssh_options import ssh_option
from coder.net.blocking import BlockingClient

START = "# ------------START-CODER-----------"
END = "# ------------END-CODER------------"
OPTIONS_MARK = "# Last config-ssh options:"
FIXED = ("ConnectTimeout=0", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel ERROR")
_SERVER_SETTING = "the server's settings"
_RUNNING = frozenset(
    "host include knownhostscommand localcommand match permitlocalcommand pkcs11provider proxycommand proxyjump "
    "securitykeyprovider xauthlocation".split()
)
"""Settings (ssh_config(5)) that ssh takes from the user only: with them a server could run programs on the machine of
everybody who calls `ssh`."""
_HOST_PART = re.compile(r"[A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class HostOptions:
    """Options of the host entries; stored as comments of the section for `--use-previous-options`."""

    ssh_options: tuple[str, ...] = ()
    prefix: str = ""
    suffix: str = ""
    wait: str = "auto"
    disable_autostart: bool = False
    no_wildcard: bool = False

    def lines(self) -> list[str]:
        """Return the comment lines in the original's format; none if all options have their default."""
        rows = [("wait", self.wait if self.wait != "auto" else ""), ("ssh-host-prefix", self.prefix)]
        rows += [("hostname-suffix", self.suffix), ("disable-autostart", "true" if self.disable_autostart else "")]
        rows += [("no-wildcard", "true" if self.no_wildcard else "")]
        rows += [("ssh-option", option) for option in self.ssh_options]
        return [f"# :{name}={value}" for name, value in rows if value]


def previous_options(text: str) -> HostOptions:
    """Return the options stored in the section of an earlier run."""
    options: dict[str, list[str]] = {}
    section = text.partition(START)[2].partition(END)[0]
    for line in section.splitlines():
        if line.startswith("# :") and "=" in line:
            name, _, value = line[3:].partition("=")
            options.setdefault(name, []).append(value)
    single = {name: values[-1] for name, values in options.items()}
    return HostOptions(
        ssh_options=tuple(options.get("ssh-option", ())),
        prefix=single.get("ssh-host-prefix", ""),
        suffix=single.get("hostname-suffix", ""),
        wait=single.get("wait", "auto"),
        disable_autostart=single.get("disable-autostart") == "true",
        no_wildcard=single.get("no-wildcard") == "true",
    )


@implements(CONFIG_SSH)
def _run(invocation: Invocation[ConfigSshOptions]) -> int:
    client = session.client(invocation)
    server = read(client.request("GET", "/api/v2/deployment/ssh"), SSHConfigResponse)
    path = Path(invocation.options.ssh_config_file).expanduser()
    before = _read(path)
    options = previous_options(before) if invocation.options.use_previous_options else _given_options(invocation)
    names = _host_names(client) if options.no_wildcard else None
    after = _replace(before, _block(invocation, server, options, names))
    if after == before:
        say("No changes to make.")
        return 0
    _show_changes(path, before, after, for_programs=invocation.options.dry_run)
    if invocation.options.dry_run:
        return 0
    confirm(invocation.options.yes, "Continue?", default=True)
    _write(path, after)
    sys.stdout.write(f'Updated "{path}"\n')
    host, suffix = _prefix(options, server), _suffix(options, server)
    example = f"{host}<workspace>" if host else f"<workspace>.{suffix}"
    sys.stdout.write(f"You should now be able to ssh into your workspace.\n\n\t$ ssh {example}\n")
    return 0


def _read(path: Path) -> str:
    try:
        return read_lossless(path)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise CoderError("ssh_config", f"cannot read {path}") from error


def _given_options(invocation: Invocation[ConfigSshOptions]) -> HostOptions:
    return HostOptions(
        ssh_options=tuple(invocation.options.ssh_option),
        prefix=invocation.options.ssh_host_prefix,
        suffix=invocation.options.hostname_suffix,
        wait=invocation.options.wait,
        disable_autostart=invocation.options.disable_autostart,
        no_wildcard=invocation.options.no_wildcard,
    )


def _host_names(client: BlockingClient) -> list[str]:
    """Return the names of the user's workspaces, with the agent if there are several: `w1`, `w2.main`, `w2.gpu`."""
    host_names: list[str] = []
    for workspace in fetch(client, "owner:me"):
        agents = [agent.name for resource in workspace.latest_build.resources for agent in resource.agents or ()]
        host_names.append(workspace.name)
        host_names += [f"{workspace.name}.{agent}" for agent in agents] if len(agents) > 1 else []
    return sorted(map(_plain, host_names))


def _prefix(options: HostOptions, server: SSHConfigResponse) -> str:
    return options.prefix or _plain(server.hostname_prefix)


def _suffix(options: HostOptions, server: SSHConfigResponse) -> str:
    return (options.suffix or _plain(server.hostname_suffix)).lstrip(".")


def _plain(text: str) -> str:
    """Return a part of a host name from the server. ProxyCommand is a line for a shell: any other letter could start a
    program, now or at the next `ssh`. Raises CoderError."""
    if not _HOST_PART.fullmatch(text):
        raise CoderError("ssh_config", f"the server's host name {quoted(text[:80])} cannot be written for ssh")
    return text


def _block(
    invocation: Invocation[ConfigSshOptions], server: SSHConfigResponse, options: HostOptions, names: list[str] | None
) -> str:
    """Return the section. With `names`, it has a host for each name instead of one pattern for all."""
    paths = invocation.options.coder_binary_path or session.program(), str(session.config_dir(invocation).absolute())
    unix_names = bool(invocation.options.force_unix)
    program, folder = (command_word(path, windows=is_windows(), unix_names=unix_names) for path in paths)
    proxy = f"{program} --global-config {folder} ssh --stdio"
    proxy += f" --wait={options.wait}" if options.wait != "auto" else ""
    proxy += " --disable-autostart=true" if options.disable_autostart else ""
    from_server = _with_values(server.ssh_config_options or {})
    seen: set[str] = set()
    own = [_setting(line, "--ssh-option") for line in options.ssh_options]
    server_lines = [_setting(line, _SERVER_SETTING) for line in from_server]
    lines_of_host = [line for line in [*own, *server_lines, *FIXED] if _is_first(line, seen)]
    prefix, suffix = _prefix(options, server), _suffix(options, server)
    lines = [
        START,
        "# Written by `coder config-ssh`; the next run replaces it. Put your own settings outside this section.",
    ]
    if options.lines():
        lines += [OPTIONS_MARK, *options.lines(), "#"]
    if prefix:
        hosts = f"{prefix}*" if names is None else " ".join(prefix + name for name in names)
        lines += _host(hosts, lines_of_host, f"{proxy} --ssh-host-prefix {prefix} %h")
    if suffix and names is None and is_windows():
        # No desktop tunnel exists, and cmd.exe, which runs Match's command, reads quotes differently.
        lines += _host(f"*.{suffix}", lines_of_host, f"{proxy} --hostname-suffix {suffix} %h")
    elif suffix and names is None:
        lines += [f"Host *.{suffix}", *(f"\t{line}" for line in lines_of_host), ""]
        lines += [f'Match host *.{suffix} !exec "{program} connect exists %h"']
        lines += [f"\tProxyCommand {proxy} --hostname-suffix {suffix} %h"]
    elif suffix:
        # Names for the desktop app start with the agent; `coder ssh` parses names with a suffix the same way.
        hosts = " ".join(".".join(reversed(name.split("."))) + f".{suffix}" for name in names or ())
        lines += _host(hosts, lines_of_host, f"{proxy} --hostname-suffix {suffix} %h")
    return "\n".join([*lines, END, ""])


def _host(hosts: str, settings: list[str], proxy: str) -> list[str]:
    if not hosts:
        return []
    return [f"Host {hosts}", *(f"\t{line}" for line in settings), f"\tProxyCommand {proxy}", ""]


def _with_values(settings: Mapping[str, str]) -> list[str]:
    """Drop settings without a value, and those that start programs or begin another host's section.

    An upstream server passes on any text of its administrator, and ssh would reject the whole file, also for other
    hosts, because of a keyword without a value."""
    for name in (name for name, value in settings.items() if not value.strip()):
        _setting(f"{name} value", _SERVER_SETTING)  # an invalid name is rejected without printing it
        say(f"warning: the server's setting {quoted(name)} has no value and is skipped")
    running = [name for name in settings if name.strip().lower() in _RUNNING]
    for name in running:
        say(f"warning: the server's setting {quoted(name)} could start programs here and is skipped")
        say("  Add it with --ssh-option if you want it.")
    return [f"{name} {value}" for name, value in settings.items() if value.strip() and name not in running]


def _setting(line: str, whose: str) -> str:
    try:
        ssh_option(line)
    except ValueError:
        raise CoderError(
            "ssh_config",
            f"{whose}: {quoted(line)} is not an SSH client setting",
            "Write it as name=value, on one line.",
        ) from None
    return line


def _is_first(line: str, seen: set[str]) -> bool:
    """Return the first value of each option, as ssh does; the user's options precede the defaults."""
    name = line.replace("=", " ").split()[0].lower()
    if name in seen:
        return False
    seen.add(name)
    return True


def command_word(path: str, *, windows: bool, unix_names: bool = False) -> str:
    """Return a path as a word of ProxyCommand. Raise CoderError for one that cannot be written there.

    OpenSSH replaces `%` and a letter. On other systems a shell reads the word. Windows' own OpenSSH starts the command
    line as it is, and Git's by a POSIX shell: both read double quotes, and keep the backslashes between them.
    """
    if "\n" in path or "\r" in path or (windows and '"' in path):
        raise CoderError("ssh_config", f"{quoted(path)} cannot be written into an SSH configuration", "Rename it.")
    if not windows:
        return shlex.quote(path).replace("%", "%%")
    name = path.replace("\\", "/") if unix_names else path
    return '"' + name.replace("%", "%%") + '"'


def _replace(before: str, block: str) -> str:
    start, end = before.find(START), before.find(END)
    if start < 0 and end < 0:
        gap = "" if not before else "\n" if before.endswith("\n") else "\n\n"
        return before + gap + block
    if start < 0 or end < start or before.count(START) > 1:
        raise CoderError(
            "ssh_config",
            "the marker lines of coder's section are damaged",
            f"Remove everything between {START} and {END} manually and run this command again.",
        )
    rest = before[end + len(END) :].removeprefix("\r").removeprefix("\n")
    return before[:start] + block + rest


def _show_changes(path: Path, before: str, after: str, *, for_programs: bool) -> None:
    """Print the diff: for a dry run on stdout, so that it can be saved; otherwise on stderr."""
    old, new = shown(before).splitlines(), shown(after).splitlines()
    diff = difflib.unified_diff(old, new, str(path), f"{path} (new)", lineterm="")
    would = "would" if for_programs else "will"
    say(f"These changes {would} be made to your SSH configuration:\n")
    for line in diff:
        if for_programs:
            sys.stdout.write(f"{line}\n")
        else:
            say(f"    {line}")
    say()


def _write(path: Path, text: str) -> None:
    """Write the file atomically, keeping its mode; for a symbolic link, change the target."""
    target = path.resolve()
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
    write_atomically(target, text, mode=mode)


@implements(CONNECT_EXISTS)
def _exists(invocation: Invocation[Options]) -> int:  # noqa: ARG001 - every command has this form
    """Return 0 if a desktop tunnel resolves the name. There is no such tunnel, so ssh always uses the ProxyCommand."""
    return 1
