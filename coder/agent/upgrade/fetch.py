"""Getting the server's program for this machine, verified.

Only what cannot be otherwise for these bytes on this machine is a verdict (`UpgradeRefusedError`). Everything else may
pass - a server whose replicas are of two versions, a full disk, a slow start - and is looked at again
(`UpgradeNotNowError`, or the error of the network or the disk).
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import BinaryIO

import trio

from coder.agent.disk import LOOK_TIME, on_disk
from coder.agent.upgrade.checks import check_program, check_signature, digest_of
from coder.agent.upgrade.folder import link_others, locked_in_thread, make_own, program_path
from coder.agent.upgrade.outcomes import UpgradeNotNowError, UpgradeRefusedError
from coder.net.errors import NetError
from coder.net.http1 import HttpClient

MOST = 512 << 20
"""Ours: bytes of a program; the largest we build has a fifth of it."""
SILENCE = 60.0
"""Ours: seconds until a download begins, and between two pieces of it."""
DOWNLOAD = 2 * 3600.0
"""Ours: seconds for all of it, with which a line of 128 kbit/s gets along."""
_CHECKSUM = re.compile(r"([0-9a-f]{64})  \S+\n?")


async def fetch_program(
    client: HttpClient, name: str, version: str, digest: str, folder: Path, keyring: Path | None
) -> Path:
    """The verified program's file.

    Raises UpgradeRefusedError and UpgradeNotNowError, NetError or HttpError of the way to it, OSError of the folder.
    """
    path = program_path(folder, digest)
    await on_disk(make_own, folder)
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
            await on_disk(link_others, folder)  # a hundred megabytes that nobody will start
            raise
        await on_disk(link_others, folder, path)
    return path


def _tidy(folder: Path) -> None:
    """After downloads that were killed."""
    for left in folder.glob("*.part"):
        left.unlink(missing_ok=True)


async def server_digest(client: HttpClient, name: str) -> str:
    """SHA-256 of the server's program, in hex. Raises UpgradeNotNowError, NetError or HttpError."""
    answer = await client.request("GET", f"/bin/{name}.sha256", expect=(200,))
    found = _CHECKSUM.fullmatch(answer.body[:512].decode("latin-1"))
    if found is None:
        raise UpgradeNotNowError("the server's checksum is none")
    return found[1]


async def _download(client: HttpClient, name: str, path: Path, digest: str) -> None:
    """To a name of its own first: what has the final name is whole."""
    beside = path.with_name(f".{path.name}.{os.urandom(8).hex()}.part")
    try:
        with trio.move_on_after(DOWNLOAD) as scope:
            await _receive(client, name, await on_disk(_create, beside))
        if scope.cancelled_caught:
            raise NetError("timeout", f"/bin/{name} did not come within {DOWNLOAD:g} s")
        if await digest_of(beside) != digest:
            raise UpgradeNotNowError("its checksum is not the one the server names")
        await on_disk(beside.replace, path)
    finally:
        await _forget(beside)


def _create(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o700), "wb")


async def _forget(path: Path) -> None:
    """Even cancelled, unless the disk does not answer: what is left goes before the next download."""
    with trio.move_on_after(LOOK_TIME, shield=True):
        await on_disk(partial(path.unlink, missing_ok=True))


async def _receive(client: HttpClient, name: str, file: BinaryIO) -> None:
    size = 0
    try:
        async with client.stream("GET", f"/bin/{name}", head_timeout=SILENCE) as answer:
            if answer.status != 200 or answer.headers.get("content-encoding"):
                raise NetError("protocol", f"/bin/{name} was answered with status {answer.status}")
            async with aclosing(answer.chunks()) as chunks:
                while chunk := await _next(chunks, name):
                    size += len(chunk)
                    if size > MOST:
                        raise UpgradeNotNowError(f"it is larger than {MOST >> 20} MiB")
                    await on_disk(file.write, chunk)
        await on_disk(file.flush)
        await on_disk(os.fsync, file.fileno())
    finally:
        with trio.move_on_after(LOOK_TIME, shield=True):
            await on_disk(file.close)


async def _next(chunks: AsyncIterator[bytes], name: str) -> bytes:
    """Empty at the end."""
    with trio.move_on_after(SILENCE):
        return await anext(chunks, b"")
    raise NetError("timeout", f"/bin/{name} stopped coming for {SILENCE:g} s")


async def _check_signature(client: HttpClient, name: str, path: Path, keyring: Path) -> None:
    answer = await client.request("GET", f"/bin/{name}.asc", expect=(200, 404))
    if answer.status == 404:
        raise UpgradeNotNowError("it is not signed, and --self-upgrade-keyring wants a signature")
    signature = path.with_name(f".{path.name}.{os.urandom(8).hex()}.part")
    try:
        await on_disk(signature.write_bytes, answer.body)
        await check_signature(signature, path, keyring)
    finally:
        await _forget(signature)
