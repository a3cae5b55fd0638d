"""Public API: network checks without opening a node."""

from __future__ import annotations

from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.paths.netcheck import HomeChooser, Mappings
from coder.mesh.drivers.interfaces import Interface, list_interfaces
from coder.mesh.drivers.portmap import PortMapper
from coder.mesh.drivers.stun import StunRound, resolve

__all__ = ["Address", "HomeChooser", "Interface", "Mappings", "PortMapper", "StunRound", "list_interfaces", "resolve"]
