"""`coder upgrade` on a machine with a server: its database is saved while the server runs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from coder.base.version import BUILD_VERSION
from coder.cli.program import managed_program, upgrade
from coder.coderd.store.engine.backup import read_backup
from coder.coderd.store.engine.database import open_database
from coder.coderd.store.engine.migrate import known_revisions, migrate
from coder.coderd.store.engine.postgres import run_postgres
from tests.kit.programs.command_line import run_cli
from tests.kit.programs.releases import KEY, NAME, Mirror, script


async def test_database_of_a_running_server_is_saved(open_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(managed_program, "CONTAINER_MARKS", ())
    monkeypatch.setattr(upgrade, "own_name", lambda: NAME)
    program, config = open_path / "bin/coder", open_path / "config"
    program.parent.mkdir()
    program.write_bytes(script(BUILD_VERSION))
    program.chmod(0o755)
    mirror = Mirror(open_path / "mirror")
    mirror.add("v2.35.0", schema_revision="9999")
    env = {"CODER_CONFIG_DIR": str(config), "CODER_SELF": str(program), "CODER_RELEASE_KEY": KEY.public_line}
    env |= {"CODER_RELEASE_LIST": str(mirror.folder)}
    async with run_postgres(config, durable=False) as url:
        async with open_database(url) as database:
            await migrate(database)
        done = await run_cli(["upgrade", "--yes", "-o", "json"], home=open_path, env=env)
    assert done.code == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["schema_from"], found["schema_to"]) == (known_revisions()[-1], "9999")
    backup = Path(found["backup"])
    assert backup.parent == config / "backups" and backup.parent.stat().st_mode & 0o077 == 0
    assert backup.parent.stat().st_uid == config.stat().st_uid
    manifest = read_backup(backup, open_path / "dump")
    assert manifest.version == BUILD_VERSION and manifest.rows
    assert b"v2.35.0" in program.read_bytes() and os.access(program, os.X_OK)
