"""Backups: written during use, checked, restored; and every refusal."""

from __future__ import annotations

import dataclasses
import io
import json
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from coder.base.config import Inputs
from coder.base.errors import CoderError, explain_error
from coder.coderd.config.reading import server_config
from coder.coderd.store.engine import backup, postgres
from coder.coderd.store.engine.database import open_database
from coder.coderd.store.engine.migrate import known_revisions, migrate
from coder.coderd.store.engine.postgres import run_postgres
from tests.kit.programs.command_line import run_cli


@pytest.fixture(scope="module")
def first_cluster() -> Iterator[Path]:
    """Return the folder of this file's first cluster in its initial state."""
    with tempfile.TemporaryDirectory(prefix="coder-test-") as folder:
        yield Path(folder) / "data"


@pytest.fixture(autouse=True)
def copied_clusters(first_cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace initialisation with a copy: it takes seconds of computing, and test_postgres.py tests it."""
    plain = postgres._initialise

    async def initialise(cluster: Any, programs: Path, durable: bool) -> None:
        if first_cluster.exists() and not cluster.data.exists():
            subprocess.run(["cp", "-a", first_cluster, cluster.data], check=True)
            return
        await plain(cluster, programs, durable)
        if not first_cluster.exists():
            subprocess.run(["cp", "-a", cluster.data, first_cluster], check=True)

    monkeypatch.setattr(postgres, "_initialise", initialise)


@pytest.fixture
def home(open_path: Path) -> Path:
    """Return a folder: Postgres runs as another user when we are root."""
    return open_path


async def run(url: str, *statements: str) -> list[str]:
    async with open_database(url) as database:

        async def work(tx: object) -> list[str]:
            for statement in statements:
                result = await tx.execute(text(statement))  # type: ignore[attr-defined]
            return [str(row[0]) for row in result] if result.returns_rows else []  # type: ignore[possibly-undefined]

        return await database.run(work)


async def coder(home: Path, *words: str, code: int = 0) -> str:
    done = await run_cli(list(words), home=home, env={"CODER_CONFIG_DIR": str(home / "config")})
    assert done.code == code, (words, done.stdout, done.stderr)
    return done.stderr if code else done.stdout


async def test_backup_round_trip(home: Path) -> None:
    where, file = home / "data", home / "one.backup"
    async with run_postgres(where, durable=False) as url:
        async with open_database(url) as database:
            await migrate(database)
        await run(url, 'CREATE TABLE "it\'s" (a int)', 'INSERT INTO "it\'s" SELECT generate_series(1, 5000)')
        programs = backup.Programs(where)
        manifest = await backup.write_backup(url, file, programs, "2026-01-01T00:00:00+00:00")
        assert manifest.rows["it's"] == 5000 and manifest.revision == known_revisions()[-1]
        assert file.stat().st_mode & 0o777 == 0o600
        assert sorted(path.name for path in home.iterdir() if path.is_file()) == [file.name]
        dump = home / "dump"
        assert backup.read_backup(file, dump) == manifest
        with pytest.raises(CoderError, match="has tables already"):
            await backup.load_backup(url, dump, manifest, programs)
    async with run_postgres(home / "elsewhere", durable=False) as url:
        lying = dataclasses.replace(manifest, rows={**manifest.rows, "it's": 5001})
        with pytest.raises(CoderError, match="not everything arrived: it's"):
            await backup.load_backup(url, dump, lying, programs)
    with pytest.raises(CoderError, match="there is no directory"):
        await backup.write_backup("postgresql://nobody@localhost:1/none", home / "no/such/file", programs, "")


def every_damage(file: Path) -> list[bytes]:
    whole = file.read_bytes()
    results = [b"", b"no tar", whole[: len(whole) // 2], whole[:600]]
    at = len(whole) // 2
    results.append(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    manifests: tuple[Any, ...] = ({}, [], {"format": 1})
    for manifest in manifests:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            for name, data in (("manifest.json", json.dumps(manifest).encode()), ("database.dump", b"x")):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        results.append(buffer.getvalue())
    return results


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is full")
def test_full_disk_is_no_damaged_backup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The backup is unpacked to another disk than its own."""
    dump, file = tmp_path / "dump", tmp_path / "backup"
    dump.write_bytes(b"d" * 100_000)
    valid = backup.Manifest(1, "v1", known_revisions()[0], "", backup._sha256(dump), {"users": 1})
    with tarfile.open(file, "w") as tar:
        backup._add_manifest(tar, valid)
        tar.add(dump, "database.dump")
    monkeypatch.setattr(backup, "_private", lambda _path: Path("/dev/full").open("wb"))  # noqa: SIM115 - the caller closes it
    with pytest.raises(CoderError) as caught:
        backup.read_backup(file, tmp_path / "into")
    assert explain_error(caught.value) == (
        f"cannot unpack the backup to {tmp_path}: No space left on device\n"
        "Free some space, or choose another directory by TMPDIR."
    )


def test_damaged_or_newer_backups_are_refused(tmp_path: Path) -> None:
    dump, file = tmp_path / "dump", tmp_path / "backup"
    dump.write_bytes(b"d" * 100_000)
    valid = backup.Manifest(1, "v1", known_revisions()[0], "", backup._sha256(dump), {"users": 1})

    def write(manifest: backup.Manifest) -> None:
        with tarfile.open(file, "w") as tar:
            backup._add_manifest(tar, manifest)
            tar.add(dump, "database.dump")

    write(valid)
    assert backup.read_backup(file, tmp_path / "out") == valid
    for data in every_damage(file):
        (tmp_path / "bad").write_bytes(data)
        with pytest.raises(CoderError) as refused:
            backup.read_backup(tmp_path / "bad", tmp_path / "out")
        assert refused.value.code == "bad_backup" and "ReadError" not in explain_error(refused.value)
    for empty in (dataclasses.replace(valid, rows={}), dataclasses.replace(valid, revision="")):
        write(empty)
        with pytest.raises(CoderError, match="contains no deployment"):
            backup.read_backup(file, tmp_path / "out")
    write(dataclasses.replace(valid, revision="9999", version="v99"))
    with pytest.raises(CoderError, match=r"newer release \(v99, schema 9999\)"):
        backup.read_backup(file, tmp_path / "out")


async def test_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(CoderError, match=f"^there is no directory {tmp_path}/none$"):
        await backup.write_backup("", tmp_path / "none/new.backup", backup.Programs(tmp_path), "")


async def test_the_commands(home: Path) -> None:
    data_path = server_config(Inputs(env={}), home / "config").data_path
    async with run_postgres(data_path, durable=False) as url:
        async with open_database(url) as database:
            await migrate(database)
        await run(url, "CREATE TABLE kept (a int)", "INSERT INTO kept VALUES (1), (2)")
        said = await coder(home, "server", "backup", "--output", str(home / "b"))  # during use
        assert "restored once to check it" in said
        assert "is there already" in await coder(home, "server", "backup", "-o", str(home / "b"), code=1)
        refused = await coder(home, "server", "restore", str(home / "b"), "-y", code=1)
        assert "another server is using" in refused
        await run(url, "DELETE FROM kept")
    said = await coder(home, "server", "restore", str(home / "b"), "-y")
    assert "What was there before is in" in said
    async with run_postgres(data_path, durable=False) as url:
        assert await run(url, "SELECT count(*) FROM kept") == ["2"]
    whole = (home / "b").read_bytes()
    with tarfile.open(home / "b") as tar:
        head = json.loads(tar.extractfile("manifest.json").read())  # type: ignore[union-attr]
        dump = tar.extractfile("database.dump").read()  # type: ignore[union-attr]
    head["rows"]["kept"] = 3
    with tarfile.open(home / "c", "w") as tar:
        for name, data in (("manifest.json", json.dumps(head).encode()), ("database.dump", dump)):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    assert len(whole) > 1000 and "not everything arrived: kept" in await coder(
        home, "server", "restore", str(home / "c"), "-y", code=1
    )
    async with run_postgres(data_path, durable=False) as url:  # a failed restore puts the old data back
        assert await run(url, "SELECT count(*) FROM kept") == ["2"]
