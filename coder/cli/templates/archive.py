"""Tar archive of a template's directory, without hidden files, state and values of variables.

Everybody who can read the template can download the archive, so it contains only what belongs to a template:

| path | packed |
| --- | --- |
| a name that begins with a dot, such as `.env`, `.netrc`, `.git`, `.venv`, `.terraform`, and what is below it | no |
| `.terraform.lock.hcl` | yes |
| a name with `.tfstate` in it, `*.tfplan` | no |
| `*.auto.tfvars`, `*.auto.tfvars.json`; in the template's own directory `*.tfvars`, `*.tfvars.json` too | no |
| a link to a file or directory inside the template | yes, as a file or directory |
| a link to anything else, a directory that contains itself, a socket, a pipe or a device | no |
| a file above 20 MiB | no |
| anything else | yes |

Patterns of the author override the rules. A Terraform file that names a skipped path is an error: the template would
fail in the provisioner, or silently mean something else.
"""

from __future__ import annotations

import io
import shlex
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from coder.base.errors import CoderError
from coder.cli.templates.references import TERRAFORM_FILES, references_of

LIMIT = 100 << 20
"Maximum bytes that the server accepts."
LARGE_FILE = 20 << 20
_LOCK_FILE = ".terraform.lock.hcl"
_AUTOMATIC_VALUES = (".auto.tfvars", ".auto.tfvars.json")
_VALUES = (".tfvars", ".tfvars.json")


@dataclass(frozen=True, slots=True)
class Skipped:
    """Path of the template that is not packed; a directory with everything below it."""

    path: PurePosixPath
    reason: str


@dataclass(slots=True)
class Packed:
    """Archive of a directory."""

    archive: bytes
    skipped: list[Skipped]
    files: int


def pack_directory(directory: Path, include: Sequence[str] = ()) -> Packed:
    """Pack a directory. `include` are patterns of paths that are packed in any case.

    Raise CoderError if there is no Terraform file, the archive exceeds the server's limit, or a Terraform file names a
    skipped path.
    """
    root = directory.resolve()
    if not any(item.name.endswith(TERRAFORM_FILES) for item in root.iterdir()):
        raise CoderError(
            "no_template",
            f"{directory} is not a valid template since it has no [{' '.join(TERRAFORM_FILES)}] files",
            "Point -d at the directory with main.tf, or start with `coder templates init`.",
        )
    packer = _Packer(root, include)
    with tarfile.open(fileobj=packer.buffer, mode="w") as packer.tar:
        packer.add_directory(root, PurePosixPath(), (root,))
    _check_references(packer)
    return Packed(packer.buffer.getvalue(), packer.skipped, packer.files)


def rule_against(path: PurePosixPath) -> str:
    """Return why a path is not packed by its name; "" if it is."""
    name = path.name
    if name.startswith(".") and name != _LOCK_FILE:
        return "hidden"
    if ".tfstate" in name or name.endswith(".tfplan"):
        return "state of Terraform"
    if name.endswith(_AUTOMATIC_VALUES) or (len(path.parts) == 1 and name.endswith(_VALUES)):
        return "values of variables"
    return ""


@dataclass(slots=True)
class _Packer:
    root: Path
    include: Sequence[str]
    buffer: io.BytesIO = field(default_factory=io.BytesIO)
    tar: tarfile.TarFile = field(init=False)
    skipped: list[Skipped] = field(default_factory=list)
    terraform: dict[PurePosixPath, str] = field(default_factory=dict)
    files: int = 0

    def add_directory(self, directory: Path, relative: PurePosixPath, chain: tuple[Path, ...]) -> None:
        """Add what is below a directory. `chain` has the real paths from the root to it."""
        for item in sorted(directory.iterdir()):
            path = relative / item.name
            reason = self._reason(item, path, chain)
            if item.is_dir():
                if not reason or self._has_included_path(path):
                    self.add_directory(item, path, (*chain, item.resolve()))
                else:
                    self.skipped.append(Skipped(path, reason))
            elif reason:
                self.skipped.append(Skipped(path, reason))
            else:
                self._add_file(item, path)

    def _reason(self, item: Path, path: PurePosixPath, chain: tuple[Path, ...]) -> str:
        """Return why an item is not packed; "" if it is."""
        target = item.resolve()
        if item.is_dir() and target in chain:
            return "a directory that contains itself"
        if not item.is_dir() and not item.is_file():
            return "a link to nothing" if item.is_symlink() else "not a file"
        if self._is_included(path):
            return ""
        if item.is_symlink() and not target.is_relative_to(self.root):
            return "a link that leads out of the template"
        rule = rule_against(path)
        if not rule and item.is_file() and item.stat().st_size > LARGE_FILE:
            rule = f"{item.stat().st_size >> 20} MiB"
        return rule

    def _is_included(self, path: PurePosixPath) -> bool:
        """Return whether a pattern matches the whole path, or a directory above it."""
        names = [str(each) for each in (path, *path.parents) if each.parts]
        return any(fnmatchcase(name, pattern.rstrip("/")) for name in names for pattern in self.include)

    def _has_included_path(self, directory: PurePosixPath) -> bool:
        """Return whether a pattern can match below a directory that is skipped itself."""
        depth = len(directory.parts)
        for pattern in self.include:
            parts = PurePosixPath(pattern).parts
            if len(parts) > depth and all(map(fnmatchcase, directory.parts, parts)):
                return True
        return False

    def _add_file(self, item: Path, path: PurePosixPath) -> None:
        try:
            data = item.read_bytes()
        except OSError as error:
            raise CoderError("unreadable", f"cannot read {item}") from error
        info = tarfile.TarInfo(str(path))
        status = item.stat()
        info.size, info.mode, info.mtime = len(data), status.st_mode & 0o755, int(status.st_mtime)
        self.tar.addfile(info, io.BytesIO(data))
        self.files += 1
        if path.name.endswith(TERRAFORM_FILES):
            self.terraform[path] = data.decode("utf-8", errors="replace")
        if self.buffer.tell() > LIMIT:
            raise CoderError("too_large", f"{self.root} exceeds {LIMIT >> 20} MiB", "Leave large files out.")


def _check_references(packer: _Packer) -> None:
    """Raise CoderError if a Terraform file names a skipped path, or is one."""
    for item in packer.skipped:
        if item.path.name.endswith(TERRAFORM_FILES) and not item.path.name.startswith("."):
            raise _missing(f"{item.path} is part of the template", item)
    for file, text in packer.terraform.items():
        for reference in references_of(file, text):
            for item in packer.skipped:
                if reference.path.is_relative_to(item.path):
                    raise _missing(f"{file} line {reference.line} names {reference.path}", item)


def _missing(fact: str, item: Skipped) -> CoderError:
    return CoderError(
        "left_out",
        f"{fact}, but {item.path} is not uploaded ({item.reason}): set --include {quote(str(item.path))} to upload it",
    )


def quote(path: str) -> str:
    """Return a path as a word of a shell."""
    return shlex.quote(path)
