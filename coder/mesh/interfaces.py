"""Public API: the addresses of this machine."""

from coder.mesh.drivers.interfaces import local_addresses

__all__ = ["local_addresses"]
