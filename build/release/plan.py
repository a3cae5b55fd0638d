"""Inputs of a release, and names that several of its parts use."""

from __future__ import annotations

import hashlib
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from release.keys import ReleaseKey

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = "coder-py"
"""Name in package managers, where `coder` is the original's."""
SUMMARY = "self-hosted remote development"
LICENSE = "Apache-2.0"
PACKAGED = ("amd64", "arm64")
"""Processors with the server, which packages, image and repository have."""
PROGRAMS = (
    *(f"coder-linux-{processor}" for processor in (*PACKAGED, "armv7")),
    *(f"coder-slim-linux-{processor}" for processor in (*PACKAGED, "armv7")),
    "coder-windows-amd64.exe",
    "coder-darwin-amd64",
    "coder-darwin-arm64",
)
"""Programs that `build/build.py --platform all` makes."""
VERSION = re.compile(r"v?(\d+\.\d+\.\d+)")


@dataclass(frozen=True, slots=True)
class Plan:
    """A release that is being made."""

    version: str
    "Without the v."
    commit: str
    time: int
    "Of the commit, in seconds since 1970: the time of every file and signature."
    key: ReleaseKey
    key_path: Path
    out: Path
    url: str
    "Address under which the folder will be published, without a slash at the end."

    @property
    def programs(self) -> dict[str, Path]:
        """The programs that this release has, by name."""
        return {name: self.out / name for name in PROGRAMS if (self.out / name).is_file()}


def digest(path: Path, algorithm: str = "sha256") -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def git(*arguments: str) -> str:
    """Return the output of a git command in the checkout; empty if it fails."""
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def write(path: Path, content: str | bytes) -> Path:
    """Write a file, with its folder, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(0o644)
    return path
