"""Commands on a deployment's database: without one they fail and create nothing."""

from __future__ import annotations

import base64
import os
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import trio

from coder.base.config import Option
from coder.cli.core.command import load
from coder.cli.core.command_table import COMMANDS
from coder.cli.server import direct_database, installed_service
from coder.coderd.store.engine import postgres_cluster
from coder.coderd.store.engine.database import open_database
from coder.coderd.store.engine.migrate import migrate
from coder.coderd.store.engine.postgres import run_postgres
from coder.coderd.store.engine.postgres_cluster import Account, cluster_of, find_cluster
from tests.kit.agents.attached_machine import NOBODY
from tests.kit.programs.command_line import run_cli
from tests.kit.server.postgres_server import fresh_database

KEY = base64.b64encode(bytes(32)).decode()
KEPT = next((Path(__file__).parents[3] / "data/databases").glob("*.backup"))
DIRECT: dict[str, tuple[str, ...]] = {
    "reset-password": ("admin",),
    "server backup": ("--output", "new.backup"),
    "server create-admin-user": ("--username", "zoe", "--email", "zoe@b.c", "--password", "SomeSecure123!"),
    "server dbcrypt decrypt": ("--keys", KEY, "-y"),
    "server dbcrypt delete": ("-y",),
    "server dbcrypt rotate": ("--new-key", KEY, "-y"),
    "server fix-oidc-links": ("--issuer-url", "https://login.example.com", "--dry-run"),
    "server import": ("--from", "postgres://coder@127.0.0.1:1/coder"),
    "server postgres-builtin-serve": (),
    "server postgres-builtin-url": (),
    "server regenerate-vapid-keypair": ("-y",),
    "server restore": (str(KEPT), "-y"),
}
"""Command lines of every command that uses a database or a data directory, except for the server itself."""
FAILS_THERE = {"reset-password", "server import", "server postgres-builtin-serve"}
"""Commands that cannot succeed on the kept database: it has no such user; there is no source; signals need the main
thread."""
CREATING = {"server import", "server restore"}
"""Commands that fill a new directory or an empty database that the operator names."""
each = pytest.mark.parametrize("words", DIRECT)


def _files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_table_has_every_direct_command() -> None:
    def uses_database(words: str) -> bool:
        options: tuple[Option, ...] = load(words).options
        return "builtin" in words or any(option.flag == "postgres-url" for option in options)

    others = {"doctor", "server", "upgrade"}  # the first only looks, the last also works without a database
    assert {words for words in COMMANDS if words not in others and uses_database(words)} == DIRECT.keys()


def test_only_server_creates_database() -> None:
    """`run_postgres` creates a missing database, so commands reach it only after a check."""
    sources = Path(direct_database.__file__).parents[1].rglob("*.py")
    callers = {path.name for path in sources if "run_postgres(" in path.read_text()}
    assert callers == {"direct_database.py", "backup.py", "builtin_database.py", "import_original.py"}


@each
async def test_empty_home_is_rejected(words: str, open_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed_service, "UNITS", ())
    monkeypatch.setattr(installed_service, "DATA", open_path / "no service")
    done = await run_cli([*words.split(), *DIRECT[words]], home=open_path)
    assert done.code == 1, done.stdout
    assert f"there is no database in {open_path}/.config/coderv2" in done.stderr
    assert "--global-config or CODER_CONFIG_DIR" in done.stderr and "coder.service" not in done.stderr
    assert _files(open_path) == []


@pytest.mark.parametrize("words", sorted(DIRECT.keys() - CREATING))
async def test_named_empty_directory_is_rejected(words: str, open_path: Path) -> None:
    (open_path / "data").mkdir()
    done = await run_cli(["--global-config", str(open_path / "data"), *words.split(), *DIRECT[words]], home=open_path)
    assert done.code == 1 and f"there is no database in {open_path}/data" in done.stderr
    assert _files(open_path) == ["data"]


@pytest.mark.parametrize("words", sorted(words for words in DIRECT if "builtin" not in words and words not in CREATING))
async def test_empty_external_database_is_rejected(words: str, open_path: Path) -> None:
    async with fresh_database(migrated=False) as url:
        env = {"CODER_PG_CONNECTION_URL": url, "CODER_EXTERNAL_TOKEN_ENCRYPTION_POSTGRES_URL": url}
        typed = "SomeSecure123!\nSomeSecure123!\n"
        done = await run_cli([*words.split(), *DIRECT[words]], home=open_path, env=env, stdin=typed)
        assert done.code == 1 and "the database has no tables of a deployment" in done.stderr, done.stderr
        assert _files(open_path) == []
        async with open_database(url) as database:
            await migrate(database)


async def test_error_names_service_directory(open_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unit = open_path / "coder.service"
    unit.write_text(
        "[Service]\nUser=coder\nEnvironment=CODER_CONFIG_DIR=/srv/coder CODER_CACHE_DIRECTORY=/var/cache/coder\n"
    )
    monkeypatch.setattr(installed_service, "UNITS", (open_path / "none", unit))
    done = await run_cli(["server", "backup"], home=open_path)
    assert "coder.service" in done.stderr and "sudo -u coder env CODER_CONFIG_DIR=/srv/coder coder" in done.stderr
    done = await run_cli(["--global-config", "/srv/coder", "server", "backup"], home=open_path)
    assert "coder.service creates one here at its first start" in done.stderr
    monkeypatch.setattr(installed_service, "UNITS", ())
    monkeypatch.setattr(installed_service, "DATA", open_path)
    done = await run_cli(["server", "backup"], home=open_path)
    assert f"CODER_CONFIG_DIR={open_path} coder" in done.stderr


@pytest.fixture(scope="module")
def service_data() -> Iterator[Path]:
    """The data directory of an installed service, with a deployment; files of root belong to the service's user."""
    with tempfile.TemporaryDirectory(prefix="coder-service-") as folder:
        Path(folder).chmod(0o755)
        data = Path(folder) / "data"
        data.mkdir()
        if os.geteuid() == 0:
            os.chown(data, NOBODY, NOBODY)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(postgres_cluster, "_USERS", ("nobody",))
            words = ["--global-config", str(data), "server", "restore", str(KEPT), "-y"]
            done = trio.run(partial(run_cli, words, home=Path(folder)))
        assert done.code == 0, done.stderr
        yield data


@each
async def test_service_database_is_found(
    words: str, service_data: Path, open_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = open_path / "coder.service"
    unit.write_text(f"[Service]\nUser=nobody\nEnvironment=CODER_CONFIG_DIR={service_data} HOME=/var/lib/coder\n")
    monkeypatch.setattr(installed_service, "UNITS", (unit,))
    home = open_path / "operator"
    home.mkdir()
    typed = "SomeSecure123!\nSomeSecure123!\n"
    done = await run_cli([*words.split(), *DIRECT[words]], home=home, stdin=typed)
    assert f"Acting on the service coder, {service_data}." in done.stderr, done.stderr
    assert done.code == (words in FAILS_THERE), done.stderr
    assert not (home / ".config").exists()
    owner = NOBODY if os.geteuid() == 0 else os.geteuid()
    assert [path for path in service_data.rglob("*") if path.lstat().st_uid != owner] == []


async def test_named_directory_wins_over_service(
    service_data: Path, open_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = open_path / "coder.service"
    unit.write_text(f"[Service]\nEnvironment=CODER_CONFIG_DIR={service_data}\n")
    monkeypatch.setattr(installed_service, "UNITS", (unit,))
    done = await run_cli(["--global-config", str(open_path / "own"), "server", "backup"], home=open_path)
    assert done.code == 1 and f"there is no database in {open_path}/own" in done.stderr
    assert "Acting on" not in done.stderr


async def test_service_with_external_database(open_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with fresh_database() as url:
        settings = open_path / "coder.env"
        settings.write_text(f"# comment\nCODER_PG_CONNECTION_URL='{url}'\n")
        unit = open_path / "coder.service"
        unit.write_text(f"[Service]\nUser=coder\nEnvironmentFile=-{settings}\n")
        monkeypatch.setattr(installed_service, "UNITS", (unit,))
        done = await run_cli(["server", "backup", "-o", "new.backup"], home=open_path)
        assert done.code == 0, done.stderr
        assert "Acting on the service coder, its external database." in done.stderr and url not in done.stderr
        assert (open_path / "new.backup").is_file()


def test_unit_files_are_read_as_by_systemd(open_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unit, drop_ins = open_path / "coder.service", open_path / "coder.service.d"
    drop_ins.mkdir()
    (open_path / "env").write_text("; no\nCODER_HTTP_ADDRESS=0.0.0.0:80\nB=two words\n")
    unit.write_text(
        "[Unit]\nUser=wrong\n[Service]\nUser=coder\n# Environment=X=no\n"
        f'Environment=A=1 "C=a b" \\\n  CODER_CONFIG_DIR=/srv/a\nEnvironmentFile={open_path}/env\n'
        "EnvironmentFile=-/nonexistent\n"
    )
    (drop_ins / "own.conf").write_text("[Service]\nUser=other\nEnvironment=CODER_CONFIG_DIR=/srv/b\n")
    monkeypatch.setattr(installed_service, "UNITS", (unit,))
    monkeypatch.setattr(installed_service, "_DROP_INS", drop_ins)
    service = installed_service.find_service()
    assert service is not None and (service.user, service.data_dir) == ("other", Path("/srv/b"))
    assert service.environment["B"] == "two words" and service.environment["C"] == "a b"
    assert "X" not in service.environment and service.unreadable == ""


async def test_a_directory_of_another_user(open_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: Path, **_options: object) -> bool:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as closed:
        closed.setattr(Path, "exists", refuse)
        with pytest.raises(Exception, match="this user may not read"):
            find_cluster(open_path, Account(os.getuid(), os.getgid(), "", False))


def test_incomplete_database_is_rejected(open_path: Path) -> None:
    """A killed first start leaves files and a marker."""
    account = Account(os.geteuid(), os.getegid(), "", False)
    assert find_cluster(open_path, account) is None
    created = cluster_of(open_path, account)
    created.data.mkdir()
    (created.data / "PG_VERSION").write_text("18\n")
    assert find_cluster(open_path, account) == created
    (created.root / "initialising").touch()
    assert find_cluster(open_path, account) is None


async def test_restore_into_new_directory(open_path: Path) -> None:
    """After the loss of a machine, only a backup and an empty directory exist."""
    path = open_path / "new"
    done = await run_cli(["server", "restore", str(KEPT), "-y"], home=open_path)
    assert done.code == 1 and "To restore into a new directory, set it with --global-config" in done.stderr
    done = await run_cli(["--global-config", str(path), "server", "restore", str(KEPT), "-y"], home=open_path)
    assert done.code == 0, done.stderr
    assert f"Restored into the database of {path}" in done.stdout and "What was there before" not in done.stdout
    async with run_postgres(path, durable=False):
        done = await run_cli(["--global-config", str(path), "server", "backup", "-o", "again"], home=open_path)
    assert done.code == 0 and (open_path / "again").is_file(), done.stderr
    for words in ("postgres-builtin-url", "fix-oidc-links --force-reset-all --dry-run"):
        done = await run_cli(["--global-config", str(path), "server", *words.split()], home=open_path)
        assert done.code == 0, done.stderr


async def test_commands_beside_running_server(open_path: Path) -> None:
    """The help says which commands need a stopped server; all others use the database of the running one."""
    path = open_path / "new"
    done = await run_cli(["--global-config", str(path), "server", "restore", str(KEPT), "-y"], home=open_path)
    assert done.code == 0, done.stderr
    typed = "SomeSecure123!\nSomeSecure123!\n"
    async with run_postgres(path, durable=False):
        for words in sorted(DIRECT.keys() - {"server import", "server postgres-builtin-serve"}):
            needs_stop = "whose server must be stopped" in str(load(words).options)
            arguments = ["--global-config", str(path), *words.split(), *DIRECT[words]]
            done = await run_cli(arguments, home=open_path, stdin=typed)
            assert ("another server is using" in done.stderr) == needs_stop, f"{words}: {done.stderr}"
            assert done.code == (needs_stop or words in FAILS_THERE), f"{words}: {done.stderr}"
