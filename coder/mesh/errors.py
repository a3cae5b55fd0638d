"""What can go wrong for somebody who uses the mesh. Foreign bytes have their own error, `core.wire` owns it."""

from __future__ import annotations


class MeshError(Exception):
    """Root of the mesh's errors.

    `code` is a stable word for programs; the message is one line for people.
    """

    code = "mesh"


class UnknownPeerError(MeshError):
    """No installed peer owns this address or key."""

    code = "unknown_peer"


class UnreachableError(MeshError):
    """The peer did not answer, or no path to it exists."""

    code = "unreachable"


class RelayError(MeshError):
    """A relay connection could not be made or broke during its handshake."""

    code = "relay_failed"


class NodeClosedError(MeshError):
    """The node is shut down."""

    code = "node_closed"


class UdpUnavailableError(MeshError):
    """No UDP socket could be opened in any address family."""

    code = "udp_unavailable"
