"""The launcher by itself, with a program of three lines behind it: first and later starts, and everything that can go
wrong with the file, the cache and the disk."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "build"))
import build as recipe
import packing

NEEDS = shutil.which("gcc") and shutil.which("zstd") and Path("/usr/include/zstd.h").exists()
pytestmark = pytest.mark.skipif(not NEEDS, reason="gcc, zstd and zstd's headers are needed")
PROGRAM = '#!/bin/sh\nhere=$(dirname "$0")\necho "$(cat "$here/_internal/edition") $CODER_SELF $*"\n'
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="root only")


@pytest.fixture(scope="module")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return recipe.compile_launcher(tmp_path_factory.mktemp("launcher"), []).read_bytes()


@pytest.fixture(scope="module")
def payloads(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """Of the slim program and of the rest."""
    folders = []
    for edition in ("slim", "full"):
        folder = tmp_path_factory.mktemp(edition)
        (folder / "_internal" / ("deep-" + "n" * 60) / ("e" * 60)).mkdir(parents=True)
        (folder / "_internal" / ("deep-" + "n" * 60) / ("e" * 60) / "a name longer than a header has room for").touch()
        (folder / "_internal/big").write_bytes(os.urandom(1 << 20) if edition == "full" else b"")
        (folder / "_internal/edition").write_text(edition)
        (folder / "_internal/link").symlink_to("edition")
        (folder / "coder").write_text(PROGRAM)
        (folder / "coder").chmod(0o755)
        folders.append(folder)
    return packing.pack(folders[0], 3), packing.pack(folders[1], 3, without=folders[0])


@pytest.fixture
def program(tmp_path: Path, launcher: bytes, payloads: tuple[bytes, bytes]) -> Path:
    packing.write(tmp_path / "coder-full", packing.full_program(launcher, *payloads))
    return tmp_path / "coder-full"


def run(program: Path, *args: str, home: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    place = {"HOME": str(home or program.parent / "home"), "PATH": os.environ["PATH"]}
    return subprocess.run(
        [str(program), *args], env={**place, **env}, capture_output=True, text=True, check=False, cwd="/"
    )


def cache(program: Path) -> Path:
    return program.parent / "home/.cache/coder/dist"


def listed(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_the_slim_program_lies_in_the_full_ones_file(
    tmp_path: Path, program: Path, launcher: bytes, payloads: tuple[bytes, bytes]
) -> None:
    assert run(program, "a", "b c").stdout == f"full {program} a b c\n"
    assert run(program).stdout == f"full {program} \n"
    slim = tmp_path / "coder-slim"
    packing.write(slim, packing.slim_program(launcher, payloads[0]))
    assert run(slim).stdout == f"slim {slim} \n"
    assert len(listed(cache(program))) == 2
    made = next(path for path in cache(program).iterdir() if (path / "_internal/edition").read_text() == "full")
    assert (made / "_internal/link").is_symlink() and (made / "_internal/big").stat().st_size == 1 << 20
    assert len(list(made.rglob("a name longer than*"))) == 1


def test_the_same_folder_packs_to_the_same_bytes(tmp_path: Path, payloads: tuple[bytes, bytes]) -> None:
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        for part in ("b", "a") if name == "one" else ("a", "b"):
            (folder / part).write_text(part)
            os.utime(folder / part, (len(name), hash(name) % 1000))
    assert packing.pack(tmp_path / "one", 3) == packing.pack(tmp_path / "two", 3)


def every_damage(whole: bytes, launcher: bytes) -> Iterator[tuple[str, bytes]]:
    for kept in (len(launcher) + 10, len(whole) // 2, len(whole) - 1, len(whole) - packing.TRAILER.size):
        yield f"cut to {kept}", whole[:kept]
    for at in range(len(launcher), len(whole) - packing.TRAILER.size, max(1, len(whole) // 23)):
        yield f"changed at {at}", whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :]
    end = len(whole) - packing.TRAILER.size
    for at in range(end, len(whole)):
        changed = whole[:at] + bytes([whole[at] ^ 0x80]) + whole[at + 1 :]
        if end + 8 <= at < end + 16 + packing.KEY_LENGTH:
            continue  # where the slim part ends concerns the server only
        yield f"trailer changed at {at - end}", changed
    trailer = packing.TRAILER.unpack(whole[end:])
    for key in (b"../../../../../../../../tmp/evil", b"/" * 32, b"\0" * 32):
        yield f"key {key!r}", whole[:end] + packing.TRAILER.pack(*trailer[:3], key, packing.MAGIC)


def test_a_damaged_file_says_so_and_leaves_nothing(tmp_path: Path, program: Path, launcher: bytes) -> None:
    whole = program.read_bytes()
    for what, data in every_damage(whole, launcher):
        packing.write(program, data)
        done = run(program)
        assert done.returncode == 127 and "download it again" in done.stderr, (what, done)
        assert listed(cache(program)) == [], what
    packing.write(program, whole)
    assert run(program).returncode == 0


def test_many_first_starts_at_once(program: Path) -> None:
    env = {"HOME": str(program.parent / "home"), "PATH": os.environ["PATH"]}
    started = [subprocess.Popen([str(program)], env=env, stdout=subprocess.PIPE) for _ in range(8)]
    assert {process.communicate()[0] for process in started} == {f"full {program} \n".encode()}
    assert len(listed(cache(program))) == 1


def test_what_a_cleaner_of_temporary_files_took_is_made_again(program: Path) -> None:
    run(program)
    (made,) = cache(program).iterdir()
    (made / "coder").unlink()
    assert run(program).stdout == f"full {program} \n"
    assert listed(cache(program)) == [made.name]


def test_leftovers_of_a_killed_start_and_versions_unused_go(program: Path) -> None:
    folder = cache(program)
    for name, age in ((".new-killed", 2 * 86400), (".new-at-work", 60), ("f" * 32, 40 * 86400), ("e" * 32, 86400)):
        (folder / name).mkdir(parents=True)
        (folder / name / ".lock").touch()
        then = folder.stat().st_mtime - age
        os.utime(folder / name, (then, then))
    run(program)
    left = listed(folder)
    assert ".new-killed" not in left and "f" * 32 not in left
    assert ".new-at-work" in left and "e" * 32 in left


def test_a_cache_others_could_write_is_not_used(program: Path) -> None:
    cache(program).mkdir(parents=True)
    cache(program).chmod(0o777)
    done = run(program, XDG_CACHE_HOME=str(program.parent / "xdg"))
    assert done.returncode == 0 and listed(cache(program)) == []
    assert len(listed(program.parent / "xdg/coder/dist")) == 1


def test_a_cache_chosen_by_the_person_that_cannot_be_used_is_refused(program: Path) -> None:
    (program.parent / "file").touch()
    place = program.parent / "open"
    place.mkdir()
    place.chmod(0o777)
    for value, why in ((program.parent / "file", "directory"), (place, "can be written by others")):
        done = run(program, CODER_BINARY_CACHE=str(value))
        assert done.returncode == 127 and f"CODER_BINARY_CACHE={value}" in done.stderr and why in done.stderr


@AS_ROOT
def test_full_disk_noexec_home_and_a_cache_of_somebody_else(program: Path) -> None:
    """In a mount namespace of its own, with a home of 64 kB, one without the right to execute, and one of nobody's."""
    script = r"""
set -eu
mount --make-rprivate /
small=$1/small; noexec=$1/noexec; foreign=$1/foreign
mkdir -p "$small" "$noexec" "$foreign"
mount -t tmpfs -o size=256k,mode=700 none "$small"
mount -t tmpfs -o noexec,mode=700 none "$noexec"
mkdir -p "$foreign/.cache/coder/dist"; chown -R 65534 "$foreign"
echo "== full"; HOME=$small "$2" 2>&1 || echo "status $?"; ls -A "$small/.cache/coder/dist"
for home in "$noexec" "$foreign"; do
	echo "== elsewhere"; HOME=$home TMPDIR=$1 "$2" x 2>&1 || echo "status $?"
	ls -A "$home/.cache/coder/dist"
done
mount -t tmpfs -o noexec none /var/tmp; mount -t tmpfs -o noexec none /tmp
echo "== nowhere"; HOME=$noexec "$2" x 2>&1 || echo "status $?"
"""
    command = ["unshare", "--mount", "sh", "-c", script, "sh", "/run/coder-launcher-test", str(program)]
    # The program itself must not lie below what is mounted over.
    home = Path("/run/coder-launcher-test")
    home.mkdir(exist_ok=True)
    moved = shutil.copy2(program, home / "program")
    command[-1] = str(moved)
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        shutil.rmtree(home)
    full, *elsewhere, nowhere = done.stdout.split("== ")[1:]
    assert "No space left on device" in full and "CODER_BINARY_CACHE" in full and full.endswith("status 127\n"), done
    assert elsewhere == [f"elsewhere\nfull {moved} x\n"] * 2, done
    assert "mounted noexec" in nowhere and nowhere.endswith("status 127\n"), done


def test_the_clock_of_1970(program: Path) -> None:
    """A machine without a battery starts there; nothing is taken for old or from the future."""
    folder = cache(program)
    (folder / ("e" * 32)).mkdir(parents=True)
    os.utime(folder / ("e" * 32), (2**31, 2**31))
    assert run(program).returncode == 0 and "e" * 32 in listed(folder)
    (made,) = (path for path in folder.iterdir() if path.name != "e" * 32)
    os.utime(made, (0, 0))
    assert run(program).returncode == 0 and made.exists()
