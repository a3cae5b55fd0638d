"""Checks of this machine: disks, the agent's socket, token and service."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import trio

from coder.base.errors import CoderError
from coder.base.secret import Secret
from coder.cli.agents.credentials import read_token_option
from coder.cli.agents.stat import disk
from coder.cli.agents.sync import ask_socket
from coder.cli.core import session
from coder.cli.doctor.examination import Examination
from coder.cli.doctor.findings import Finding, failure, from_error, ok, skipped
from coder.cli.doctor.judgements import judge_disk, judge_service
from coder.net.errors import HttpError, is_own_refusal
from coder.net.http1 import HttpClient

_AGENT_UNITS = (
    ("coder-agent", Path("/etc/systemd/system/coder-agent.service"), ()),
    ("coder-agent", Path.home() / ".config/systemd/user/coder-agent.service", ("--user",)),
)
"""Name, file and flags of `systemctl` of the services that `coder agent install` makes."""
_SYSTEMCTL_LIMIT = 5.0
_HOW_TO_ATTACH = "Run the command that `coder external-workspaces agent-instructions <workspace>` prints."


async def check_disks(examination: Examination) -> list[Finding]:
    """Check the file systems of the configuration and of temporary files."""
    folders = {
        "configuration": session.config_dir(examination.invocation),
        "temporary files": Path(tempfile.gettempdir()),
    }
    return judge_disks(folders.items())


def judge_disks(folders: Iterable[tuple[str, Path]]) -> list[Finding]:
    """Judge the file system of each folder or of its nearest parent that exists; each file system once."""
    findings, seen = [], set()
    for use, folder in folders:
        existing = next((path for path in (folder, *folder.parents) if path.is_dir()), folder)
        try:
            usage, device = disk(str(existing)), existing.stat().st_dev
        except (CoderError, OSError) as error:
            findings.append(failure("disk", "Disk", f"cannot read {existing}: {error}", "Check its owner and mode."))
            continue
        if device not in seen:
            seen.add(device)
            total = usage.total or 0.0
            findings.append(judge_disk(f"{existing} ({use})", total - usage.used, total))
    return findings


async def check_agent(examination: Examination) -> list[Finding]:
    """Check the agent of this machine, if there is one: its service, its socket and its token."""
    options = examination.invocation.options
    findings = [
        judge_service("agent-service", "Agent service", f"{unit}.service", await service_state(unit, *flags))
        for unit, path, flags in _AGENT_UNITS
        if path.exists()
    ]
    if options.socket_path:
        findings.append(await _ask_socket(options.socket_path))
    try:
        token = read_token_option(examination.invocation)
    except CoderError as error:
        return [*findings, from_error("agent-token", "Agent token", error, "Check the file's owner and mode.")]
    if token:
        findings.append(await _try_token(examination, token))
    return findings or [skipped("agent-service", "Agent", "this machine runs no agent that this user knows of")]


async def service_state(unit: str, *flags: str) -> str:
    """Return what `systemctl is-active` prints; "" without systemd."""

    def ask() -> str:
        command = ["systemctl", *flags, "is-active", unit]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SYSTEMCTL_LIMIT)
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return done.stdout.strip()

    return await trio.to_thread.run_sync(ask, abandon_on_cancel=True)


async def _ask_socket(path: str) -> Finding:
    try:
        await trio.to_thread.run_sync(lambda: ask_socket(path, "ping", patience=0.0), abandon_on_cancel=True)
    except CoderError as error:
        return from_error("agent-socket", "Agent socket", error, "Start the agent.")
    return ok("agent-socket", "Agent socket", f"the agent answers at {path}")


async def _try_token(examination: Examination, token: str) -> Finding:
    """Check that the deployment accepts the agent's token; the request changes nothing and returns no secret."""
    title = "Agent token"
    if examination.policy is None or not examination.is_reachable:
        return skipped("agent-token", title, "not checked: the deployment does not answer")
    async with HttpClient(examination.policy.with_token(Secret(token))) as http:
        try:
            await http.request("GET", "/api/v2/workspaceagents/me/external-auth?id=none")
        except HttpError as error:
            if error.status == 401:
                what = "the deployment rejects the token: a later build of the workspace has replaced it"
                return failure("agent-token", title, what, _HOW_TO_ATTACH)
            if not is_own_refusal(error):
                return from_error("agent-token", title, error, "Check the proxies between.")
        except CoderError as error:
            return from_error("agent-token", title, error, "Check the network.")
    return ok("agent-token", title, "the deployment accepts the token")
