"""JSON shapes of the programs a server offers below /bin, shared by server and client."""

from __future__ import annotations

from coder.api.base.struct import ApiStruct


class Program(ApiStruct):
    """Agent and command line for one platform."""

    name: str
    """Name of the file below /bin."""
    os: str
    architecture: str
    available: bool
    remedy: str
    """Instructions to build a missing program; "" if it is available."""
