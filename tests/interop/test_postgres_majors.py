"""The built-in database across majors of PostgreSQL: a release that brings a new one says what to do with the old data,
and doing it loses nothing."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from coder.base.config import Inputs
from coder.base.errors import CoderError
from coder.coderd.config.reading import server_config
from coder.coderd.store.engine import backup, postgres_programs
from coder.coderd.store.engine.database import Tx, open_database
from coder.coderd.store.engine.migrate import migrate
from coder.coderd.store.engine.postgres import client_program, run_postgres
from tests.kit.programs.command_line import run_cli

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = Path(__file__).parent / "postgres"
MAJORS = (15, 16, 17)
KEPT = sorted((ROOT / "tests/data/databases").glob("*.backup"))[-1]
pytestmark = [
    pytest.mark.skipif(not (PACKAGES / "node_modules").is_dir(), reason="need_npm_packages tests/interop/postgres"),
    pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="programs for linux-x64"),
]


@pytest.fixture(params=MAJORS)
def old(request: pytest.FixtureRequest) -> Iterator[tuple[int, Path]]:
    """An earlier major and the folder of its programs."""
    place = PACKAGES / f"node_modules/postgres-{request.param}/native"
    # npm keeps no symbolic links; the package lists them for its own installer.
    for link in json.loads((place / "pg-symlinks.json").read_text()):
        target = place.parent / link["target"]
        if not target.is_symlink():
            target.symlink_to(os.path.relpath(place.parent / link["source"], target.parent))
    yield request.param, place / "bin"


@pytest.fixture
def home(open_path: Path) -> Path:
    """Postgres runs as somebody else when we are root."""
    return open_path


def without_the_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this machine happens to have installed is not looked for."""
    found = postgres_programs._candidates
    monkeypatch.setattr(
        postgres_programs,
        "_candidates",
        lambda bin_dir, major: [folder for folder in found(bin_dir, major) if not str(folder).startswith("/usr/")],
    )


async def version_of(url: str) -> int:
    async def ask(tx: Tx) -> int:
        return int((await tx.execute(text("SHOW server_version_num"))).scalar_one()) // 10000

    async with open_database(url) as database:
        return await database.read(ask)


def fill(url: str, dump: Path, client: Path, as_whom: dict[str, Any]) -> None:
    """A kept database into an older PostgreSQL, which does not know a setting that a later pg_restore makes first."""
    with dump.open("rb") as file:
        options = as_whom | {"stdin": file}
        script = subprocess.run([client, "--no-owner", "-f", "-"], check=True, stdout=subprocess.PIPE, **options).stdout
    script = re.sub(rb"SET transaction_timeout .*\n", b"", script)
    options = {name: value for name, value in as_whom.items() if name != "stdin"}
    command = [str(client.with_name("psql")), "-qX", "-v", "ON_ERROR_STOP=1", url]
    subprocess.run(command, check=True, input=script, stdout=subprocess.DEVNULL, **options)


async def coder(home: Path, *words: str, bin_dir: str = "", code: int = 0) -> str:
    env = {"CODER_CONFIG_DIR": str(home / "config")} | ({"CODER_PG_BIN_DIR": bin_dir} if bin_dir else {})
    done = await run_cli(list(words), home=home, env=env)
    assert done.code == code, (words, done.stdout, done.stderr)
    return done.stderr if code else done.stdout


async def test_the_way_between(old: tuple[int, Path], home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    major, programs = old
    place = server_config(Inputs(env={}), home / "config").data_path
    without_the_systems(monkeypatch)
    backup.read_backup(KEPT, home / "dump")
    client, as_whom = client_program(place, "pg_restore")
    with monkeypatch.context() as release_before:
        release_before.setattr(postgres_programs, "MAJOR", major)
        async with run_postgres(place, bin_dir=str(programs), durable=False) as url:
            assert await version_of(url) == major
            fill(url, home / "dump", client, {**as_whom})
            async with open_database(url) as database:
                await migrate(database)
            before = await backup.count_rows(url)
            assert before[1]["users"] >= 2
    told = f"was made by PostgreSQL {major}, this release brings PostgreSQL 18"
    with pytest.raises(CoderError, match=told) as refused:
        async with run_postgres(place, durable=False):
            pass
    assert refused.value.code == "postgres_missing" and "coder server backup" in refused.value.hint
    # With the old programs at hand, this release runs the old database, and makes the backup itself.
    said = await coder(home, "server", "backup", "--output", str(home / "b"), bin_dir=str(programs))
    assert "restored once to check it" in said
    said = await coder(home, "server", "restore", str(home / "b"), "-y")
    assert "What was there before is in" in said
    async with run_postgres(place, durable=False) as url:
        assert await version_of(url) == postgres_programs.MAJOR
        assert await backup.count_rows(url) == before


async def test_failed_restore_keeps_old_database(old: tuple[int, Path], home: Path) -> None:
    """It runs on with the old programs, as if nothing had been."""
    major, programs = old
    place = server_config(Inputs(env={}), home / "config").data_path
    with pytest.MonkeyPatch.context() as release_before:
        release_before.setattr(postgres_programs, "MAJOR", major)
        async with run_postgres(place, bin_dir=str(programs), durable=False):
            pass
    with tarfile.open(KEPT) as tar:
        manifest, dump = (tar.extractfile(name).read() for name in ("manifest.json", "database.dump"))  # type: ignore[union-attr]
    head = json.loads(manifest)
    head["rows"]["users"] += 1
    with tarfile.open(home / "lying", "w") as tar:
        for name, data in (("manifest.json", json.dumps(head).encode()), ("database.dump", dump)):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    said = await coder(home, "server", "restore", str(home / "lying"), "-y", code=1)
    assert "not everything arrived: users" in said
    async with run_postgres(place, bin_dir=str(programs), durable=False) as url:
        assert await version_of(url) == major
