"""Folders of releases, signed with a test key; their programs are shell scripts that answer `version`."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from coder.base.version import BUILD_VERSION
from tests.kit.paths import ROOT

sys.path.insert(0, str(ROOT / "build"))
from release.keys import ReleaseKey

KEY = ReleaseKey(Ed25519PrivateKey.from_private_bytes(b"\1" * 32))
NAME = "coder-linux-amd64"
NEWER, NEWEST = "v2.35.0", "v2.36.1"


def script(version: str, *, slim: bool = False) -> bytes:
    """A program that reports a version, as `coder version --output json` does."""
    return f"#!/bin/sh\necho '{json.dumps({'version': version, 'slim': slim})}'\n".encode()


OLD = script(BUILD_VERSION)


def version_of(program: Path) -> str:
    done = subprocess.run([program, "version"], capture_output=True, check=True)
    return str(json.loads(done.stdout)["version"])


@dataclass
class Mirror:
    """A folder with a list and the releases that it names."""

    folder: Path
    listed: list[dict[str, str]] = field(default_factory=list)

    def add(self, version: str, program: bytes | None = None, *, name: str = NAME, **facts: str) -> Path:
        """Adds a signed release; returns its folder."""
        place = self.folder / version
        place.mkdir(parents=True)
        (place / name).write_bytes(script(version) if program is None else program)
        self.sign(place)
        self.listed.append({"version": version, "folder": version, **facts})
        (self.folder / "releases.json").write_text(json.dumps({"releases": self.listed}))
        return place

    def sign(self, place: Path) -> None:
        files = [path for path in sorted(place.iterdir()) if not path.name.startswith("SHA256SUMS")]
        sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
        (place / "SHA256SUMS").write_text(sums)
        (place / "SHA256SUMS.minisig").write_text(KEY.minisign(sums.encode(), place.name))
