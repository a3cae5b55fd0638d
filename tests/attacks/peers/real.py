"""The tries against a real agent: the attacker is a real node of a user, with its own stack taken out.

Tables play in a thread; what they send passes through the node's event loop. A stranger sends to the UDP ports of
any process from a socket of its own.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import trio

from coder.base.secret import Secret
from coder.client.link import WorkspaceLink, open_link
from coder.mesh.core.crypto.keys import PrivateKey, PublicKey
from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.stack.tcp.states import TcpState
from coder.net.policy import DialPolicy
from tests.attacks.peers.conn import Conn
from tests.attacks.peers.place import STRANGER, Attack

PATIENCE = 30.0
REACHABLE = (TcpState.SYN_RECEIVED, TcpState.ESTABLISHED, TcpState.CLOSE_WAIT, TcpState.CLOSED)
"States that an attacker brings a listener's connection to by itself."


class RealAttack(Attack):
    """The means of a user whose program is hostile."""

    def __init__(self, link: WorkspaceLink) -> None:
        node, endpoint = link.node, link.node.endpoint
        key = link.controller.public_key_of(link.agent_id)
        assert key is not None
        self._node, self._peer, self._heard = node, endpoint.peers[key], cast("list[bytes]", [])
        endpoint.route = self._take
        own = endpoint.stack.addresses[0]  # type: ignore[attr-defined]
        machine = SimpleNamespace(key=endpoint.public_key, overlay=own, udp_address=STRANGER)
        super().__init__(cast(Any, SimpleNamespace(role="agent")), cast(Any, machine))
        self.key, self.disco = node._private, node._disco_private
        witness = SimpleNamespace(key=PublicKey(b"\x77" * 32), overlay=own[:15] + b"\x77", udp_address=("127.0.0.1", 9))
        self.place = cast(
            Any,
            SimpleNamespace(
                role="agent",
                now=0.0,
                victim=SimpleNamespace(
                    key=key, overlay=link.address.packed, udp_address=("127.0.0.1", 9), endpoint=self
                ),
                witness=witness,
                line=SimpleNamespace(local_port=7, remote_port=7),
            ),
        )
        witness.endpoint = SimpleNamespace(disco_key=PrivateKey(b"\x78" * 32).public)

    # What the tables ask about the victim, from the attacker's knowledge

    @property
    def disco_key(self) -> PublicKey:
        return self._peer.config.disco_key

    @property
    def device(self) -> Any:
        """Indices of the attacker's session at the victim, and of an invented one."""
        keypair = self._peer.tunnel._keypairs.current
        assert keypair is not None
        tunnels = [SimpleNamespace(tunnel=SimpleNamespace(remote=key)) for key in (self.machine.key, b"\x77" * 32)]
        sessions = {keypair.remote_index: tunnels[0], 0x1234567: tunnels[1]}
        return SimpleNamespace(_indices=SimpleNamespace(sessions=sessions))

    @property
    def target(self) -> bytes:
        return self.place.victim.overlay

    @property
    def peer(self) -> Any:
        return self._peer

    # Sending

    def _take(self, packets: list[bytes]) -> list[bytes]:
        self._heard += packets
        return []

    def sealed(self, *packets: bytes) -> list[bytes]:
        return trio.from_thread.run_sync(lambda: self._peer.tunnel.seal(list(packets), trio.current_time()))

    def relay(self, *packets: bytes, source: bytes | None = None, region: int = 0) -> None:
        if source is not None:
            return  # a relay names its sender itself
        self._send([packet for packet in packets if 0 < len(packet) <= 65_535])

    def _send(self, packets: Sequence[bytes]) -> None:
        pump, home = self._node._pump, self._peer.config.home_derp
        for at in range(0, len(packets), 32):
            trio.from_thread.run_sync(pump.relay, home, bytes(self._peer.config.public_key), packets[at : at + 32])
            trio.from_thread.run(trio.lowlevel.checkpoint)
        self.sent += len(packets)

    def answers(self, seconds: float = 0.05) -> list[bytes]:
        """What arrived; waits until nothing has arrived for so long."""
        received: list[bytes] = []
        while True:
            trio.from_thread.run(trio.sleep, seconds)
            if not self._heard:
                return received
            received += self._heard
            self._heard = []


class RealConn(Conn):
    """Without a look into the victim."""

    wanted = TcpState.CLOSED

    @property
    def socket(self) -> None:
        return None

    @property
    def state(self) -> TcpState:
        return self.wanted

    def await_answer(self) -> None:
        before, limit = len(self.heard), time.monotonic() + PATIENCE
        while len(self.heard) == before:
            assert time.monotonic() < limit, "the agent did not answer"
            self.hear(0.002)

    def reach(self, state: TcpState, *, active: bool) -> Conn:
        self.wanted = state
        return super().reach(state, active=active)


@contextlib.asynccontextmanager
async def open_attack(url: str, token: str, agent: str) -> AsyncIterator[RealAttack]:
    """A user's node that reaches the agent, by relay, with a session."""
    async with open_link(DialPolicy(url, token=Secret(token)), UUID(agent), direct=False) as link:
        await link.wait_reachable()
        yield RealAttack(link)


def udp_ports(pid: int) -> list[Address]:
    """Addresses of a process's UDP sockets, as a stranger on this machine reaches them."""
    inodes = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            inodes.add(str(entry.readlink()).removeprefix("socket:[").removesuffix("]"))
    found: list[Address] = []
    for table, host in (("udp", "127.0.0.1"), ("udp6", "::1")):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[9] in inodes:
                found.append((host, int(fields[1].rpartition(":")[2], 16)))
    return found


def throw(datagrams: Sequence[bytes], to: Address) -> int:
    """Send as a stranger; return the number of answers that came back at once."""
    with socket.socket(socket.AF_INET6 if ":" in to[0] else socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setblocking(False)
        for number, datagram in enumerate(datagrams):
            with contextlib.suppress(OSError):
                sock.sendto(datagram[:65_000], to)
            if number % 100 == 99:
                time.sleep(0.01)  # the attacker's own pace: the kernel's buffer would drop the rest unseen
        time.sleep(0.005)
        answers = 0
        with contextlib.suppress(OSError):
            while sock.recv(65_536):
                answers += 1
        return answers
