"""Driver of the tries against an agent's services: through a port forward of the command line, as a user would."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from coder.net.ssh_library import asyncssh
from tests.attacks.strangers.kinds import Kind
from tests.attacks.strangers.place import MACHINE, Address, Place, exchange, send, wait
from tests.attacks.strangers.tables.agent import CHANNEL
from tests.kit.free_ports import free_port
from tests.kit.server.server_process import end

PORTS = {"ssh": 1, "pty": 2, "speed": 3, "http": 4}
SETTLE = 0.05
"Seconds that a server may take to notice before the attacker leaves."


@contextlib.contextmanager
def forwarded(place: Place) -> Iterator[dict[str, int]]:
    """Local ports of the agent's services."""
    ports = {name: free_port() for name in PORTS}
    options = [f"--tcp=127.0.0.1:{ports[name]}:{there}" for name, there in PORTS.items()]
    env = {"CODER_URL": place.server.url, "CODER_SESSION_TOKEN": place.server.token}
    process: subprocess.Popen[bytes] = place.server.spawn("forward", "port-forward", MACHINE, *options, env=env)

    def answers() -> bool:
        with contextlib.suppress(OSError):
            return exchange(Address("127.0.0.1", ports["ssh"]), b"", timeout=5).startswith(b"SSH-")
        return False

    try:
        wait(answers, "the agent's SSH was not reached")
        yield ports
    finally:
        end(process)


@dataclass
class AgentAttacker:
    ports: dict[str, int]
    held: list[socket.socket] = field(default_factory=list)
    sessions: int = 0
    "Channels that were opened for tries."

    def run(self, one: Kind) -> bytes:
        if one.stage in PORTS:
            stream = socket.create_connection(("127.0.0.1", self.ports[one.stage]), 10)
            return send(stream, one.pieces, one.then, self.held)
        asyncio.run(asyncio.wait_for(self._packets(one), 30))
        return b""

    def works(self) -> bool:
        """Whether another user's command runs."""

        async def ask() -> bool:
            async with self._client() as client:
                done = await client.run("echo fine")
                return bool(done.stdout == "fine\n")

        return asyncio.run(asyncio.wait_for(ask(), 30))

    def close(self) -> None:
        for stream in self.held:
            stream.close()
        self.held.clear()

    def _client(self) -> Any:
        options = {"username": "u", "known_hosts": None, "config": None, "client_keys": None, "agent_path": None}
        return asyncssh.connect("127.0.0.1", self.ports["ssh"], **options)

    async def _packets(self, one: Kind) -> None:
        with contextlib.suppress(asyncssh.Error, OSError):
            async with self._client() as client:
                if one.stage == "packet":
                    for piece in one.pieces:
                        client.send_packet(piece[0], piece[1:])
                elif one.stage == "session":
                    await self._session(client, one)
                else:
                    await self._sftp(client, one)
                await asyncio.sleep(SETTLE)
                client.abort()

    async def _session(self, client: Any, one: Kind) -> None:
        # Opened without the shell or command that the library's own methods request at once.
        loop = asyncio.get_running_loop()
        channel = asyncssh.SSHClientChannel(client, loop, "strict", None, "strict", 1 << 21, 1 << 15)
        await channel._open(b"session")
        self.sessions += 1
        channel._session = asyncssh.SSHClientSession()
        number = channel._send_chan.to_bytes(4, "big")  # type: ignore[union-attr]
        for piece in one.pieces:
            client.send_packet(piece[0], piece[1:].replace(CHANNEL, number))

    async def _sftp(self, client: Any, one: Kind) -> None:
        writer, reader, _ = await client.open_session(subsystem="sftp", encoding=None)
        for piece in one.pieces:
            is_size = piece.startswith(b"SIZE")
            writer.write(piece[4:] if is_size else len(piece).to_bytes(4, "big") + piece)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(reader.read(1 << 16), SETTLE)
