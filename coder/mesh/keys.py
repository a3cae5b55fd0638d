"""Public API: the keys of nodes and relays. Imports no event loop."""

from __future__ import annotations

from coder.mesh.core.crypto.keys import PrivateKey, PublicKey

__all__ = ["PrivateKey", "PublicKey"]
