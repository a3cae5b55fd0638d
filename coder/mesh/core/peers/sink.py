"""Output interface of the endpoint; `drivers/pump.py` implements it, and tests have their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from coder.mesh.core.crypto.keys import PublicKey
from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.paths.probing import PingAnswered
from coder.mesh.core.paths.selector import PathState


class Sink(Protocol):
    """Receiver of the endpoint's output; every call completes before it returns."""

    def udp(self, datagrams: Sequence[bytes], to: Address) -> bool:
        """Send datagrams; return False when the address is unreachable."""

    def udp_batch(self, batch: memoryview, segment: int, to: Address) -> bool:
        """Send consecutive datagrams of `segment` bytes each; the memory is reused after the call."""

    def relay(self, region: int, to: bytes, packets: Sequence[bytes | memoryview]) -> bool:
        """Send packets to the peer with this key through a region's relay.

        Returns False when its queue has become long: nothing is lost yet, but the caller should wait for
        `relay_drained`.
        """

    def stun(self, datagram: bytes) -> None:
        """A STUN message arrived by UDP."""

    def ping_answered(self, answer: PingAnswered, peer: PublicKey, region: int) -> None:
        """Report the answer to a caller's ping; `region` is 0 for direct answers."""

    def needs_endpoints(self) -> None:
        """Request fresh own endpoints for a peer: measure them, then call `set_own_endpoints`."""

    def peer_alive(self, peer: PublicKey) -> None:
        """Report a completed WireGuard handshake with the peer."""

    def path_changed(self, peer: PublicKey, state: PathState, address: Address | None) -> None:
        """Report a new path for the peer's data."""
