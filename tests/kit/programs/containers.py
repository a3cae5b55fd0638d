"""Containers of the built image, run by podman as root or as an ordinary user, on the machine's own network."""

from __future__ import annotations

import contextlib
import os
import pwd
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

LIMITS = {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}
"""podman raises these to values that a machine without CAP_SYS_RESOURCE refuses."""
LARGEST = 8192


def missing_engine() -> str:
    """The reason why no container can run here; empty if one can."""
    if os.geteuid() != 0:
        return "root runs the containers, and becomes the ordinary user"
    missing = [name for name in ("podman", "buildah", "runc") if not shutil.which(name)]
    return f"{', '.join(missing)} not installed" if missing else ""


def ordinary_user() -> str | None:
    """A user with ranges of user and group ids, as rootless containers need; None if the machine has none."""
    listed = [{line.split(":")[0] for line in _lines(f"/etc/{name}")} for name in ("subuid", "subgid")]
    known = {entry.pw_name for entry in pwd.getpwall() if entry.pw_uid}
    return min(listed[0] & listed[1] & known, default=None)


def _lines(path: str) -> list[str]:
    with contextlib.suppress(OSError):
        return [line for line in Path(path).read_text().splitlines() if ":" in line]
    return []


@dataclass(frozen=True)
class Engine:
    """podman with a storage of its own below `folder`."""

    folder: Path
    user: str | None = None
    "Its owner; None is root."

    def command(self, *words: str) -> list[str]:
        places = ["--root", f"{self.folder}/storage", "--runroot", f"{self.folder}/run"]
        podman = ["podman", *places, "--runtime", "runc", "--cgroup-manager", "cgroupfs", *words]
        if self.user is None:
            return podman
        home = f"HOME={self.folder}", f"XDG_RUNTIME_DIR={self.folder}/runtime"
        become = ["setpriv", f"--reuid={self.user}", f"--regid={pwd.getpwnam(self.user).pw_gid}", "--init-groups"]
        return [*become, "env", "-C", "/", *home, *podman]

    def run(self, *words: str, limit: float = 300) -> str:
        done = subprocess.run(self.command(*words), capture_output=True, text=True, timeout=limit, check=False)
        assert done.returncode == 0, f"podman {' '.join(words)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def container(self, *words: str) -> list[str]:
        """The command `podman run` with this machine's limits; loopback is shared with the tests."""
        limits = [f"--ulimit={name}={limit}:{limit}" for name, limit in self.limits().items()]
        return self.command("run", "--rm", "--network", "host", *limits, *words)

    def limits(self) -> dict[str, int]:
        return {
            name: LARGEST if hard == resource.RLIM_INFINITY else min(hard, LARGEST)
            for name, number in LIMITS.items()
            for hard in (resource.getrlimit(number)[1],)
        }


@contextlib.contextmanager
def open_engine(archive: Path, user: str | None = None) -> Iterator[Engine]:
    """An engine that has the image of an OCI archive; nothing of it stays."""
    folder = Path(tempfile.mkdtemp(prefix="coder-podman-", dir="/var/tmp"))
    engine = Engine(folder, user)
    try:
        (folder / "runtime").mkdir(mode=0o700)
        if user is not None:
            for path in (folder, folder / "runtime"):
                os.chown(path, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
        shutil.copyfile(archive, folder / "image.tar")
        (folder / "image.tar").chmod(0o644)
        engine.run("load", "--quiet", "--input", str(folder / "image.tar"))
        yield engine
    finally:
        subprocess.run(engine.command("rm", "--all", "--force", "--time", "0"), check=False, capture_output=True)
        subprocess.run(engine.command("rmi", "--all", "--force"), check=False, capture_output=True)
        for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
            if line.split()[1].startswith(f"{folder}/"):
                subprocess.run(["umount", line.split()[1]], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def image_skip() -> pytest.MarkDecorator:
    """Skips where no container can run, or no built program is there to be put into an image."""
    built = os.environ.get("CODER_TEST_BINARY", "")
    reason = "the image contains a built program" if not built else missing_engine()
    return pytest.mark.skipif(bool(reason), reason=reason or "-")
