"""Public API: the map of relays as values. Imports no event loop."""

from __future__ import annotations

from coder.mesh.core.paths.derpmap import DEFAULT_DERP_PORT, DEFAULT_STUN_PORT, DerpMap, DerpNode, DerpRegion

__all__ = ["DEFAULT_DERP_PORT", "DEFAULT_STUN_PORT", "DerpMap", "DerpNode", "DerpRegion"]
