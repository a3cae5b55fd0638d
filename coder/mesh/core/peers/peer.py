"""An installed peer: its parameters, its tunnel and its paths.

Lives here: the record. Only the endpoint and its parts change it.
"""

from __future__ import annotations

from dataclasses import dataclass

from coder.mesh.core.crypto.box import SharedBox
from coder.mesh.core.crypto.keys import PublicKey
from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.paths.mtu import STANDARD
from coder.mesh.core.paths.probing import PeerPaths
from coder.mesh.core.paths.selector import PathState
from coder.mesh.core.tunnel.peer import Tunnel


@dataclass(frozen=True, slots=True)
class PeerParameters:
    """Parameters of a peer from the coordinator."""

    public_key: PublicKey
    disco_key: PublicKey
    """All zero: the peer has no disco."""
    allowed_ips: tuple[bytes, ...]
    """The peer's overlay addresses, 16 bytes each."""
    home_derp: int = 0
    endpoints: tuple[Address, ...] = ()
    keepalive: bool = False


@dataclass(slots=True, eq=False)
class Peer:
    """An installed peer."""

    config: PeerParameters
    tunnel: Tunnel
    paths: PeerPaths
    box: SharedBox | None
    """Box for disco messages; None: the peer has no disco."""
    last_ping: tuple[bytes, Address | int] | None = None
    """Transaction and source of the last ping answered: duplicates are not answered again."""
    relayed_bytes: int = 0
    direct_bytes: int = 0
    seen_state: PathState = PathState.RELAYED
    """State of its selector when the stack was last updated."""
    seen_carries: int = STANDARD
    """Bytes its direct path carried when the stack was last updated."""
    largest: int = 0
    """Bytes of the largest datagram that may use the path."""
