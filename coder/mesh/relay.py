"""Public API: running, reaching and testing a relay."""

from __future__ import annotations

from coder.mesh.drivers.derp_mesh import keep_meshed
from coder.mesh.drivers.derp_server import DerpServer
from coder.mesh.drivers.relay_exchange import exchange, keep_link
from coder.mesh.drivers.stun import serve_stun
from coder.mesh.drivers.transport import DerpDialer, DerpTransport

__all__ = ["DerpDialer", "DerpServer", "DerpTransport", "exchange", "keep_link", "keep_meshed", "serve_stun"]
