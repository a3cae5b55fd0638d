"""asyncssh without what we never use: `from coder.net.ssh_library import asyncssh`.

Importing it plainly costs a third of a short command's time on X.509 certificates, on umac, and on looking for liboqs
with programs of the compiler. Each is optional to asyncssh and missing on most machines anyway; we say so up front.

And with one defect mended: a forwarded connection whose target speaks first (SSH, MySQL, SMTP, gpg-agent) loses what
the target says before asyncssh has joined both ends: in one connection of ten on loopback.
"""

from __future__ import annotations

import ctypes.util
import sys
from typing import Any

_UNUSED = ("asyncssh.crypto.x509", "asyncssh.crypto.umac")


def _nothing(name: str) -> str | None:  # noqa: ARG001 - the signature of what it stands for
    return None


def _load() -> Any:
    if "asyncssh" in sys.modules:
        return sys.modules["asyncssh"]
    for name in _UNUSED:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]  # None makes the import fail, as documented
    find = ctypes.util.find_library
    ctypes.util.find_library = _nothing
    try:
        import asyncssh as loaded
    finally:
        ctypes.util.find_library = find
    return loaded


def _keep_early_bytes() -> None:
    """Makes forwarders hold what comes before they have somewhere to put it, and the end of it, too."""
    from asyncssh.forward import SSHForwarder

    plain_made, plain_peer = SSHForwarder.connection_made, SSHForwarder.set_peer
    plain_write, plain_eof = SSHForwarder.write, SSHForwarder.write_eof

    def write(self: Any, data: bytes) -> None:
        if self._transport is None and self._peer is not None:
            self.__dict__.setdefault("early", []).append(data)
        else:
            plain_write(self, data)

    def write_eof(self: Any) -> None:
        if self._transport is None and self._peer is not None:
            self.early_eof = True
        else:
            plain_eof(self)

    def connection_made(self: Any, transport: Any) -> None:
        plain_made(self, transport)
        for data in self.__dict__.pop("early", ()):
            plain_write(self, data)
        if self.__dict__.pop("early_eof", False):
            plain_eof(self)

    def set_peer(self: Any, peer: Any) -> None:
        plain_peer(self, peer)
        if self._inpbuf:
            waiting, self._inpbuf = self._inpbuf, b""
            peer.write(waiting)
        if self._eof_received:
            peer.write_eof()

    for name, method in (
        ("write", write),
        ("write_eof", write_eof),
        ("connection_made", connection_made),
        ("set_peer", set_peer),
    ):
        setattr(SSHForwarder, name, method)


_load()
_keep_early_bytes()

import asyncssh  # noqa: E402 - loaded above; here for its types

__all__ = ["asyncssh"]
