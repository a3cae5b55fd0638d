"""The launcher by itself, with a program of three lines behind it: first and later starts, and everything that can go
wrong with the file, the cache and the disk."""

from __future__ import annotations

import fcntl
import hashlib
import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.programs.single_binary import DEEP, NEEDS, Parts, cache, environment, listed, packing, recipe, run

pytestmark = pytest.mark.skipif(not NEEDS, reason="gcc, zstd and zstd's headers are needed")
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="root only")
ROOT = recipe.ROOT


def test_full_file_contains_slim_program(tmp_path: Path, program: Path, parts: Parts) -> None:
    assert run(program, "a", "b c").stdout == f"full {program} a b c\n"
    assert run(program).stdout == f"full {program} \n"
    slim = tmp_path / "coder-slim"
    packing.write(slim, parts.slim_program())
    assert run(slim).stdout == f"slim {slim} \n"
    assert len(listed(cache(program))) == 2
    made = next(path for path in cache(program).glob("*/") if (path / "_internal/edition").read_text() == "full\n")
    assert (made / "_internal/link").is_symlink() and (made / "_internal/big").stat().st_size == 1 << 20
    assert made.joinpath("_internal", *DEEP).is_file()


def test_packing_is_reproducible(tmp_path: Path) -> None:
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        for part in ("b", "a") if name == "one" else ("a", "b"):
            (folder / part).write_text(part)
            os.utime(folder / part, (len(name), hash(name) % 1000))
    assert packing.pack(tmp_path / "one", 3) == packing.pack(tmp_path / "two", 3)


def every_damage(parts: Parts) -> Iterator[tuple[str, bytes]]:
    whole, begin = parts.full_program(), len(parts.launcher)
    end = len(whole) - packing.TRAILER.size
    for kept in (begin + 10, len(whole) // 2, len(whole) - 1, end):
        yield f"cut to {kept}", whole[:kept]
    for at in range(begin, end, max(1, len(whole) // 23)):
        yield f"changed at {at}", whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :]
    for at in range(end, len(whole)):
        changed = whole[:at] + bytes([whole[at] ^ 0x80]) + whole[at + 1 :]
        if end + 8 <= at < end + 16 + packing.KEY_LENGTH:
            continue  # where the slim part ends concerns the server only
        yield f"trailer changed at {at - end}", changed
    trailer = packing.TRAILER.unpack(whole[end:])
    for key in (b"../../../../../../../../tmp/evil", b"/" * 32, b"\0" * 32, b"0" * 32):
        yield f"key {key!r}", whole[:end] + packing.TRAILER.pack(*trailer[:3], key, packing.MAGIC)
    # Whole payloads with checksums of their own that fit, under a name that was made of others.
    for what, payload in (("less", parts.slim), ("twice", parts.slim + parts.rest * 2), ("other", parts.rest)):
        yield what, parts.launcher + payload + whole[end:]
    yield "inserted", whole[:end] + parts.slim + whole[end:]


def test_damaged_file_is_reported(program: Path, parts: Parts) -> None:
    whole = program.read_bytes()
    for what, data in every_damage(parts):
        packing.write(program, data)
        done = run(program)
        assert done.returncode == 127 and "download it again" in done.stderr, (what, done)
        assert done.stderr.count("\n") == 1 and listed(cache(program)) == [], what
    packing.write(program, whole)
    assert run(program).returncode == 0


def test_the_hash(tmp_path: Path) -> None:
    """Both ways of computing it, for every length around the ends of a block."""
    source = tmp_path / "main.c"
    source.write_text(
        f'#include <stdio.h>\n#include "{ROOT}/build/sha256.c"\n'
        "int main(void) { static char data[100000]; size_t size = fread(data, 1, sizeof data, stdin), part = 0;"
        "struct sha256 hash; char digits[65]; sha256_begin(&hash);"
        "for (size_t at = 0; at < size; at += part) {"
        " part = at % 131 + 1; if (part > size - at) part = size - at; sha256_add(&hash, data + at, part); }"
        "sha256_end(&hash, digits); puts(digits); }"
    )
    data = os.urandom(100_000)
    for way in ([], ["-DSHA256_ANYWHERE"]):
        subprocess.run(["gcc", "-O2", *way, "-o", tmp_path / "hash", source], check=True)
        for size in (*range(200), 4095, 4096, 100_000):
            said = subprocess.run([tmp_path / "hash"], input=data[:size], capture_output=True, check=True).stdout
            assert said.decode().strip() == hashlib.sha256(data[:size]).hexdigest(), (way, size)


def test_concurrent_first_starts(tmp_path: Path, program: Path, parts: Parts) -> None:
    """Beside what a killed start and a version of long ago left: all tidy up at once."""
    packing.write(tmp_path / "coder-slim", parts.slim_program())
    for name in (".new-killed", ".old-killed", "d" * 32):
        (cache(program) / name / "_internal").mkdir(parents=True)
        (cache(program) / name / ".lock").touch()
        os.utime(cache(program) / name, (10**9, 10**9))
    programs = [program, tmp_path / "coder-slim"] * 6
    started = [
        subprocess.Popen([path], env=environment(program, {}), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for path in programs
    ]
    answers = [process.communicate() for process in started]
    assert [said for said, _ in answers] == [b"%s %s \n" % (p.name[6:].encode(), bytes(p)) for p in programs], answers
    assert len(listed(cache(program))) == 2


def test_deleted_cache_files_are_restored(program: Path) -> None:
    run(program)
    (made,) = cache(program).glob("*/")
    (made / "coder").unlink()
    assert run(program).stdout == f"full {program} \n"
    assert listed(cache(program)) == [made.name]


def test_leftovers_are_removed_unless_locked(program: Path) -> None:
    """Whatever the clock says; it counts for whole versions alone."""
    folder = cache(program)
    held = []
    for name, age, lock in (
        (".new-killed", 0, False),
        (".new-before-its-lock", 0, True),
        (".old-removed-in-part", 0, False),
        (".new-at-work", 9 * 86400, True),
        (".old-still-running", 9 * 86400, True),
        ("f" * 32, 40 * 86400, False),
        ("e" * 32, 86400, False),
        ("d" * 32, 40 * 86400, True),
    ):
        (folder / name / "_internal").mkdir(parents=True)
        if name != ".new-before-its-lock" and name != ".old-removed-in-part":
            (folder / name / ".lock").touch()
            if lock:
                held.append((folder / name / ".lock").open())
                fcntl.flock(held[-1], fcntl.LOCK_SH)
        then = folder.stat().st_mtime - age
        os.utime(folder / name, (then, then))
    run(program)
    left = [name for name in listed(folder) if not (folder / name / "coder").exists()]
    assert left == [".new-at-work", ".old-still-running", "d" * 32, "e" * 32]
    for file in held:
        file.close()


def test_running_program_keeps_its_files(tmp_path: Path, program: Path, parts: Parts) -> None:
    """The lock goes over to the program: a version in use for months is not unused."""
    with subprocess.Popen([program], env=environment(program, {}), stdout=subprocess.PIPE) as once:
        once.communicate()
    (made,) = cache(program).glob("*/")
    (made / "coder").write_text('#!/bin/sh\necho up\nread line\ncat "$(dirname "$0")/_internal/edition"\n')
    with subprocess.Popen(
        [program], env=environment(program, {}), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        assert running.stdout is not None and running.stdout.readline() == b"up\n"
        os.utime(made, (10**9, 10**9))
        packing.write(tmp_path / "coder-slim", parts.slim_program())
        assert run(tmp_path / "coder-slim").returncode == 0
        assert running.communicate(b"\n")[0] == b"full\n" and made.exists()
    (tmp_path / "coder-slim").write_bytes(packing.slim_program(parts.launcher, parts.slim + parts.slim))
    assert run(tmp_path / "coder-slim").returncode == 0 and not made.exists()


def test_shared_cache_is_not_used(program: Path) -> None:
    cache(program).mkdir(parents=True)
    cache(program).chmod(0o777)
    done = run(program, XDG_CACHE_HOME=str(program.parent / "xdg"))
    assert done.returncode == 0 and listed(cache(program)) == []
    assert len(listed(program.parent / "xdg/coder/dist")) == 1


def test_unusable_chosen_cache_is_rejected(program: Path) -> None:
    (program.parent / "file").touch()
    place = program.parent / "open"
    place.mkdir()
    place.chmod(0o777)
    for value, why in ((program.parent / "file", "directory"), (place, "can be written by others")):
        done = run(program, CODER_BINARY_CACHE=str(value))
        assert done.returncode == 127 and f"CODER_BINARY_CACHE={value}" in done.stderr and why in done.stderr


HOMES = r"""
set -eu
mount --make-rprivate /
mkdir -p "$1/small" "$1/noexec" "$1/foreign" "$1/sudo" "$1/readonly" "$1/warm"
mount -t tmpfs -o mode=1777 none /var/tmp
mount -t tmpfs -o size=256k,mode=700 none "$1/small"
mount -t tmpfs -o noexec,mode=700 none "$1/noexec"
mkdir -p "$1/foreign/.cache/coder/dist"; chown -R 65534 "$1/foreign" "$1/sudo"
HOME=$1/warm "$2" >"$1/first"
for home in "$1/readonly" "$1/warm"; do mount --bind "$home" "$home"; mount -o remount,bind,ro "$home"; done
start() { echo "== $1"; HOME=$1 "$2" x 2>&1 || echo "status $?"; }
start "$1/small" "$2"; ls -A "$1/small/.cache/coder/dist"
mount -o remount,size=8m "$1/small"; start "$1/small" "$2"
start "$1/warm" "$2"; ls -A /var/tmp
for name in noexec foreign sudo readonly; do
	start "$1/$name" "$2"; find "$1/$name" -name ".lock"; ls -A "$1/sudo"
	ls /var/tmp; rm -r /var/tmp/coder-dist-0
done
mkdir -p /var/tmp/coder-dist-0; chown 65534 /var/tmp/coder-dist-0
mount -t tmpfs -o noexec none /tmp
start "$1/noexec" "$2"
umount -l /proc; start "$1/small" "$2"
"""


@AS_ROOT
def test_homes(program: Path) -> None:
    """In a mount namespace of its own: a home that is full, read-only, without the right to execute, somebody's."""
    # The program itself must not lie below what is mounted over.
    place = Path("/run/coder-launcher-test")
    place.mkdir(exist_ok=True)
    moved = shutil.copy2(program, place / "program")
    try:
        command = ["unshare", "--mount", "sh", "-c", HOMES, "sh", str(place), str(moved)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        shutil.rmtree(place)
    assert done.returncode == 0, done
    full, freed, warm, *elsewhere, nowhere, no_proc = (part.split("\n", 1)[1] for part in done.stdout.split("== ")[1:])
    works = f"full {moved} x\n"
    assert "No space left on device" in full and "CODER_BINARY_CACHE" in full, full
    assert full.count("\n") == 2 and full.endswith("status 127\n"), "one line, and nothing stays"
    assert freed == works and warm == works
    assert elsewhere == [works + "coder-dist-0\n"] * 4, done
    assert nowhere.endswith("status 127\n") and nowhere.count("\n") == 2, nowhere
    for reason in ("dist is mounted noexec", "/var/tmp/coder-dist-0 belongs to another user", "/tmp/coder-dist-0 is"):
        assert reason in nowhere
    assert no_proc.startswith("coder: /proc has to be mounted") and no_proc.endswith("status 127\n")


def test_file_size_limit_is_reported(program: Path) -> None:
    done = subprocess.run(
        [program],
        env=environment(program, {}),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000)),
    )
    assert done.returncode == 127 and "File too large" in done.stderr and done.stderr.count("\n") == 1, done
    assert listed(cache(program)) == []
    assert run(program).stdout == f"full {program} \n"


@AS_ROOT
def test_unreadable_executable_is_reported(open_path: Path, parts: Parts) -> None:
    program = open_path / "program"
    packing.write(program, parts.full_program())
    program.chmod(0o711)
    done = subprocess.run(
        [program], env={"HOME": "/nonexistent"}, user=65534, group=65534, capture_output=True, text=True, check=False
    )
    assert done.stderr == f"coder: cannot read {program}: Permission denied\n" and done.returncode == 127
