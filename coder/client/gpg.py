"""`--forward-gpg`: the workspace signs with our GPG agent.

Public keys and their trust are copied there; the agent's socket for restricted use (`agent-extra-socket`) is
forwarded to where the workspace's gpg expects its own agent. Private keys never leave this machine.
"""

from __future__ import annotations

import trio
from trio_asyncio import aio_as_trio

from coder.base.errors import CoderError
from coder.net.ssh_library import asyncssh

TIMEOUT = 30.0


async def forward_gpg(connection: asyncssh.SSHClientConnection) -> None:
    """Sets everything up before the session starts. Raises CoderError naming the side that is not ready."""
    local_socket = (await _here("gpgconf", "--list-dirs", "agent-extra-socket")).decode().strip()
    if not local_socket:
        raise CoderError("gpg", "the local GPG has no extra socket", "Is gpg-agent 2.1 or newer installed here?")
    keys = await _here("gpg", "--armor", "--export")
    trust = await _here("gpg", "--export-ownertrust")
    # An agent that already runs there would keep the socket's name for itself.
    remote_socket = await _there(
        connection, "gpgconf --kill gpg-agent >/dev/null 2>&1; umask 077; gpgconf --create-socketdir >/dev/null 2>&1;"
        " s=$(gpgconf --list-dirs agent-socket) && rm -f \"$s\" && printf %s \"$s\"",
    )  # fmt: skip
    if not remote_socket.startswith(b"/"):
        raise CoderError("gpg", "the workspace's GPG names no agent socket", "Install gnupg in the workspace.")
    if keys:
        await _there(connection, "gpg --batch --import", keys)
    if trust:
        await _there(connection, "gpg --batch --import-ownertrust", trust)
    try:
        await aio_as_trio(_forward)(connection, remote_socket.decode(), local_socket)
    except (asyncssh.Error, OSError) as error:
        raise CoderError("gpg", "the workspace refused to forward the GPG socket") from error


async def _forward(connection: asyncssh.SSHClientConnection, remote: str, local: str) -> None:
    await connection.forward_remote_path(remote, local)


async def _here(*command: str) -> bytes:
    try:
        with trio.fail_after(TIMEOUT):
            done = await trio.run_process(list(command), capture_stdout=True, capture_stderr=True, check=False)
    except (OSError, trio.TooSlowError) as error:
        raise CoderError("gpg", f"cannot run {command[0]} on this machine", "Install gnupg.") from error
    if done.returncode != 0:
        raise CoderError("gpg", f"{' '.join(command)} failed: {done.stderr.decode(errors='replace').strip()}")
    return bytes(done.stdout)


async def _there(connection: asyncssh.SSHClientConnection, command: str, stdin: bytes = b"") -> bytes:
    tool = command.split(maxsplit=1)[0]
    try:
        with trio.fail_after(TIMEOUT):
            done = await aio_as_trio(connection.run)(command, input=stdin, encoding=None)
    except (asyncssh.Error, trio.TooSlowError) as error:
        raise CoderError("gpg", f"cannot run {tool} in the workspace") from error
    if done.exit_status != 0:
        said = bytes(done.stderr or b"").decode(errors="replace").strip()
        raise CoderError("gpg", f"{tool} failed in the workspace: {said}", "Install gnupg there.")
    return bytes(done.stdout or b"")
