"""The TCP/IP stack as the endpoint sees it; `stack/interface.py` has one."""

from __future__ import annotations

from typing import Protocol

from coder.mesh.core.wire.batch import Batch, TxBuf


class IpStack(Protocol):
    """Inner packets in and out, by overlay address (16 bytes)."""

    def input_batch(self, packets: list[bytes], now: float) -> None:
        """Take inner packets that arrived."""

    @property
    def idle(self) -> bool:
        """Whether neither `emit` nor `take_output` has anything."""

    def emit(self, txbuf: TxBuf, now: float) -> Batch | None:
        """Fill the superbuffer with data for one peer."""

    def take_output(self, now: float) -> list[tuple[bytes, list[bytes]]]:
        """All other packets, per destination."""

    def next_wake(self) -> float | None:
        """When `on_timer` wants to be called."""

    def on_timer(self, now: float) -> None:
        """Run what is due."""

    def pause(self, destination: bytes) -> None:
        """No bulk data to this peer until `resume`."""

    def resume(self, destination: bytes) -> None:
        """Undo `pause`."""

    def set_mtu_to(self, destination: bytes, mtu: int | None) -> None:
        """Size packets to this peer differently; None: as usual."""

    def path_changed(self, destination: bytes, now: float) -> None:
        """What was sent to the peer lately may be lost."""

    def reset_peer(self, destination: bytes, now: float) -> None:
        """The peer is gone."""
