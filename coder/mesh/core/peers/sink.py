"""The way out of the endpoint; `drivers/pump.py` has it, and the tests their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from coder.mesh.core.crypto.keys import PublicKey
from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.paths.probing import PingAnswered
from coder.mesh.core.paths.selector import PathState


class Sink(Protocol):
    """Where the endpoint's output goes; every call is carried out before it returns."""

    def udp(self, datagrams: Sequence[bytes], to: Address) -> bool:
        """Send datagrams; False when there is no way to that address."""

    def udp_batch(self, batch: memoryview, segment: int, to: Address) -> bool:
        """Send datagrams of `segment` bytes lying one after another; the memory is reused after the call."""

    def relay(self, region: int, to: bytes, packets: Sequence[bytes | memoryview]) -> bool:
        """Send packets to the peer with this key through a region's relay.

        False when its queue has become long: nothing is lost yet, but `relay_drained` should be awaited.
        """

    def stun(self, datagram: bytes) -> None:
        """A STUN message arrived by UDP."""

    def ping_answered(self, answer: PingAnswered, peer: PublicKey, region: int) -> None:
        """The answer to a ping a caller waits for; `region` is 0 for direct ones."""

    def wants_endpoints(self) -> None:
        """Our own addresses are too old to be told to a peer: measure them, then call `set_own_endpoints`."""

    def peer_alive(self, peer: PublicKey) -> None:
        """A WireGuard handshake with the peer completed."""

    def path_changed(self, peer: PublicKey, state: PathState, address: Address | None) -> None:
        """Data to the peer takes another way from now on."""
