"""The database of this machine's server, for `coder upgrade`: its schema, and a backup before the schema moves."""

from __future__ import annotations

import contextlib
import os
from datetime import UTC, datetime
from pathlib import Path

from coder.base.errors import CoderError
from coder.cli.core.command import Invocation
from coder.cli.declarations.server.direct_database import DatabaseOptions
from coder.cli.server.backup import back_up
from coder.cli.server.direct_database import Target, announce, find_target
from coder.coderd.store.engine.migrate import known_revisions


def find_deployment(invocation: Invocation[DatabaseOptions]) -> Target | None:
    """Return the deployment whose database is on this machine, or named; None if there is none.

    Raises CoderError `no_access` if this user may not read it: the upgrade would not be able to save it.
    """
    try:
        return find_target(invocation)
    except CoderError as error:
        if error.code != "no_database":
            raise
        return None


def own_revision() -> str:
    """Return the newest schema revision of this program, which its server's database has."""
    return known_revisions()[-1]


def save_database(target: Target, folder: str, version: str) -> Path:
    """Back up the database into a folder and return the file. Raises CoderError, OSError."""
    data = target.config.data_path
    try:
        place = Path(folder).expanduser().absolute() if folder else data / "backups"
        is_new = not place.exists()
        if is_new:
            place.mkdir(mode=0o700, parents=True)
    except (ValueError, RuntimeError) as error:  # NUL, the home of an unknown user
        raise CoderError("backup", f"--backup-dir cannot be used: {error}", "Name another folder.") from error
    if is_new:
        with contextlib.suppress(OSError):  # as the data directory's owner, also when root upgrades
            owner = data.stat()
            os.chown(place, owner.st_uid, owner.st_gid)
    announce(target)
    path = place / f"coder-before-{version}-{datetime.now(UTC):%Y%m%d-%H%M%S}.backup"
    back_up(target, path)
    return path
