"""An installed peer: what is known of it, its tunnel and its paths, side by side.

Lives here: the record. Nobody but the endpoint and its parts changes one.
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
    """What the coordinator says about a peer."""

    public_key: PublicKey
    disco_key: PublicKey
    """All zero: the peer does not speak disco."""
    allowed_ips: tuple[bytes, ...]
    """Its overlay addresses, 16 bytes each."""
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
    """None: the peer speaks no disco."""
    last_ping: tuple[bytes, Address | int] | None = None
    """Transaction and origin of the last ping answered: repeats are not answered again."""
    relayed_bytes: int = 0
    direct_bytes: int = 0
    seen_state: PathState = PathState.RELAYED
    """Of its selector, when the stack was last told."""
    seen_carries: int = STANDARD
    """What its direct path carries, when the stack was last told."""
    largest: int = 0
    """Bytes of the largest datagram that may take it."""
