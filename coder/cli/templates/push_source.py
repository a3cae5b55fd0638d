"""Archive that `coder templates push` uploads: of a directory, a file, or standard input."""

from __future__ import annotations

import gzip
import io
import os
import select
import stat
import sys
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from coder.base.errors import CoderError
from coder.base.quoted import quoted
from coder.cli.core.command import Invocation
from coder.cli.core.options import YesOption
from coder.cli.declarations.templates.push import TemplatesPushOptions
from coder.cli.templates.archive import LIMIT, pack_directory
from coder.cli.ui.output import confirm, say
from coder.net.blocking import BlockingClient
from coder.net.masking import masked

STANDARD_INPUT = "-"
_FIRST_BYTES = 512
"Size of a tar header."
_ZIP, _GZIP = b"PK\x03\x04", b"\x1f\x8b"
_COMPRESSED = {b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ\x00": "xz", b"BZh": "bzip2"}
"""First bytes -> compressions that are refused by name."""
_PATIENCE = 2.0
"Seconds after which the command says what it waits for."


@dataclass(frozen=True, slots=True)
class Source:
    """Directory or file of the template; `-` for an archive on standard input."""

    path: str

    def name(self) -> str:
        """Return the template's name if the command has none. Raise CoderError for standard input."""
        if self.path == STANDARD_INPUT:
            raise CoderError("usage", "a template name is required if the archive comes from standard input")
        return Path(self.path).absolute().name

    def archive(self, invocation: Invocation[TemplatesPushOptions], client: BlockingClient) -> bytes:
        """Return the bytes to upload. Ask for confirmation, except for standard input."""
        if self.path != STANDARD_INPUT:
            return _pack(invocation, client, Path(self.path))
        data = sys.stdin.buffer.read(LIMIT + 1)
        if len(data) > LIMIT:
            raise CoderError("too_large", f"the archive on standard input exceeds {LIMIT >> 20} MiB")
        return plain_archive(data, "standard input")


def source_of(invocation: Invocation[TemplatesPushOptions]) -> Source:
    """Return the source of the flag, or an archive that is piped into the command without one.

    An empty input, such as that of a scheduled job, or a text, such as `yes |`, is no archive: the current directory is
    used.
    """
    chosen = str(invocation.options.directory)
    if invocation.sources["directory"] != "default":
        return Source(chosen)
    return Source(STANDARD_INPUT if _is_archive_piped() else chosen)


def _is_archive_piped() -> bool:
    try:
        kind = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):  # closed, or not a file of the system
        return False
    if not (stat.S_ISFIFO(kind) or stat.S_ISREG(kind) or stat.S_ISSOCK(kind)):
        return False
    if not _has_input():
        say("Waiting for an archive on standard input; set -d to use a directory.")
    if stat.S_ISREG(kind) and hasattr(os, "pread"):
        # A loop that runs this command can read its lines from the same file: the position stays.
        descriptor = sys.stdin.fileno()
        return is_archive(os.pread(descriptor, _FIRST_BYTES, os.lseek(descriptor, 0, os.SEEK_CUR)))
    first = sys.stdin.buffer.peek(_FIRST_BYTES)[:_FIRST_BYTES]  # type: ignore[union-attr]
    if not first:  # of a script without input, or of a command that has failed
        say("Standard input is empty: the current directory is used.")
    return is_archive(first)


def _has_input() -> bool:
    """Return whether standard input has bytes or its end soon."""
    try:
        return bool(select.select([sys.stdin], [], [], _PATIENCE)[0])
    except (OSError, ValueError):  # a pipe on Windows
        return False


def is_archive(first: bytes) -> bool:
    """Return whether an input begins as a tar or zip archive: the header of a tar has zero bytes, a text has none."""
    return first.startswith((_ZIP, _GZIP, *_COMPRESSED)) or b"\x00" in first


def plain_archive(data: bytes, name: str) -> bytes:
    """Return a tar or zip archive; one that gzip compressed is decompressed. Raises CoderError for other data."""
    if data.startswith(_GZIP):
        try:
            data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(LIMIT + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise CoderError("archive", f"{name} is no complete gzip archive") from error
        if len(data) > LIMIT:
            raise CoderError("too_large", f"the archive in {name} exceeds {LIMIT >> 20} MiB")
    compression = next((label for magic, label in _COMPRESSED.items() if data.startswith(magic)), "")
    if compression:
        message = f"{name} is compressed with {compression}, which the server cannot read"
        raise CoderError("archive", message, "Give a tar or zip archive, or one compressed with gzip.")
    if not data.startswith(_ZIP) and not is_tar(data):
        raise CoderError("archive", f"{name} is no tar or zip archive", "Name the template's directory with -d.")
    return data


def is_tar(data: bytes) -> bool:
    """Return whether the data begin with a tar header, or with the blocks of zeros that end an archive."""
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:"):
            return True
    except tarfile.TarError:
        return False


def _pack(invocation: Invocation[TemplatesPushOptions], client: BlockingClient, directory: Path) -> bytes:
    """Return the archive of a directory, or the named file itself. Ask for confirmation before the upload."""
    if directory.is_file():
        return _confirmed(invocation, directory, plain_archive(directory.read_bytes(), str(directory)), 1)
    if not directory.is_dir():
        message = f"check for lockfile: dir has lockfile: open {directory}: no such file or directory"
        raise CoderError("no_directory", message, "Name the template's directory with --directory.")
    if not (directory / ".terraform.lock.hcl").exists() and not invocation.options.ignore_lockfile:
        say("No .terraform.lock.hcl file found: provider versions are not pinned for this template.")
    sys.stdout.write(f"Packing {directory}\n")
    try:
        packed = pack_directory(directory, invocation.options.include)
    except CoderError as error:
        raise CoderError(error.code, f'upload: Post "{masked(client.policy.url)}/api/v2/files"') from error
    for item in packed.skipped:
        say(f"skipped: {item.path} ({item.reason})")
    return _confirmed(invocation, directory, packed.archive, packed.files)


def _confirmed(invocation: Invocation[YesOption], source: Path, archive: bytes, files: int) -> bytes:
    size = f"{len(archive) / 1024:.0f} KiB" if len(archive) < 1 << 20 else f"{len(archive) / (1 << 20):.1f} MiB"
    confirm(
        invocation.options.yes,
        f"Upload {quoted(source)}? ({files} file{'' if files == 1 else 's'}, {size})",
        default=True,
    )
    return archive
