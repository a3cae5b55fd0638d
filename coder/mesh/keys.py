"""Part of the front door: the keys nodes and relays are known by. Costs no event loop to import."""

from __future__ import annotations

from coder.mesh.core.crypto.keys import PrivateKey, PublicKey

__all__ = ["PrivateKey", "PublicKey"]
