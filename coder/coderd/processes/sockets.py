"""Listening sockets that the processes share, and the folder of their own doors."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Sequence
from pathlib import Path

from coder.appproxy.http.listening_sockets import bind_sockets, display_address
from coder.appproxy.http.served_certificates import tls_context
from coder.coderd.config.settings import ServerConfig
from coder.coderd.processes.forked import BoundSocket

_MAX_PATH = 90
"""Bytes of the folder's path."""


def new_folder() -> Path:
    """Return a new folder for the processes' doors, whose paths must be shorter than the kernel's 108 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="coder-processes-"))
    if len(os.fsencode(folder)) > _MAX_PATH:
        folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix="coder-processes-", dir="/tmp"))
    return folder


def check_tls(config: ServerConfig) -> None:
    """Raises CoderError for certificates that cannot be used."""
    if config.tls_enable:
        tls_context(config)


def bind_all(config: ServerConfig, inherited: Sequence[tuple[str, str, int]]) -> list[BoundSocket]:
    """Return the sockets of all configured addresses: inherited ones (URL, setting, descriptor) where the setting is
    the same. Raises CoderError as `open_listeners`."""
    tls = tls_context(config) if config.tls_enable else None
    wanted = [("http", config.http_address, None)] if config.http_address else []
    addresses = [*wanted, *([("https", config.tls_address, tls)] if tls is not None else [])]
    known: dict[str, list[BoundSocket]] = {}
    kept: set[int] = set()
    results: list[BoundSocket] = []
    for url, setting, descriptor in inherited:
        taken = socket.socket(fileno=descriptor)
        os.set_inheritable(descriptor, False)
        taken.setblocking(False)
        known.setdefault(setting, []).append(BoundSocket(url, setting, taken))
    for scheme, address, context in addresses:
        setting = f"{scheme}://{address}"
        for bound in known.get(setting, ()):
            results.append(BoundSocket(bound.url, setting, bound.socket, context))
            kept.add(bound.socket.fileno())
        if setting not in known:
            for opened in bind_sockets(address):
                url = f"{scheme}://{display_address(opened.getsockname())}"
                results.append(BoundSocket(url, setting, opened, context))
    for bounds in known.values():
        for bound in bounds:
            if bound.socket.fileno() not in kept:
                bound.socket.close()
    return results
