"""Listening sockets that the processes share, and the folder of their own doors."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import stat
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from coder.appproxy.http.listening_sockets import BACKLOG, bind_sockets, display_address
from coder.appproxy.http.served_certificates import tls_context
from coder.base.errors import CoderError
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


def open_door(folder: Path, number: int) -> tuple[socket.socket, Path, Path]:
    """Return the listening socket of a process, its path, and the folder: a new one when the former is gone, which
    programs that clean temporary folders remove. Raises CoderError when the system refuses."""
    try:
        folder = folder if _is_own(folder) else new_folder()
        path = folder / f"{number}.sock"
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(str(path))
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
            remove_door(str(path))
            raise
    except OSError as error:
        raise CoderError("start_failed", f"no socket can be opened in {folder}: {error.strerror}") from error
    listener.setblocking(False)
    return listener, path, folder


def _is_own(folder: Path) -> bool:
    try:
        info = folder.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(info.st_mode) and info.st_uid == os.geteuid()


def remove_door(path: str) -> None:
    """Remove the socket of a process that has ended; on a disk that refuses it stays."""
    with contextlib.suppress(OSError):
        Path(path).unlink(missing_ok=True)


def check_addresses(config: ServerConfig, known: Collection[str] | None) -> None:
    """Require usable certificates, and addresses that are `known` or can be bound now; None leaves the addresses out.
    Raises CoderError as `bind_all`."""
    addresses = _configured(config)
    for setting, address, _ in addresses:
        if known is not None and setting not in known:
            for opened in bind_sockets(address):
                opened.close()


def _configured(config: ServerConfig) -> list[tuple[str, str, ssl.SSLContext | None]]:
    """Return setting, address and TLS of all addresses. Raises CoderError for certificates that cannot be used."""
    tls = tls_context(config) if config.tls_enable else None
    plain = [(f"http://{config.http_address}", config.http_address, None)] if config.http_address else []
    return [*plain, *([(f"https://{config.tls_address}", config.tls_address, tls)] if tls is not None else [])]


def bind_or_keep(
    config: ServerConfig, inherited: Sequence[tuple[str, str, int]]
) -> tuple[list[BoundSocket], CoderError | None]:
    """Return the sockets of all configured addresses, or those of the former program and why the configured ones
    cannot be used. Raises CoderError as `open_listeners` when there was no former program."""
    former = inherited_sockets(inherited)
    try:
        return bind_all(config, former), None
    except CoderError as error:
        if not former:
            raise
        return former, error


def bind_all(config: ServerConfig, inherited: Sequence[BoundSocket]) -> list[BoundSocket]:
    """Return the sockets of all configured addresses: inherited ones where the setting is the same; others of those are
    closed. Raises CoderError as `open_listeners`, and closes nothing then."""
    addresses = _configured(config)
    known: dict[str, list[BoundSocket]] = {}
    kept: set[int] = set()
    results: list[BoundSocket] = []
    for bound in inherited:
        known.setdefault(bound.address, []).append(bound)
    for setting, address, context in addresses:
        for bound in known.get(setting, ()):
            results.append(BoundSocket(bound.url, setting, bound.socket, context))
            kept.add(bound.socket.fileno())
        if setting not in known:
            for opened in bind_sockets(address):
                url = f"{setting.partition(':')[0]}://{display_address(opened.getsockname())}"
                results.append(BoundSocket(url, setting, opened, context))
    for bounds in known.values():
        for bound in bounds:
            if bound.socket.fileno() not in kept:
                bound.socket.close()
    return results


def inherited_sockets(inherited: Sequence[tuple[str, str, int]]) -> list[BoundSocket]:
    """Return the sockets that the former program of this process left (URL, setting, descriptor), without TLS."""
    results = []
    for url, setting, descriptor in inherited:
        taken = socket.socket(fileno=descriptor)
        os.set_inheritable(descriptor, False)
        taken.setblocking(False)
        results.append(BoundSocket(url, setting, taken))
    return results
