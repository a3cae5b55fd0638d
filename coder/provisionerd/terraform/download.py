"""Download of terraform for machines without one: one release, fetched once into the cache, verified before use.

The digest comes from the release's own list, over TLS; the signature on that list is not checked. Another source (an
internal mirror) and a ban on downloads are settings (provisionerd/config.py).
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
from coder.net.masking import masked
from coder.net.policy import DialPolicy
from coder.provisionerd.terraform.file_lock import locked

VERSION = "1.11.4"
"Release that all code here was tested with."
_MAX_ARCHIVE = 200 << 20
_MAX_LIST = 1 << 20
_MAX_PROGRAM = 600 << 20
_TIMEOUT = 600.0
"Seconds for the archive, on a slow line."
_UNFINISHED = ".unfinished-"
_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64", "armv7l": "arm"}

_log = get_logger("provisionerd.terraform")


class DownloadFailed(CoderError):  # noqa: N818 - names the situation
    """terraform could not be downloaded. The message has the reason."""

    def __init__(self, message: str) -> None:
        super().__init__("terraform_download", message)


async def download(url: str, folder: Path, version: str = VERSION) -> Path:
    """Return the program of `version` below `folder`; download it from the release site at `url` when missing.

    Raises DownloadFailed. Several processes may call concurrently: one downloads, the others wait.
    """
    program = folder / f"terraform-{version}"
    if program.exists():
        return program
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        async with locked(folder / "terraform.lock"):
            if not program.exists():
                _log.info("terraform is not installed; downloading it", version=version, source=masked(url))
                await fetch_program(url, version, _own_platform(), program)
    except OSError as problem:
        raise DownloadFailed(f"{folder}: {problem.strerror or problem}") from problem
    return program


async def fetch_program(url: str, version: str, target_platform: str, program: Path) -> None:
    """Download, verify and unpack one program, e.g. for linux_amd64. Raises DownloadFailed."""
    archive, expected_digest = await _fetch(url, version, target_platform)
    try:
        program.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        # Hashing and unpacking take a second, which would stall a server's other requests.
        await trio.to_thread.run_sync(_install, archive, expected_digest, program)
    except OSError as problem:
        raise DownloadFailed(f"{program}: {problem.strerror or problem}") from problem


def _own_platform() -> str:
    system = {"darwin": "darwin", "win32": "windows"}.get(sys.platform, "linux")
    machine = platform.machine().lower()
    architecture = _ARCHITECTURES.get(machine)
    if architecture is None:
        raise DownloadFailed(f"there is no terraform for {machine}")
    return f"{system}_{architecture}"


async def _fetch(url: str, version: str, target_platform: str) -> tuple[bytes, str]:
    """Return the archive and its expected digest."""
    name = f"terraform_{version}_{target_platform}.zip"
    base = f"/{version}"
    try:
        async with HttpClient(DialPolicy(url)) as http:
            listed = await http.request("GET", f"{base}/terraform_{version}_SHA256SUMS", limit=_MAX_LIST)
            expected_digest = _digest_of(listed.body.decode("ascii", "replace"), name)
            answer = await http.request("GET", f"{base}/{name}", timeout=_TIMEOUT, limit=_MAX_ARCHIVE)
    except CoderError as problem:
        raise DownloadFailed(f"{masked(url)}: {problem.message}") from problem
    return answer.body, expected_digest


def _digest_of(listed: str, name: str) -> str:
    for line in listed.splitlines():
        digest, _, file_name = line.partition("  ")
        if file_name.strip() == name and re.fullmatch(r"[0-9a-f]{64}", digest):
            return digest
    raise DownloadFailed(f"the release's list of checksums has no {name}")


def _install(archive: bytes, expected_digest: str, program: Path) -> None:
    """Unpack next to the final name and move it there: no process sees half a program. Blocks."""
    if not secrets.compare_digest(hashlib.sha256(archive).hexdigest(), expected_digest):
        raise DownloadFailed("the archive's checksum differs from the release's list")
    for leftover in program.parent.glob(f"{_UNFINISHED}*"):
        leftover.unlink(missing_ok=True)  # leftovers of a process that was killed here; we hold the lock
    number, name = tempfile.mkstemp(prefix=_UNFINISHED, dir=program.parent)
    unfinished = Path(name)
    try:
        with os.fdopen(number, "wb") as file, zipfile.ZipFile(io.BytesIO(archive)) as packed:
            member = next((item for item in packed.infolist() if item.filename in {"terraform", "terraform.exe"}), None)
            if member is None or member.file_size > _MAX_PROGRAM:
                raise DownloadFailed("the archive has no terraform in it")
            with packed.open(member) as source:
                shutil.copyfileobj(source, file, 1 << 20)
            file.flush()
            os.fsync(file.fileno())  # otherwise a power failure could leave an empty program with the final name
        unfinished.chmod(0o755)
        unfinished.replace(program)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as problem:
        raise DownloadFailed("the archive cannot be unpacked") from problem
    finally:
        unfinished.unlink(missing_ok=True)
