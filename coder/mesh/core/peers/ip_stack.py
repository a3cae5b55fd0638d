"""Interface of the TCP/IP stack for the endpoint; `stack/interface.py` implements it."""

from __future__ import annotations

from typing import Protocol

from coder.mesh.core.wire.batch import Batch, TxBuf


class IpStack(Protocol):
    """Inner packets in and out, by overlay address (16 bytes)."""

    def input_batch(self, packets: list[bytes], now: float) -> None:
        """Process inner packets that arrived."""

    @property
    def idle(self) -> bool:
        """Return whether neither `emit` nor `take_output` has anything."""

    def emit(self, txbuf: TxBuf, now: float) -> Batch | None:
        """Fill the superbuffer with data for one peer."""

    def take_output(self, now: float) -> list[tuple[bytes, list[bytes]]]:
        """Return all other packets, per destination."""

    def next_wake(self) -> float | None:
        """Return when `on_timer` is due."""

    def on_timer(self, now: float) -> None:
        """Run all expired timers."""

    def pause(self, destination: bytes) -> None:
        """Send no bulk data to this peer until `resume`."""

    def resume(self, destination: bytes) -> None:
        """Undo `pause`."""

    def set_mtu_to(self, destination: bytes, mtu: int | None) -> None:
        """Set the packet size for this peer; None: default."""

    def path_changed(self, destination: bytes, now: float) -> None:
        """Note that recently sent data to the peer may be lost."""

    def reset_peer(self, destination: bytes, now: float) -> None:
        """Close the connections of a removed peer."""
