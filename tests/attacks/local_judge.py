"""Applies the tables of `local_tries.py` to a running server."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.attacks.local_tries import FILES, FOLDERS, PROCESS, SOCKETS
from tests.attacks.target import Target

OTHER_USER = 54321
"""An id that owns nothing."""
LocalTry = tuple[str, str, dict[str, Any]]
CONTROL = "a control that every user may"


def _private(target: Target) -> Iterator[tuple[str, str, Path]]:
    """Yield process, kind (folder, file, socket) and path of what no other user may reach."""
    for folder in target.temporary.glob("coder-processes-*"):
        yield "supervisor", "folder", folder
        for number, path in enumerate(sorted(folder.glob("*.sock"))):
            yield f"process {number}", "socket", path
    for cluster in [path.parent for path in target.server.folder.rglob("server.lock")]:
        yield "postgres", "folder", cluster / "data"
        yield "postgres", "folder", cluster / "sock"
        yield "postgres", "socket", cluster / "sock/.s.PGSQL.5432"
        for name in (
            "server.lock",
            "postgres.log",
            "data/postmaster.pid",
            "data/pg_hba.conf",
            "data/global/pg_control",
        ):
            yield "postgres", "file", cluster / name


def local_tries(target: Target) -> list[LocalTry]:
    """Return name, expression and values of every try."""
    tables = {"folder": FOLDERS, "file": FILES, "socket": SOCKETS}
    tries: list[LocalTry] = [(CONTROL, "open('/proc/1/cmdline', 'rb').read()", {})]
    for pid, name in target.processes().items():
        tries += [(f"{name}: {kind}", text, {"pid": pid}) for kind, text in PROCESS.items()]
    for process, what, path in _private(target):
        values = {"path": str(path), "temporary": str(target.temporary)}
        tries += [(f"{process}: {what} {path.name}: {kind}", text, values) for kind, text in tables[what].items()]
    return tries


def local_run(target: Target, tries: list[LocalTry]) -> list[str]:
    """Return the names of the tries that another user of the machine succeeded with."""
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(root / "tests/attacks/local_user.py"), str(OTHER_USER)],
        input=json.dumps(tries).encode(),
        capture_output=True,
        cwd=target.temporary,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    succeeded: list[str] = json.loads(done.stdout)
    return succeeded
