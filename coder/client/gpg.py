"""`--forward-gpg`: the workspace signs with this machine's GPG agent.

Public keys and their trust are copied there; the agent's restricted socket (`agent-extra-socket`) is forwarded to the
path where the workspace's gpg expects its own agent. Private keys never leave this machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import trio

from coder.base.errors import CoderError

TIMEOUT = 30.0
_MAKE_ROOM = (
    "timeout 5 gpgconf --kill gpg-agent >/dev/null 2>&1; gpgconf --create-socketdir >/dev/null 2>&1; "
    's=$(gpgconf --list-dirs agent-socket) && mkdir -p -m 700 "${s%/*}" && rm -f "$s" && printf %s "$s"'
)
"Shell command that stops the workspace's own GPG agent and prints the path of its socket."


@dataclass(frozen=True, slots=True)
class Finished:
    """Result of a command in the workspace."""

    status: int | None
    out: bytes
    err: bytes


class GpgWorkspace(Protocol):
    """Interface to the SSH connection; shell.py implements it with asyncssh. Both methods raise CoderError."""

    async def run(self, command: str, stdin: bytes) -> Finished: ...
    async def forward_socket(self, remote: str, local: str) -> None: ...


async def forward_gpg(workspace: GpgWorkspace) -> None:
    """Set up the forwarding before the session starts. Raise CoderError that names the side that is not ready."""
    local_socket = (await _run_local("gpgconf", "--list-dirs", "agent-extra-socket")).decode().strip()
    if not local_socket:
        raise CoderError("gpg", "the local GPG has no extra socket", "Is gpg-agent 2.1 or newer installed here?")
    keys = await _run_local("gpg", "--armor", "--export")
    trust = await _run_local("gpg", "--export-ownertrust")
    # First: gpg would wait for an earlier session's dead socket.
    await _run_remote(workspace, _MAKE_ROOM)
    if keys:
        await _run_remote(workspace, "gpg --batch --no-autostart --import", keys)
    if trust:
        await _run_remote(workspace, "gpg --batch --no-autostart --import-ownertrust", trust)
    # A running agent would occupy the socket's path, and an exiting one removes the path.
    remote_socket = await _run_remote(workspace, _MAKE_ROOM)
    if not remote_socket.startswith(b"/"):
        raise CoderError("gpg", "the workspace's GPG has no agent socket", "Install gnupg in the workspace.")
    await workspace.forward_socket(remote_socket.decode(), local_socket)


async def _run_local(*command: str) -> bytes:
    try:
        with trio.fail_after(TIMEOUT):
            done = await trio.run_process(list(command), capture_stdout=True, capture_stderr=True, check=False)
    except (OSError, trio.TooSlowError) as error:
        raise CoderError("gpg", f"cannot run {command[0]} on this machine", "Install gnupg.") from error
    if done.returncode != 0:
        raise CoderError("gpg", f"{' '.join(command)} failed: {done.stderr.decode(errors='replace').strip()}")
    return bytes(done.stdout)


async def _run_remote(workspace: GpgWorkspace, command: str, stdin: bytes = b"") -> bytes:
    tool = command.split(maxsplit=1)[0]
    try:
        with trio.fail_after(TIMEOUT):
            done = await workspace.run(command, stdin)
    except trio.TooSlowError as error:
        raise CoderError("gpg", f"{tool} timed out in the workspace after {TIMEOUT:g} s") from error
    if done.status != 0:
        output = done.err.decode(errors="replace").strip()
        raise CoderError("gpg", f"{tool} failed in the workspace: {output}", "Install gnupg there.")
    return done.out
