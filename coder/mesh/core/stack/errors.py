"""Errors of overlay sockets."""

from __future__ import annotations

from coder.mesh.core.errors import MeshError

_TEXTS = {
    "reset": "the peer reset the connection",
    "refused": "the peer refused the connection",
    "timeout": "the peer did not answer",
    "aborted": "the connection was aborted here",
    "unreachable": "the peer was removed",
    "closed": "the connection is closed for writing",
    "port_in_use": "the port is in use",
    "no_ports": "no free port is left",
}


class StackError(MeshError):
    """An error of a socket.

    `code` is reset, refused, timeout, aborted, unreachable, closed, port_in_use, no_ports or impossible.
    """

    def __init__(self, code: str, message: str = "") -> None:
        super().__init__(code, message or _TEXTS.get(code, code))
