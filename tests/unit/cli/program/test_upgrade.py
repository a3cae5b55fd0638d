"""`coder upgrade`: what it shows, installs, keeps and puts back, and that any failure leaves the program unchanged."""

from __future__ import annotations

import errno
import fcntl
import http.server
import io
import json
import os
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coder.base.errors import CoderError
from coder.base.version import BUILD_VERSION
from coder.cli.main import main
from coder.cli.program import replacement, upgrade
from coder.cli.server import upgrade_backup
from coder.net.release_source import read_location
from tests.kit.programs.releases import KEY, NAME, NEWER, NEWEST, OLD, Mirror, script, version_of


def run(mirror: Mirror | str, *words: str) -> int:
    location = mirror if isinstance(mirror, str) else str(mirror.folder)
    return main(["upgrade", "--release-list", location, "--key", KEY.public_line, *words])


def shown(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def assert_unchanged(program: Path) -> None:
    assert program.read_bytes() == OLD and stat.S_IMODE(program.stat().st_mode) == 0o751
    assert [path.name for path in program.parent.iterdir()] == ["coder"]


def test_check_shows_what_changes(program: Path, mirror: Mirror, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(mirror, "--check") == 0
    text = capsys.readouterr().out
    assert f"{BUILD_VERSION} -> {NEWEST}" in text and "rc.1" not in text
    assert text.index("Quieter logs.") < text.index("Faster tunnels.") and "https://example.com/notes" in text
    assert run(mirror, "--check", "--output", "json") == 0
    found = shown(capsys)
    assert (found["action"], found["current"], found["target"]) == ("check", BUILD_VERSION, NEWEST)
    assert [release["version"] for release in found["releases"]] == [NEWEST, NEWER]
    assert_unchanged(program)


def test_upgrade_keeps_the_program_before(program: Path, mirror: Mirror, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(mirror, "--yes", "--output", "json") == 0
    assert shown(capsys)["action"] == "upgraded"
    assert version_of(program) == NEWEST and stat.S_IMODE(program.stat().st_mode) == 0o751
    assert version_of(program.with_name("coder.previous")) == BUILD_VERSION
    assert {path.name for path in program.parent.iterdir()} == {"coder", "coder.previous", "coder.previous.json"}


def test_rollback_exchanges_both(program: Path, mirror: Mirror, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(mirror, "--yes") == 0
    assert main(["upgrade", "--rollback", "--dry-run"]) == 0 and version_of(program) == NEWEST
    assert main(["upgrade", "--rollback", "--yes"]) == 0
    assert f"is now {BUILD_VERSION}" in capsys.readouterr().out
    assert (version_of(program), version_of(program.with_name("coder.previous"))) == (BUILD_VERSION, NEWEST)


def test_previous_program_rolls_back(
    program: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A release that starts in the trial, and not any more."""
    assert run(mirror, "--yes") == 0
    program.write_bytes(b"broken")
    monkeypatch.setenv("CODER_SELF", str(program.with_name("coder.previous")))
    assert run(mirror, "--yes") == 1
    assert f"run {program} upgrade, or use --rollback" in capsys.readouterr().err
    assert main(["upgrade", "--rollback", "--yes", "--output", "json"]) == 0
    found = shown(capsys)
    assert (found["current"], found["target"]) == (NEWEST, BUILD_VERSION)
    assert version_of(program) == BUILD_VERSION


@pytest.mark.parametrize(
    ("name", "previous"),
    [
        ("coder", "coder.previous"),
        ("coder.exe", "coder.previous.exe"),
        ("coder-2.34.0", "coder-2.34.0.previous"),
        ("coder-linux-amd64", "coder-linux-amd64.previous"),
    ],
)
def test_names_of_both_programs(name: str, previous: str) -> None:
    path = Path("/usr/local/bin") / name
    assert replacement.previous_path(path).name == previous
    assert replacement.installed_path(path) == path == replacement.installed_path(path.with_name(previous))


def test_rollback_without_an_upgrade(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["upgrade", "--rollback", "--yes"]) == 1
    assert "nothing was upgraded here" in capsys.readouterr().err
    assert_unchanged(program)


@pytest.mark.parametrize(("version", "target"), [("2.35.0", NEWER), ("v2.37.0-rc.1", "v2.37.0-rc.1")])
def test_named_version_is_installed(program: Path, mirror: Mirror, version: str, target: str) -> None:
    assert run(mirror, "--yes", "--version", version) == 0
    assert version_of(program) == target


def test_older_version_only_by_name(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mirror = Mirror(tmp_path / "mirror")
    mirror.add("v2.33.0")
    assert run(mirror, "--yes") == 0
    assert f"{BUILD_VERSION} is the newest release" in capsys.readouterr().out
    assert_unchanged(program)
    assert run(mirror, "--yes", "--version", "v2.33.0") == 0
    assert version_of(program) == "v2.33.0"


def test_dry_run_tries_and_changes_nothing(program: Path, mirror: Mirror, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(mirror, "--dry-run") == 0
    assert f"{NEWEST} is verified and starts here" in capsys.readouterr().out
    assert_unchanged(program)


def test_link_to_the_program_stays(program: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    """Users link to the program from a folder on their PATH: the file is replaced, the link stays."""
    link = program.parents[1] / "coder"
    link.symlink_to(program)
    monkeypatch.setenv("CODER_SELF", str(link))
    assert run(mirror, "--yes") == 0
    assert link.is_symlink() and version_of(program) == NEWEST


# ---- the list


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("nonsense", "the list of releases is invalid"),
        ('{"releases": [{"version": "latest", "folder": "x"}]}', "'latest' is no version"),
        ('{"releases": [{"version": "v2.40.0"}]}', "missing required field `folder`"),
        (json.dumps({"releases": [{"version": "v2.40.0", "folder": "x"}] * 1001}), "more than 1000 releases"),
        ("[" * 5000, "the list of releases is invalid"),
    ],
)
def test_invalid_list(
    program: Path, mirror: Mirror, content: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (mirror.folder / "releases.json").write_text(content)
    assert run(mirror, "--check") == 1
    assert reason in capsys.readouterr().err.replace('"', "'")


def test_absent_list_and_version(program: Path, mirror: Mirror, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["upgrade", "--check"]) == 1
    assert "no list of releases is named" in capsys.readouterr().err
    assert run("/nonexistent/releases.json", "--check") == 1
    assert "No such file" in capsys.readouterr().err
    assert run(mirror, "--check", "--version", "v9.9.9") == 1
    assert f"it has {NEWER}, {NEWEST}" in capsys.readouterr().err


# ---- over HTTP


class Handler(http.server.SimpleHTTPRequestHandler):
    half = False

    def do_GET(self) -> None:
        if self.path.startswith("/moved/"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/moved"))
            self.end_headers()
        elif self.half and self.path.endswith(NAME):
            self.send_response(200)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            self.wfile.write(b"half of it")
        else:
            super().do_GET()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def served(mirror: Mirror) -> Iterator[str]:
    def handler(*args: Any) -> Handler:
        return Handler(*args, directory=str(mirror.folder))

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("path", ["", "/", "/releases.json", "/moved/releases.json"])
def test_url_of_a_list(program: Path, served: str, path: str) -> None:
    assert run(f"{served}{path}", "--yes") == 0
    assert version_of(program) == NEWEST


# ---- failures


def flip(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"version", b"VERSION"))


def forge(sums: Path) -> None:
    sums.write_text(f"{'0' * 64}  {NAME}\n")


def refuse(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, number: int, match: str = "") -> None:
    """The system refuses a call; with `match`, only for paths that end so."""
    original = getattr(owner, name)

    def refused(*args: Any, **options: Any) -> Any:
        if not match or (args and str(args[-1]).endswith(match)):
            raise OSError(number, os.strerror(number), str(args[0]) if args else name)
        return original(*args, **options)

    monkeypatch.setattr(owner, name, refused)


Fault = Callable[[Path, pytest.MonkeyPatch], None]
FAULTS: dict[str, tuple[Fault, str]] = {
    "changed program": (lambda place, _: flip(place / NAME), "the signed SHA256SUMS has"),
    "changed checksums": (
        lambda place, _: forge(place / "SHA256SUMS"),
        "the signature of SHA256SUMS is wrong",
    ),
    "no signature": (lambda place, _: (place / "SHA256SUMS.minisig").unlink(), "SHA256SUMS.minisig cannot be read"),
    "no program for this machine": (lambda place, _: (place / NAME).unlink(), f"{NAME} cannot be read"),
    "disk full": (lambda _, patch: refuse(patch, os, "fsync", errno.ENOSPC), "No space left on device"),
    "file system full of files": (
        lambda _, patch: refuse(patch, tempfile, "mkdtemp", errno.EDQUOT),
        "quota exceeded",
    ),
    "not the owner": (
        lambda _, patch: refuse(patch, tempfile, "mkdtemp", errno.EACCES),
        "may not replace the program",
    ),
    "read-only folder": (
        lambda _, patch: refuse(patch, tempfile, "mkdtemp", errno.EROFS),
        "Read-only file system",
    ),
    "held program": (lambda _, patch: refuse(patch, Path, "replace", errno.EBUSY, "bin/coder"), "resource busy"),
    "no permission to rename": (
        lambda _, patch: refuse(patch, Path, "replace", errno.EPERM, "coder.previous"),
        "may not replace the program",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_leaves_the_program(
    program: Path, mirror: Mirror, fault: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begin, reason = FAULTS[fault]
    begin(mirror.folder / NEWEST, monkeypatch)
    assert run(mirror, "--yes") == 1
    assert reason.lower() in capsys.readouterr().err.lower()
    assert program.read_bytes() == OLD and version_of(program) == BUILD_VERSION
    assert not list(program.parent.glob(".*"))
    monkeypatch.undo()


PROGRAMS = {
    "exits": (b"#!/bin/sh\necho no such symbol >&2\nexit 3\n", "does not start here: no such symbol"),
    "another system's": (b"MZ\0\0", "does not start here: Exec format error"),
    "nothing": (b"", "does not start here"),
    "hangs": (b"#!/bin/sh\nexec sleep 1000\n", "did not finish within"),
    "another version": (script("v2.36.0"), "has the program of v2.36.0"),
    "slim": (script(NEWEST, slim=True), "has no program with the server"),
}


@pytest.mark.parametrize("kind", PROGRAMS)
def test_bad_program_is_not_installed(
    program: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    content, reason = PROGRAMS[kind]
    if kind == "hangs":
        monkeypatch.setattr(replacement, "TRIAL_TIMEOUT", 0.2)
    mirror = Mirror(tmp_path / "mirror")
    mirror.add(NEWEST, content)
    assert run(mirror, "--yes") == 1
    assert reason in capsys.readouterr().err
    assert_unchanged(program)


def test_half_a_download(
    program: Path, served: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Handler, "half", True)
    assert run(served, "--yes") == 1
    assert f"{NAME} cannot be read" in capsys.readouterr().err
    assert_unchanged(program)


def test_concurrent_upgrade_is_refused(program: Path, mirror: Mirror, capsys: pytest.CaptureFixture[str]) -> None:
    descriptor = os.open(program.parent, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    assert run(mirror, "--yes") == 1
    assert "another upgrade" in capsys.readouterr().err
    os.close(descriptor)
    assert_unchanged(program)


def test_verified_bytes_are_installed(program: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mirror changes each file as soon as it was read."""
    read: list[str] = []

    def read_once(location: str, *rest: Any) -> bytes:
        data = read_location(location, *rest)
        if not location.endswith("releases.json"):
            read.append(Path(location).name)
            Path(location).write_bytes(b"changed")
        return data

    genuine = (mirror.folder / NEWEST / NAME).read_bytes()
    monkeypatch.setattr(upgrade, "read_location", read_once)
    assert run(mirror, "--yes") == 0
    assert program.read_bytes() == genuine and sorted(read) == ["SHA256SUMS", "SHA256SUMS.minisig", NAME]


def test_program_replaced_during_the_question(
    program: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(yes: bool, question: str) -> None:
        monkeypatch.setattr(upgrade, "confirm", lambda *words: None)
        assert run(mirror, "--version", NEWER) == 0

    monkeypatch.setattr(upgrade, "confirm", answer)
    assert run(mirror) == 1
    assert "another upgrade replaced" in capsys.readouterr().err
    assert (version_of(program), version_of(program.with_name("coder.previous"))) == (NEWER, BUILD_VERSION)


@pytest.mark.parametrize("version", ["2.36.1", "v2.36.1"])
def test_program_may_omit_the_v(program: Path, tmp_path: Path, version: str) -> None:
    mirror = Mirror(tmp_path / "mirror")
    mirror.add(version, script("2.36.1"))
    assert run(mirror, "--yes") == 0 and program.read_bytes() == script("2.36.1")


def test_killed_upgrade_leaves_no_folder(program: Path, mirror: Mirror) -> None:
    leftover = program.parent / ".coder-upgrade-killed"
    leftover.mkdir()
    (leftover / NAME).write_bytes(b"half")
    assert run(mirror, "--yes") == 0 and not leftover.exists()


def test_unpinned_key_is_refused(program: Path, mirror: Mirror, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["upgrade", "--release-list", str(mirror.folder), "--yes"]) == 1
    assert "pins no release key" in capsys.readouterr().err
    assert_unchanged(program)


def test_unconfirmed_upgrade_changes_nothing(program: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert run(mirror) == 1
    assert_unchanged(program)


# ---- the database


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Path]:
    """A server's database of revision 0035; the backups that are made."""
    made: list[Path] = []

    def save(target: object, folder: str, version: str) -> Path:
        made.append(tmp_path / f"before-{version}.backup")
        return made[-1]

    monkeypatch.setattr(upgrade_backup, "find_deployment", lambda invocation: object())
    monkeypatch.setattr(upgrade_backup, "own_revision", lambda: "0035")
    monkeypatch.setattr(upgrade_backup, "save_database", save)
    return made


def test_moved_schema_is_backed_up(
    program: Path, mirror: Mirror, saved: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(mirror, "--yes", "--output", "json") == 0
    found = shown(capsys)
    assert found["schema_moves"] and (found["schema_from"], found["schema_to"]) == ("0035", "0099")
    assert [found["backup"]] == [str(path) for path in saved]
    assert main(["upgrade", "--rollback", "--yes"]) == 0
    assert f"coder server restore {saved[0]}" in capsys.readouterr().err


@pytest.mark.parametrize(("revision", "count"), [("0035", 0), ("0036", 1), ("", 1)])
def test_backup_only_for_another_schema(
    program: Path, tmp_path: Path, saved: list[Path], revision: str, count: int
) -> None:
    mirror = Mirror(tmp_path / "mirror")
    mirror.add(NEWER, schema_revision=revision)
    assert run(mirror, "--yes", "--check") == 0 and not saved
    assert run(mirror, "--yes", "--dry-run") == 0 and not saved
    assert run(mirror, "--yes") == 0
    assert len(saved) == count


def test_older_version_rejects_the_schema(
    program: Path, tmp_path: Path, saved: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    mirror = Mirror(tmp_path / "mirror")
    mirror.add("v2.33.0", schema_revision="0034")
    assert run(mirror, "--version", "v2.33.0", "--check") == 0
    assert "v2.33.0 rejects it: restore an earlier backup" in capsys.readouterr().out
    assert run(mirror, "--version", "v2.33.0", "--yes", "--output", "json") == 0
    found = shown(capsys)
    assert found["schema_rejected"] and found["backup"] == str(saved[0])


@pytest.mark.parametrize("error", [CoderError("backup", "the dump failed"), OSError(errno.ENOSPC, "No space left")])
def test_failed_backup_stops_the_upgrade(
    program: Path, mirror: Mirror, saved: list[Path], error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> Path:
        raise error

    monkeypatch.setattr(upgrade_backup, "save_database", fail)
    assert run(mirror, "--yes") == 1
    assert_unchanged(program)
