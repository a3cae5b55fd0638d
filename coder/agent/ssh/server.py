"""SSH connection on one overlay stream: policy and asyncssh options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import trio
from trio_asyncio import aio_as_trio

from coder.agent.ssh import child_wait
from coder.agent.ssh.limits import install_limits, may_listen
from coder.agent.ssh.negotiation import (
    accept_empty_user,
    accept_non_utf8_commands,
    announce_kex_guess2,
    prefer_fast_ciphers,
)
from coder.agent.ssh.sessions import SessionRunner
from coder.agent.state import AgentState
from coder.base.log import get_logger
from coder.net.ssh_library import asyncssh
from coder.net.ssh_transport import StreamTransport

if TYPE_CHECKING:
    from coder.agent.ssh.sftp import DiskThreads

log = get_logger("agent.ssh")
child_wait.install()
accept_non_utf8_commands()
install_limits()

ENCRYPTION = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes256-ctr", "aes192-ctr", "aes128-ctr")
SLOW_ENCRYPTION = "chacha20-poly1305@openssh.com"
"""Cipher that OpenSSH prefers; the client's preference decides. With the available libraries every byte costs the agent
a third more, so it is offered only where the processor has no AES instructions. Every client supports one of the
others."""
WINDOW = 8 << 20
"Channel window in bytes; the default of 2 MiB stalls a fast path at ordinary round trips."


def _has_aes() -> bool:
    try:
        return " aes" in Path("/proc/cpuinfo").read_text()
    except OSError:
        return True  # not Linux: machines sold with other systems have them


_INVALID = (asyncssh.packet.PacketDecodeError, UnicodeDecodeError)
"""Errors of the library, beside its own, for packets before the login that are cut short or no text."""
_MAX_SOCKET_PATH = 107
"""Bytes of `sun_path` without the final zero; the least of all systems is 103, which then refuse it themselves."""


class SshService:
    """SSH server for streams. Must run inside a trio-asyncio loop."""

    def __init__(self, state: AgentState, *, max_timeout: float = 72 * 3600) -> None:
        self._state = state
        self.runner = SessionRunner(state)
        self._threads: DiskThreads | None = None
        self._options = asyncssh.SSHServerConnectionOptions(
            server_factory=lambda: _Policy(state),
            server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
            process_factory=self.runner.run,
            sftp_factory=self._start_sftp,
            sftp_version=3,
            allow_scp=False,  # `scp -O` runs the workspace's own scp program, as a plain command
            agent_forwarding=True,
            x11_forwarding=True,
            encoding=None,
            line_editor=False,
            encryption_algs=[*ENCRYPTION] if _has_aes() else [SLOW_ENCRYPTION, *ENCRYPTION],
            compression_algs=["none"],
            window=WINDOW,
            max_pktsize=1 << 18,
            login_timeout=0,
            keepalive_interval=max_timeout / 3 if max_timeout >= 3 else 0,
            keepalive_count_max=3,
            rekey_bytes=1 << 34,
        )

    async def _start_sftp(self, channel: asyncssh.SSHServerChannel[bytes]) -> asyncssh.SFTPServer:
        from coder.agent.ssh.sftp import DiskThreads, start_sftp  # which many agents never need

        if self._threads is None:
            self._threads = DiskThreads()
        return await start_sftp(channel, self._state, self._threads)

    async def serve(self, stream: trio.abc.Stream) -> None:
        """Serve one connection to its end. Never raises for a peer's misbehaviour."""
        transport = StreamTransport(stream)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(transport.pump)
                await aio_as_trio(self._run_connection)(transport)
                nursery.cancel_scope.cancel()
        except* (asyncssh.Error, *_INVALID, OSError, ConnectionError, trio.BrokenResourceError) as group:
            log.debug("ssh connection ended", error=group.exceptions[0])

    async def _run_connection(self, transport: StreamTransport) -> None:
        try:
            connection = await asyncssh.connect_reverse("overlay", 22, tunnel=transport, options=self._options)
        except (asyncssh.Error, *_INVALID, OSError):
            self._state.counters.count("agent_ssh_server_failed_connections_total")
            raise
        try:
            await connection.wait_closed()
        finally:
            connection.abort()


class _Policy(asyncssh.SSHServer):
    """Policy: every client that reached the agent may do everything, except forwarding that the template blocks."""

    def __init__(self, state: AgentState) -> None:
        self._state = state

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        prefer_fast_ciphers(conn)
        accept_empty_user(conn)
        announce_kex_guess2(conn)

    def begin_auth(self, username: str) -> bool:
        return False

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:
        return not self._state.block_local_forwarding

    def server_requested(self, listen_host: str, listen_port: int) -> bool:
        return may_listen(self._connection) and not self._state.block_reverse_forwarding

    def unix_connection_requested(self, dest_path: str) -> bool:
        return not self._state.block_local_forwarding

    def unix_server_requested(self, listen_path: str) -> bool:
        # asyncio prints a path that no socket can have to standard error, whatever characters it contains.
        size = len(listen_path.encode("utf-8", "surrogateescape"))
        is_possible = 0 < size <= _MAX_SOCKET_PATH and listen_path.isprintable()
        return is_possible and may_listen(self._connection) and not self._state.block_reverse_forwarding
