"""The addresses of this machine, for those who only want to know them: part of the mesh's front."""

from coder.mesh.drivers.interfaces import local_addresses

__all__ = ["local_addresses"]
