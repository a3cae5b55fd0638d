"""A terraform for machines that have none: one release, fetched once into the cache, checked before it is used.

The digest comes from the release's own list, over TLS; the signature on that list is not looked at. Whoever wants
another source (a mirror inside) names it, whoever wants no downloads turns them off (provisionerd/config.py).
"""

from __future__ import annotations

import hashlib
import io
import os
import platform
import re
import secrets
import shutil
import sys
import tempfile
import zipfile
import zlib
from pathlib import Path

import trio

from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.net.http1 import HttpClient
from coder.net.policy import DialPolicy
from coder.provisionerd.terraform.file_lock import locked

VERSION = "1.11.4"
"The release everything here was tested with."
_MAX_ARCHIVE = 200 << 20
_MAX_LIST = 1 << 20
_MAX_PROGRAM = 600 << 20
_TIMEOUT = 600.0
"Seconds for the archive, on a slow line."
_UNFINISHED = ".unfinished-"
_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64", "armv7l": "arm"}

_log = get_logger("provisionerd.terraform")


class DownloadFailed(CoderError):  # noqa: N818 - names the situation
    """There is no terraform to be had. The message says why."""

    def __init__(self, message: str) -> None:
        super().__init__("terraform_download", message)


async def download(url: str, folder: Path, version: str = VERSION) -> Path:
    """The program of `version` below `folder`, fetched from the release site at `url` when it is not there.

    Raises DownloadFailed. Several processes may ask at once: one fetches, the others wait.
    """
    program = folder / f"terraform-{version}"
    if program.exists():
        return program
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        async with locked(folder / "terraform.lock"):
            if not program.exists():
                _log.info("terraform is not installed; fetching it", version=version, source=url)
                await fetch_program(url, version, _own_platform(), program)
    except OSError as problem:
        raise DownloadFailed(f"{folder}: {problem.strerror or problem}") from problem
    return program


async def fetch_program(url: str, version: str, wanted_platform: str, program: Path) -> None:
    """Fetches, checks and unpacks one, e.g. for linux_amd64. Raises DownloadFailed."""
    archive, wanted = await _fetch(url, version, wanted_platform)
    try:
        program.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        # Hashing and unpacking take a second: in a server everybody else would wait for it.
        await trio.to_thread.run_sync(_install, archive, wanted, program)
    except OSError as problem:
        raise DownloadFailed(f"{program}: {problem.strerror or problem}") from problem


def _own_platform() -> str:
    system = {"darwin": "darwin", "win32": "windows"}.get(sys.platform, "linux")
    machine = platform.machine().lower()
    architecture = _ARCHITECTURES.get(machine)
    if architecture is None:
        raise DownloadFailed(f"there is no terraform for {machine}")
    return f"{system}_{architecture}"


async def _fetch(url: str, version: str, wanted_platform: str) -> tuple[bytes, str]:
    """The archive and the digest it should have."""
    name = f"terraform_{version}_{wanted_platform}.zip"
    base = f"/{version}"
    try:
        async with HttpClient(DialPolicy(url)) as http:
            listed = await http.request("GET", f"{base}/terraform_{version}_SHA256SUMS", limit=_MAX_LIST)
            wanted = _digest_of(listed.body.decode("ascii", "replace"), name)
            answer = await http.request("GET", f"{base}/{name}", timeout=_TIMEOUT, limit=_MAX_ARCHIVE)
    except CoderError as problem:
        raise DownloadFailed(f"{url}: {problem.message}") from problem
    return answer.body, wanted


def _digest_of(listed: str, name: str) -> str:
    for line in listed.splitlines():
        digest, _, found = line.partition("  ")
        if found.strip() == name and re.fullmatch(r"[0-9a-f]{64}", digest):
            return digest
    raise DownloadFailed(f"the release's list of checksums has no {name}")


def _install(archive: bytes, wanted: str, program: Path) -> None:
    """Unpacks next to the final name and moves it there: nobody sees half a program. Blocks."""
    if not secrets.compare_digest(hashlib.sha256(archive).hexdigest(), wanted):
        raise DownloadFailed("the archive is not what the release's list of checksums says")
    for left in program.parent.glob(f"{_UNFINISHED}*"):
        left.unlink(missing_ok=True)  # of a process that was killed here; the lock is ours
    number, name = tempfile.mkstemp(prefix=_UNFINISHED, dir=program.parent)
    unfinished = Path(name)
    try:
        with os.fdopen(number, "wb") as file, zipfile.ZipFile(io.BytesIO(archive)) as packed:
            member = next((one for one in packed.infolist() if one.filename in {"terraform", "terraform.exe"}), None)
            if member is None or member.file_size > _MAX_PROGRAM:
                raise DownloadFailed("the archive has no terraform in it")
            with packed.open(member) as source:
                shutil.copyfileobj(source, file, 1 << 20)
        unfinished.chmod(0o755)
        unfinished.replace(program)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as problem:
        raise DownloadFailed("the archive cannot be unpacked") from problem
    finally:
        unfinished.unlink(missing_ok=True)
