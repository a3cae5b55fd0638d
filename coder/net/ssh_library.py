"""asyncssh without its unused parts: `from coder.net.ssh_library import asyncssh`.

A plain import costs a third of a short command's time: for X.509 certificates, for umac, and for searching liboqs with
programs of the compiler. Each is optional to asyncssh and missing on most machines anyway; this module disables them up
front.

Our client uses neither SFTP nor scp, a tenth of the rest, and most agents see the first transfer late or never. Both
are loaded when one of their names is taken from the package, called or derived from.

The module also fixes a defect: a forwarded connection whose target sends first (SSH, MySQL, SMTP, gpg-agent) loses the
data that arrives before asyncssh has joined both ends: in one connection of ten on loopback. It also replaces a new
silence timer per packet by one timer per connection.
"""

from __future__ import annotations

import ctypes.util
import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

    from asyncssh.connection import SSHConnection
    from asyncssh.forward import SSHForwarder

    class _Forwarder(SSHForwarder):
        early_eof: bool

    class _TimedConnection(SSHConnection):
        heard_at: float


_UNUSED = ("asyncssh.crypto.x509", "asyncssh.crypto.umac")
_LAZY = ("asyncssh.sftp", "asyncssh.scp")
CONSTANTS = {"MIN_SFTP_VERSION": 3, "SEEK_SET": 0, "SEEK_CUR": 1, "SEEK_END": 2}
"Names there that are neither class nor function, and are default values of arguments."


def _no_library(name: str) -> str | None:  # noqa: ARG001 - the signature of what it stands for
    return None


class _LazyName(type):
    """Placeholder for a class or function of a module that is loaded when it is called or derived from.

    A class itself, because asyncssh's annotations are evaluated and require one.
    """

    origin: str

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, object]) -> type:
        if any(isinstance(base, _LazyName) for base in bases):
            bases = tuple(base.real() if isinstance(base, _LazyName) else base for base in bases)
            return type(bases[0])(name, bases, namespace)
        return super().__new__(cls, name, bases, namespace)

    def real(cls) -> type:
        loaded: type = getattr(importlib.import_module(cls.origin), cls.__name__)
        return loaded

    def __call__(cls, *arguments: object, **named: object) -> object:
        return cls.real()(*arguments, **named)

    def __instancecheck__(cls, value: object) -> bool:
        return cls.origin in sys.modules and isinstance(value, cls.real())


class _LazyModule(ModuleType):
    """Placeholder for a module in which every name exists."""

    def __getattr__(self, name: str) -> int | type:
        if name.startswith("__"):
            raise AttributeError(name)
        return CONSTANTS[name] if name in CONSTANTS else _LazyName(name, (), {"origin": self.__name__})


def _load() -> None:
    if "asyncssh" in sys.modules:
        return
    for name in _UNUSED:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]  # None makes the import fail, as documented
    for name in _LAZY:
        sys.modules[name] = _LazyModule(name)
    find = ctypes.util.find_library
    ctypes.util.find_library = _no_library
    try:
        loaded = importlib.import_module("asyncssh")
    finally:
        ctypes.util.find_library = find
        for name in _LAZY:
            del sys.modules[name]  # later imports load the real module
    _load_on_access(loaded)


def _load_on_access(package: ModuleType) -> None:
    """Load SFTP and scp at the first access to one of their names; the package itself then has the real objects."""
    later = {name: value.origin for name, value in vars(package).items() if isinstance(value, _LazyName)}
    for name in later:
        delattr(package, name)

    def get(name: str) -> object:
        if name not in later and f"asyncssh.{name}" not in _LAZY:
            raise AttributeError(f"module 'asyncssh' has no attribute {name!r}")
        for module in _LAZY:
            importlib.import_module(module)
        for each, origin in later.items():  # after both: the module scp hides the function
            setattr(package, each, getattr(sys.modules[origin], each))
        loaded: object = getattr(package, name)
        return loaded

    package.__getattr__ = get  # type: ignore[method-assign]


def _keep_early_bytes() -> None:
    """Make forwarders buffer data, and EOF, that arrive before their peer is connected."""
    from asyncssh.forward import SSHForwarder

    plain_made, plain_peer = SSHForwarder.connection_made, SSHForwarder.set_peer
    plain_write, plain_eof = SSHForwarder.write, SSHForwarder.write_eof

    def write(self: _Forwarder, data: bytes) -> None:
        if self._transport is None and self._peer is not None:
            self.__dict__.setdefault("early", []).append(data)
        else:
            plain_write(self, data)

    def write_eof(self: _Forwarder) -> None:
        if self._transport is None and self._peer is not None:
            self.early_eof = True
        else:
            plain_eof(self)

    def connection_made(self: _Forwarder, transport: asyncio.BaseTransport) -> None:
        plain_made(self, transport)
        for data in self.__dict__.pop("early", ()):
            plain_write(self, data)
        if self.__dict__.pop("early_eof", False):
            plain_eof(self)

    def set_peer(self: _Forwarder, peer: SSHForwarder) -> None:
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


def _keep_one_timer() -> None:
    """Make connections record when they heard from the peer.

    One keepalive timer per connection checks that when it expires, instead of a new timer for every packet.
    """
    from asyncssh.connection import SSHConnection

    plain = SSHConnection._keepalive_timer_callback
    if not hasattr(SSHConnection, "_reset_keepalive_timer"):
        raise ImportError("asyncssh has renamed its method for received packets")

    def _reset_keepalive_timer(self: _TimedConnection) -> None:
        if self._auth_complete and self._keepalive_interval:
            self.heard_at = self._loop.time()
            if self._keepalive_timer is None:
                self._set_keepalive_timer()

    def _keepalive_timer_callback(self: _TimedConnection) -> None:
        rest = self.heard_at + self._keepalive_interval - self._loop.time()
        if rest > 0:
            self._keepalive_timer = self._loop.call_later(rest, self._keepalive_timer_callback)
        else:
            plain(self)

    for name, value in (
        ("heard_at", -float("inf")),
        ("_reset_keepalive_timer", _reset_keepalive_timer),
        ("_keepalive_timer_callback", _keepalive_timer_callback),
    ):
        setattr(SSHConnection, name, value)


_load()
_keep_early_bytes()
_keep_one_timer()

import asyncssh  # noqa: E402 - loaded above; here for its types

__all__ = ["asyncssh"]
