"""Backup of a deployment's database to a single file, and restore.

The file is a tar of `manifest.json` and `database.dump` (PostgreSQL's custom format, which later majors read, too: a
backup from the old major, restored with the new one, is the upgrade path between them). It is written from one snapshot
while the server runs. A backup is complete only after it was restored into a scratch database and its rows counted.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tarfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from io import BufferedRandom
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import trio
from sqlalchemy import text

from coder.base.child_env import child_env
from coder.base.errors import CoderError
from coder.base.version import BUILD_VERSION
from coder.coderd.store.engine.connection_string import parse_connection_string
from coder.coderd.store.engine.database import open_database
from coder.coderd.store.engine.migrate import known_revisions, require_deployment
from coder.coderd.store.engine.postgres import client_program, run_postgres
from coder.net.aws_login import PARAMETER, login_of

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

_FORMAT = 1
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Manifest:
    """Description of a backup."""

    format: int
    version: str
    revision: str
    made_at: str
    sha256: str
    """SHA-256 of `database.dump`."""
    rows: dict[str, int]
    """Rows by table, as counted in the scratch database."""

    @property
    def holds_deployment(self) -> bool:
        return bool(self.revision) and "users" in self.rows


@dataclass(frozen=True, slots=True)
class Programs:
    """Search locations of the built-in database's programs."""

    data_path: Path
    bin_dir: str = ""


async def write_backup(url: str, target: Path, programs: Programs, made_at: str) -> Manifest:
    """Write a backup. Raises CoderError; then there is no file of that name. A database without a deployment is
    refused."""
    dump = target.with_name(f".{target.name}.dump")
    part = target.with_name(f".{target.name}.part")
    try:
        with _private(dump) as file:
            async with open_database(url) as database:
                await require_deployment(database)
            await _run(programs, "pg_dump", ["--format=custom", "--no-owner", "--no-acl"], url, stdout=file)
        async with _scratch(programs) as scratch:
            await _load(scratch, dump, programs)
            revision, rows = await count_rows(scratch)
        manifest = Manifest(_FORMAT, BUILD_VERSION, revision, made_at, _sha256(dump), rows)
        if not manifest.holds_deployment:
            raise CoderError("nothing_to_back_up", "the database holds no deployment: it has no users table")
        with _private(part) as file, tarfile.open(fileobj=file, mode="w") as tar:
            _add_manifest(tar, manifest)
            tar.add(dump, "database.dump", filter=_anonymous)
            file.flush()
        part.replace(target)
    except OSError as error:
        if not target.parent.is_dir():
            hint = "Create it, or choose another --output."
            raise CoderError("backup_failed", f"there is no directory {target.parent}", hint) from None
        raise CoderError("backup_failed", f"cannot write {target}", "Check the free space and rights.") from error
    finally:
        dump.unlink(missing_ok=True)
        part.unlink(missing_ok=True)
    return manifest


def read_backup(source: Path, into: Path) -> Manifest:
    """Verify a whole backup and leave its dump at `into`. Raises CoderError for an invalid or damaged one."""
    try:
        with tarfile.open(source) as tar:
            head, dump = tar.extractfile("manifest.json"), tar.extractfile("database.dump")
            if head is None or dump is None:
                raise KeyError
            manifest = Manifest(**json.loads(head.read(_CHUNK)))
            _copy_dump(source, dump, into)
    except (tarfile.TarError, KeyError, ValueError, TypeError, EOFError):
        # Without the cause: the library lists what each of its formats expects.
        hint = "Use another file of `coder server backup`."
        raise CoderError("bad_backup", f"{source} is no backup, or is damaged", hint) from None
    except OSError as error:
        raise CoderError("bad_backup", f"cannot read {source}") from error
    if manifest.format != _FORMAT or _sha256(into) != manifest.sha256:
        raise CoderError("bad_backup", f"{source} is damaged: its checksum does not match", "Use another backup.")
    if not manifest.holds_deployment:
        raise CoderError(
            "bad_backup", f"{source} contains no deployment: it is a backup of an empty database", "Use another backup."
        )
    if manifest.revision not in known_revisions():
        raise CoderError(
            "schema_newer",
            f"the backup is from a newer release ({manifest.version}, schema {manifest.revision})",
            "Restore it with that release.",
        )
    return manifest


def _copy_dump(source: Path, dump: IO[bytes], into: Path) -> None:
    """Copy the database's part of a backup. Raises CoderError, and tarfile's errors for a damaged one."""

    def piece() -> bytes:
        try:
            return dump.read(_CHUNK)
        except OSError as error:
            raise CoderError("bad_backup", f"cannot read {source}") from error

    try:
        with _private(into) as file:
            while chunk := piece():
                file.write(chunk)
    except OSError as error:
        hint = "Free some space, or choose another directory by TMPDIR."
        raise CoderError("no_file", f"cannot unpack the backup to {into.parent}", hint) from error


async def load_backup(url: str, dump: Path, manifest: Manifest, programs: Programs) -> None:
    """Restore into an empty database. Raises CoderError when it is not empty, or rows are missing afterwards."""
    _, before = await count_rows(url)
    if before:
        raise CoderError("not_empty", "the database to restore into has tables already", "Give an empty one.")
    await _load(url, dump, programs)
    revision, rows = await count_rows(url)
    if (revision, rows) != (manifest.revision, manifest.rows):
        different = sorted(
            name for name in rows.keys() | manifest.rows.keys() if rows.get(name) != manifest.rows.get(name)
        )
        raise CoderError("restore_failed", f"not everything arrived: {', '.join(different) or 'the schema differs'}")


async def count_rows(url: str) -> tuple[str, dict[str, int]]:
    """Return the schema's revision and the number of rows of each table."""

    async def count(tx: Tx) -> tuple[str, dict[str, int]]:
        names = (
            await tx.execute(text("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"))
        ).scalars()
        results = {}
        for name in list(names):
            quoted = '"' + name.replace('"', '""') + '"'
            results[name] = int((await tx.execute(text(f"SELECT count(*) FROM {quoted}"))).scalar_one())  # noqa: S608
        if "alembic_version" not in results:
            return "", results
        return (await tx.execute(text("SELECT version_num FROM alembic_version"))).scalar() or "", results

    async with open_database(url) as database:
        return await database.read(count)


@asynccontextmanager
async def _scratch(programs: Programs) -> AsyncIterator[str]:
    async with run_postgres(programs.data_path, bin_dir=programs.bin_dir, ephemeral=True, durable=False) as url:
        yield url


async def _load(url: str, dump: Path, programs: Programs) -> None:
    with dump.open("rb") as file:
        await _run(programs, "pg_restore", ["--exit-on-error", "--no-owner", "--no-acl"], url, stdin=file)


async def _run(
    programs: Programs,
    name: str,
    args: list[str],
    url: str,
    *,
    stdin: IO[bytes] | None = None,
    stdout: IO[bytes] | None = None,
) -> None:
    program, options = client_program(programs.data_path, name, programs.bin_dir)
    public, password = await trio.to_thread.run_sync(_without_password, url)
    options["env"] = child_env({"PGPASSWORD": password} if password else None)
    if stdin is not None:
        options["stdin"] = stdin
    command = [str(program), *args, f"--dbname={public}"]

    def run() -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, check=False, **options)

    done = await trio.to_thread.run_sync(run)
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[:1]
        raise CoderError("backup_failed", f"{name} failed: {' '.join(last) or done.returncode}")


def _without_password(url: str) -> tuple[str, str]:
    """Split off the password: every user on the machine can read a command line."""
    login = login_of(given := parse_connection_string(url).parameters)
    if login is not None:
        shown = {name: value for name, value in given.items() if name not in {PARAMETER, "password"}}
        return _pairs({"sslmode": "require", **shown}), login.password()
    parts = urlsplit(url)
    if not parts.password:
        return url, ""
    user, _, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}@{host}")), parts.password


def _pairs(parameters: Mapping[str, str]) -> str:
    """Return parameters in libpq's `key=value` form."""
    quoted = {name: value.replace("\\", "\\\\").replace("'", "\\'") for name, value in parameters.items()}
    return " ".join(f"{name}='{value}'" for name, value in quoted.items())


def _private(path: Path) -> BufferedRandom:
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w+b")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def _add_manifest(tar: tarfile.TarFile, manifest: Manifest) -> None:
    import io

    data = json.dumps(asdict(manifest), indent=1).encode()
    info = tarfile.TarInfo("manifest.json")
    info.size, info.mode = len(data), 0o600
    tar.addfile(info, io.BytesIO(data))
