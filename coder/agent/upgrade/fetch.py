"""Download of the server's program for this machine, verified.

Only a permanent fault of these bytes on this machine is a verdict (`UpgradeRefusedError`). Every other failure may pass
(a server whose replicas have two versions, a full disk, a slow start) and is retried (`UpgradeNotNowError`, or the
error of the network or the disk).
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

import trio

from coder.agent.disk import DISK_TIMEOUT, on_disk
from coder.agent.upgrade.checks import check_program, check_signature, digest_of
from coder.agent.upgrade.folder import NO_FOLLOW, ensure_private, link_others, locked_in_thread, program_path
from coder.agent.upgrade.outcomes import UpgradeNotNowError, UpgradeRefusedError
from coder.base.atomic_file import BINARY
from coder.base.files.private_files import replace_file, when_free
from coder.net.errors import NetError
from coder.net.http1 import HttpClient

MAX_SIZE = 512 << 20
"""Bytes of a program (ours); the largest we build has a fifth of it."""
STALL_TIMEOUT = 60.0
"""Seconds (ours) until a download begins, and between two chunks of it."""
DOWNLOAD_TIMEOUT = 2 * 3600.0
"""Seconds (ours) for the whole download, enough for a line of 128 kbit/s."""
_CHECKSUM = re.compile(r"([0-9a-f]{64})  \S+\n?")


async def fetch_program(
    client: HttpClient, name: str, version: str, digest: str, folder: Path, keyring: Path | None
) -> Path:
    """Return the verified program's file.

    Raises UpgradeRefusedError and UpgradeNotNowError, NetError or HttpError of the download, OSError of the folder.
    """
    path = program_path(folder, digest)
    await on_disk(ensure_private, folder)
    async with locked_in_thread(folder):
        await on_disk(_tidy, folder)
        if not await on_disk(path.is_file) or await digest_of(path) != digest:
            await _download(client, name, path, digest)
        try:
            if keyring is not None:
                await _check_signature(client, name, path, keyring)
            await check_program(path, version)
        except UpgradeRefusedError as error:
            if await digest_of(path) != digest:
                raise UpgradeNotNowError("it was changed while it was checked") from error
            await on_disk(link_others, folder)  # a hundred megabytes that nothing will start
            raise
        await on_disk(link_others, folder, path)
    return path


def _tidy(folder: Path) -> None:
    """Remove the files of downloads that were killed; one that another program holds open stays until the next."""
    for leftover in folder.glob("*.part"):
        with suppress(PermissionError):
            leftover.unlink(missing_ok=True)


async def server_digest(client: HttpClient, name: str) -> str:
    """Return the SHA-256 of the server's program, in hex. Raises UpgradeNotNowError, NetError or HttpError."""
    answer = await client.request("GET", f"/bin/{name}.sha256", expect=(200,))
    match = _CHECKSUM.fullmatch(answer.body[:512].decode("latin-1"))
    if match is None:
        raise UpgradeNotNowError("the server's checksum is malformed")
    return match[1]


async def _download(client: HttpClient, name: str, path: Path, digest: str) -> None:
    """Download to a temporary name first: a file with the final name is complete."""
    partial_path = path.with_name(f".{path.name}.{os.urandom(8).hex()}.part")
    try:
        with trio.move_on_after(DOWNLOAD_TIMEOUT) as scope:
            await _receive(client, name, await on_disk(_create, partial_path))
        if scope.cancelled_caught:
            raise NetError("timeout", f"/bin/{name} was not downloaded within {DOWNLOAD_TIMEOUT:g} s")
        if await digest_of(partial_path) != digest:
            raise UpgradeNotNowError("its checksum differs from the server's")
        await on_disk(replace_file, partial_path, path)  # an antivirus reads a new program first
    finally:
        await _delete_file(partial_path)


def _create(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW | BINARY, 0o700), "wb")


async def _delete_file(path: Path) -> None:
    """Delete a file, even when cancelled, unless the disk does not answer: the next download removes leftovers."""
    with trio.move_on_after(DISK_TIMEOUT, shield=True):
        await on_disk(when_free, partial(path.unlink, missing_ok=True))


async def _receive(client: HttpClient, name: str, file: BinaryIO) -> None:
    size = 0
    try:
        async with client.stream("GET", f"/bin/{name}", head_timeout=STALL_TIMEOUT) as answer:
            if answer.status != 200 or answer.headers.get("content-encoding"):
                raise NetError("protocol", f"/bin/{name} was answered with status {answer.status}")
            async with aclosing(answer.chunks()) as chunks:
                while chunk := await _next(chunks, name):
                    size += len(chunk)
                    if size > MAX_SIZE:
                        raise UpgradeNotNowError(f"it is larger than {MAX_SIZE >> 20} MiB")
                    await on_disk(file.write, chunk)
        await on_disk(file.flush)
        await on_disk(os.fsync, file.fileno())
    finally:
        with trio.move_on_after(DISK_TIMEOUT, shield=True):
            await on_disk(file.close)


async def _next(chunks: AsyncIterator[bytes], name: str) -> bytes:
    """Return the next chunk, empty at the end."""
    with trio.move_on_after(STALL_TIMEOUT):
        return await anext(chunks, b"")
    raise NetError("timeout", f"/bin/{name} stalled for {STALL_TIMEOUT:g} s")


async def _check_signature(client: HttpClient, name: str, path: Path, keyring: Path) -> None:
    answer = await client.request("GET", f"/bin/{name}.asc", expect=(200, 404))
    if answer.status == 404:
        raise UpgradeNotNowError("it is not signed, and --self-upgrade-keyring requires a signature")
    signature = path.with_name(f".{path.name}.{os.urandom(8).hex()}.part")
    try:
        await on_disk(signature.write_bytes, answer.body)
        await check_signature(signature, path, keyring)
    finally:
        await _delete_file(signature)
