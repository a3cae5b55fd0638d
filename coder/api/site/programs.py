"""JSON shapes of the programs a server hands out below /bin: what server and client both speak."""

from __future__ import annotations

from coder.api.base.struct import ApiStruct


class Program(ApiStruct):
    """Agent and command line for one platform."""

    name: str
    "The file below /bin."
    os: str
    architecture: str
    available: bool
    remedy: str
    'How one that is not available is made; "" for one that is.'
