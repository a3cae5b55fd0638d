"""`coder config-ssh`: a block in the SSH configuration, so that plain `ssh workspace.coder` works.

Everything between our two marker lines is ours and rewritten; the rest of the file is never touched.
"""

from __future__ import annotations

import difflib
import os
import shlex
import sys
from pathlib import Path
from typing import Any

from coder.base.config import Option
from coder.base.errors import CoderError
from coder.cli import session
from coder.cli.command import YES, Command, Invocation
from coder.cli.output import confirm, say

START = "# ------------START-CODER-----------"
END = "# ------------END-CODER------------"
OPTIONS_MARK = "# Last config-ssh options:"
FIXED = ("ConnectTimeout=0", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel ERROR")


def _run(invocation: Invocation) -> int:
    client = session.client(invocation)
    server: dict[str, Any] = client.request("GET", "/api/v2/deployment/ssh").json()
    path = Path(invocation["ssh_config_file"]).expanduser()
    before = _read(path)
    options = _options(invocation, before)
    block = _block(invocation, server, options)
    after = _replace(before, block)
    if after == before:
        say("No changes to make.")
        return 0
    _show_changes(path, before, after)
    if invocation["dry_run"]:
        return 0
    confirm(invocation, "Continue?", default=True)
    _write(path, after)
    sys.stdout.write(f'Updated "{path}"\n')
    host = _prefix(invocation, server)
    suffix = _suffix(invocation, server)
    example = f"{host}<workspace>" if host else f"<workspace>.{suffix}"
    sys.stdout.write(f"You should now be able to ssh into your workspace.\n\n\t$ ssh {example}\n")
    return 0


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise CoderError("ssh_config", f"cannot read {path}") from error


def _options(invocation: Invocation, before: str) -> tuple[str, ...]:
    """The extra SSH options: given now, or those of the last run when asked for."""
    if not invocation["use_previous_options"]:
        return tuple(invocation["ssh_option"])
    found = []
    for line in before.splitlines():
        if line.startswith("# :ssh-option="):
            found.append(line.partition("=")[2])
    return tuple(found)


def _prefix(invocation: Invocation, server: dict[str, Any]) -> str:
    return str(invocation["ssh_host_prefix"] or server.get("hostname_prefix") or "")


def _suffix(invocation: Invocation, server: dict[str, Any]) -> str:
    return str(invocation["hostname_suffix"] or server.get("hostname_suffix") or "").lstrip(".")


def _block(invocation: Invocation, server: dict[str, Any], extra: tuple[str, ...]) -> str:
    program = _quoted(invocation["coder_binary_path"] or session.program())
    proxy = f"{program} --global-config {_quoted(str(session.config_dir(invocation).absolute()))} ssh --stdio"
    for flag, value in (("--wait", invocation["wait"]), ("--disable-autostart", invocation["disable_autostart"])):
        if flag == "--wait" and value != "auto":
            proxy += f" --wait={value}"
        elif value is True:
            proxy += f" {flag}=true"
    settings = [*extra, *(f"{key} {value}" for key, value in (server.get("ssh_config_options") or {}).items()), *FIXED]
    taken: set[str] = set()
    kept = [line for line in settings if _first(line, taken)]
    prefix, suffix = _prefix(invocation, server), _suffix(invocation, server)
    lines = [START, "# Written by `coder config-ssh`; the next run replaces it. Your own settings belong outside."]
    if extra:
        lines += [OPTIONS_MARK, *(f"# :ssh-option={option}" for option in extra), "#"]
    if prefix:
        lines += [f"Host {prefix}*", *(f"\t{line}" for line in kept)]
        lines += [f"\tProxyCommand {proxy} --ssh-host-prefix {prefix} %h", ""]
    if suffix:
        lines += [f"Host *.{suffix}", *(f"\t{line}" for line in kept), ""]
        lines += [f'Match host *.{suffix} !exec "{program} connect exists %h"']
        lines += [f"\tProxyCommand {proxy} --hostname-suffix {suffix} %h"]
    return "\n".join([*lines, END, ""])


def _first(line: str, taken: set[str]) -> bool:
    """SSH takes the first value of an option; a person's own beats ours."""
    name = line.replace("=", " ").split()[0].lower()
    if name in taken:
        return False
    taken.add(name)
    return True


def _quoted(path: str) -> str:
    return shlex.quote(path).replace("%", "%%")


def _replace(before: str, block: str) -> str:
    start, end = before.find(START), before.find(END)
    if start < 0 and end < 0:
        gap = "" if not before else "\n" if before.endswith("\n") else "\n\n"
        return before + gap + block
    if start < 0 or end < start or before.count(START) > 1:
        raise CoderError(
            "ssh_config",
            "the marker lines of coder's section are damaged",
            f"Remove everything between {START} and {END} by hand and run this again.",
        )
    rest = before[end + len(END) :].removeprefix("\n")
    return before[:start] + block + rest


def _show_changes(path: Path, before: str, after: str) -> None:
    diff = difflib.unified_diff(before.splitlines(), after.splitlines(), str(path), f"{path} (new)", lineterm="")
    say("The following changes will be made to your SSH configuration:\n")
    for line in diff:
        say(f"    {line}")
    say()


def _write(path: Path, text: str) -> None:
    """Atomically, keeping the mode; a symbolic link stays one and its target changes."""
    target = path.resolve()
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    temporary.chmod(mode)
    temporary.replace(target)


CONFIG_SSH = Command(
    words="config-ssh",
    summary='Add an SSH Host entry for your workspaces "ssh workspace.coder"',
    run=_run,
    max_args=0,
    options=(
        Option(
            "ssh_config_file",
            "ssh-config-file",
            "CODER_SSH_CONFIG_FILE",
            default="~/.ssh/config",
            help="File to write.",
        ),
        Option("coder_binary_path", "coder-binary-path", "CODER_SSH_CONFIG_BINARY_PATH", help="Program to call."),
        Option(
            "ssh_option",
            "ssh-option",
            "CODER_SSH_CONFIG_OPTS",
            short="o",
            kind="string-array",
            default=(),
            help="SSH options to add to the hosts.",
        ),
        Option(
            "dry_run",
            "dry-run",
            "CODER_SSH_DRY_RUN",
            short="n",
            kind="bool",
            default=False,
            help="Show the changes without making them.",
        ),
        Option(
            "use_previous_options",
            "use-previous-options",
            "CODER_SSH_USE_PREVIOUS_OPTIONS",
            kind="bool",
            default=False,
            help="Keep the SSH options of the last run.",
        ),
        Option("ssh_host_prefix", "ssh-host-prefix", "CODER_CONFIGSSH_SSH_HOST_PREFIX", help="Prefix of host names."),
        Option("hostname_suffix", "hostname-suffix", "CODER_CONFIGSSH_HOSTNAME_SUFFIX", help="Suffix of host names."),
        Option(
            "wait",
            "wait",
            "CODER_CONFIGSSH_WAIT",
            default="auto",
            choices=("yes", "no", "auto"),
            help="Wait for the start scripts before a shell.",
        ),
        Option(
            "disable_autostart",
            "disable-autostart",
            "CODER_CONFIGSSH_DISABLE_AUTOSTART",
            kind="bool",
            default=False,
            help="Do not start stopped workspaces.",
        ),
        Option(
            "force_unix",
            "force-unix-filepaths",
            "CODER_CONFIGSSH_UNIX_FILEPATHS",
            kind="bool",
            default=False,
            hidden=True,
        ),
        Option("no_wildcard", "no-wildcard", "CODER_CONFIGSSH_NO_WILDCARD", kind="bool", default=False, hidden=True),
        YES,
    ),
)


def _exists(invocation: Invocation) -> int:  # noqa: ARG001 - every command has this form
    """0 when a desktop tunnel already resolves the name. We have none, so SSH always takes the ProxyCommand."""
    return 1


CONNECT_EXISTS = Command(
    words="connect exists",
    summary="Check whether a host is reachable through a desktop tunnel",
    usage="<host>",
    run=_exists,
    min_args=1,
    max_args=1,
)
