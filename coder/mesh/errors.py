"""Errors of a node's public API.

Lives here: errors outside of the core. The root, and the errors of the sans-I/O core, live in `core/errors.py`.
"""

from __future__ import annotations

from coder.mesh.core.errors import CryptoError, MeshError, WireError

__all__ = [
    "CryptoError",
    "MeshError",
    "NodeClosedError",
    "RelayError",
    "UdpUnavailableError",
    "UnknownPeerError",
    "UnreachableError",
    "WireError",
]


class UnknownPeerError(MeshError):
    """No installed peer owns this address or key."""

    def __init__(self, message: str) -> None:
        super().__init__("unknown_peer", message)


class UnreachableError(MeshError):
    """The peer did not answer, or no path to it exists."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__("unreachable", message, hint)


class RelayError(MeshError):
    """A relay connection could not be opened, or violated the protocol."""

    def __init__(self, message: str, hint: str = "", *, retry_after: float = 0.0) -> None:
        super().__init__("relay_failed", message, hint)
        self.retry_after = retry_after
        """Seconds for which the relay wants no other attempt; 0 if it did not say."""


class NodeClosedError(MeshError):
    """The node is shut down."""

    def __init__(self) -> None:
        super().__init__("node_closed", "the mesh node is closed")


class UdpUnavailableError(MeshError):
    """No UDP socket could be opened in any address family."""

    def __init__(self, message: str) -> None:
        super().__init__("udp_unavailable", message)
