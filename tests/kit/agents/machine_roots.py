"""Roots of small and old machines, made once and kept below the cache folder, in which a built program runs.

Needs root and Debian's tools and mirror. A foreign root also needs qemu-user with binfmt_misc.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kit.agents.attached_machine import BASE, ROOT

sys.path.insert(0, str(ROOT / "build"))
import emulation
from roots import MIRROR

KEPT = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "coder" / "small-roots"
_STATIC = ("busybox-static", "musl")


@dataclass(frozen=True, slots=True)
class SmallRoot:
    """One kind of machine."""

    make: Callable[[Path, SmallRoot], None]
    have: tuple[str, ...]
    "Of curl, wget and busybox."
    arch: str = "amd64"
    "As the server names its programs."
    suite: str = ""
    debian_arch: str = "amd64"


def _bootstrap(target: Path, root: SmallRoot) -> None:
    """Debian with what fetches."""
    options = ["--variant=minbase", f"--arch={root.debian_arch}"]
    options += [f"--include={','.join((*root.have, 'ca-certificates'))}"]
    options += [] if root.arch == "amd64" else ["--download-only"]
    command = ["debootstrap", *options, root.suite, str(target), MIRROR]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=_environment())
    if root.arch != "amd64":
        _lay_out(target)


def _lay_out(target: Path) -> None:
    """What was downloaded, without configuring it: that would be minutes of emulation, for files nobody needs here."""
    for name in ("bin", "sbin", "lib", "lib64"):
        (target / "usr" / name).mkdir(parents=True)
        (target / name).symlink_to(f"usr/{name}")
    for package in sorted((target / "var/cache/apt/archives").glob("*.deb")):
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as files:
            subprocess.run(["tar", "-C", target, "--keep-directory-symlink", "-x"], check=True, stdin=files.stdout)
        assert files.returncode == 0, package
        package.unlink()
    shutil.rmtree(target / "debootstrap")
    for name in ("passwd", "group"):
        shutil.copyfile(target / f"usr/share/base-passwd/{name}.master", target / "etc" / name)


def _without_glibc(target: Path, root: SmallRoot) -> None:
    """As Alpine: busybox, musl's loader, nothing else."""
    packages = target.with_name("packages")
    packages.mkdir(exist_ok=True)
    subprocess.run(["apt-get", "-qq", "download", *_STATIC], check=True, cwd=packages, stdout=subprocess.DEVNULL)
    for package in packages.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, target], check=True)
    shutil.rmtree(packages)
    for name in ("bin", "usr/bin", "sbin", "usr/sbin", "tmp", "var/tmp", "proc", "dev", "root", "etc/ssl/certs"):
        (target / name).mkdir(parents=True, exist_ok=True)
    for name in ("tmp", "var/tmp"):
        (target / name).chmod(0o1777)
    subprocess.run(["chroot", target, "/bin/busybox", "--install", "-s"], check=True)
    (target / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n")
    (target / "etc/group").write_text("root:x:0:\nnobody:x:65534:\n")


ROOTS = {
    "glibc-2.31": SmallRoot(_bootstrap, ("curl", "wget", "busybox"), suite="bullseye"),
    "musl": SmallRoot(_without_glibc, ("wget", "busybox")),
    "arm64": SmallRoot(_bootstrap, ("curl", "wget", "busybox"), arch="arm64", suite="bookworm", debian_arch="arm64"),
    "armv7": SmallRoot(_bootstrap, ("curl", "wget", "busybox"), arch="armv7", suite="bookworm", debian_arch="armhf"),
}
"""busybox fetches by itself, or as `wget`."""


def root_of(name: str) -> Path:
    """The root's folder; skips where it cannot be made."""
    kept = KEPT / name
    if reason := emulation.why_not(ROOTS[name].arch):
        pytest.skip(reason)
    if not kept.exists():
        if os.geteuid() != 0 or shutil.which("debootstrap", path=_environment()["PATH"]) is None:
            pytest.skip("making a root needs root and debootstrap")
        half = KEPT / f".{name}.new"
        shutil.rmtree(half, ignore_errors=True)
        half.mkdir(parents=True)
        ROOTS[name].make(half, ROOTS[name])
        half.rename(kept)
    for path in ("/etc/resolv.conf", "/etc/hosts"):
        shutil.copyfile(path, kept / path[1:])
    return kept


def path_with(root: Path, *names: str) -> str:
    """PATH, inside the root, of a folder with these commands alone."""
    folder = root / f"tools-{'-'.join(names)}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name in (*BASE, *names):
        places = (f"/{place}/{name}" for place in ("usr/bin", "bin", "usr/sbin", "sbin"))
        (folder / name).symlink_to(next(place for place in places if os.path.lexists(root / place[1:])))
    return f"/{folder.name}"


def _environment() -> dict[str, str]:
    return {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
