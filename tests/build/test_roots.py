"""The Linux set: what cannot be built on a machine is said with its reason, and the rest is built."""

from __future__ import annotations

import os
import platform
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.programs.single_binary import recipe

sys.path.insert(0, str(recipe.ROOT / "build"))
import emulation
import libc
import roots
from desktop.sources import TARGETS


def test_failed_platform_does_not_stop_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    built: list[tuple[str, list[str]]] = []

    def build_one(name: str, platform: roots.Platform, out: Path, flags: list[str]) -> None:
        if name != "linux-amd64":
            raise (
                subprocess.CalledProcessError(1, ["pip"])
                if name == "linux-armv7"
                else SystemExit("build: no such file")
            )
        built.append((name, flags))
        (out / f"coder-{name}").write_bytes(b"")

    def build_desktop(target: object, out: Path, *, quick: bool, pure: bool) -> None:
        raise SystemExit("build: mvn not found")

    monkeypatch.setattr(roots, "build_one", build_one)
    monkeypatch.setattr("desktop.program.build", build_desktop)
    monkeypatch.setattr(roots, "source_hash", lambda: "sources")
    monkeypatch.setattr(roots, "why_not", lambda: "")
    assert roots.build_platforms("all", tmp_path, ["--quick"]) == 1
    assert built == [("linux-amd64", ["--quick"])]
    said = capsys.readouterr().err
    assert "linux-amd64: built" in said and "linux-arm64: not built, build: no such file" in said
    assert "linux-armv7: not built, Command '['pip']'" in said
    assert said.count("not built, build: mvn not found") == len(TARGETS)
    (tmp_path / "coder-slim-linux-amd64").write_bytes(b"")
    for flags, count in (([], 2), ([], 2), (["--slim"], 3), ([], 4)):  # the second time, nothing is built
        assert roots.build_platforms("linux-amd64", tmp_path, flags) == 0 and len(built) == count
    assert roots.build_platforms("linux-amd64", tmp_path, [], force=True) == 0 and len(built) == 5
    (tmp_path / "coder-linux-amd64").unlink()
    assert roots.build_platforms("linux-amd64", tmp_path, []) == 0 and len(built) == 6
    capsys.readouterr()
    monkeypatch.setattr(roots, "why_not", lambda: "only root makes a root")
    assert roots.build_platforms("all", tmp_path, ["--pure"]) == 1 and len(built) == 6
    assert capsys.readouterr().err.count("not built, only root makes a root") == len(roots.PLATFORMS)
    with pytest.raises(SystemExit, match="no recipe for linux-mips"):
        roots.build_platforms("linux-mips,linux-amd64", tmp_path, [])


def test_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert roots.why_not() == "only root makes a root"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert "debootstrap is not installed" in roots.why_not()
    # No emulator: nothing of another processor is run.
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/sbin/debootstrap" if name == "debootstrap" else None)
    assert roots.why_not() == ""
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert roots.why_not() == "it is made on amd64"


CROSS = [
    "debootstrap",
    "dpkg",
    "apt-get",
    "apt-get",
    "sh",
    "/usr/bin/python3.11",
    "env",
    "/venv/bin/python",
    "env",
    "env",
]
CALLS = {
    "linux-amd64": ["debootstrap", "sh", "apt-get", "apt-get", "/opt/coder/bin/python3.11", "env", "env", "env"],
    "linux-arm64": CROSS,
    "linux-armv7": CROSS,
}
QEMU = {"linux-amd64": "", "linux-arm64": "aarch64", "linux-armv7": "arm"}


@pytest.mark.parametrize("name", roots.PLATFORMS)
def test_root_steps_run_once(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, ...]] = []

    def run(command: list[str], **_: object) -> None:
        if command[0] == "debootstrap":
            Path(command[-2]).mkdir()
        start = command.index("sh") + 4 if command[0] == "unshare" else 0  # unshare --mount sh -c SCRIPT ROOT COMMAND …
        calls.append(tuple(command[start:]))

    monkeypatch.setattr(roots, "CACHE", tmp_path / "roots")
    monkeypatch.setattr(roots, "copy_sources", lambda target: None)
    monkeypatch.setattr(subprocess, "run", run)
    platform = roots.PLATFORMS[name]
    roots.build_one(name, platform, tmp_path / "out", ["--quick"])
    assert sorted(call[0] for call in calls) == sorted(CALLS[name])
    (last,) = [call for call in calls if "build/build.py" in call]
    assert last == calls[-1] and last[-len(platform.flags) - 1 :] == (*platform.flags, "--quick")
    assert ("--cross" in last) is bool(platform.cross)
    assert sum({"mypy", "setuptools"} <= set(call) for call in calls) == 1  # what compiles the mesh
    # Kept where no new copy of the sources takes it away.
    assert not last[last.index("--compiled") + 1].startswith("/build")
    emulators = [call for call in calls if roots.EMULATORS in call]
    assert [call[-1] for call in emulators] == [f"qemu-{QEMU[name]}-static"] * bool(platform.cross)
    wheels = [call for call in calls if "/build/build/wheels.py" in call]
    assert len(wheels) == bool(platform.cross)
    # What only builds comes into the environment later: it is no part of a program, and need not be had for others.
    assert all(calls.index(call) < next(i for i, c in enumerate(calls) if "pyinstaller" in c) for call in wheels)
    assert all(f"--compile={name}" in call for call in wheels for name in platform.compiled)
    done = len(calls)
    roots.build_one(name, platform, tmp_path / "out", ["--quick"])
    assert len(calls) == done + 1


def test_changed_input_repeats_the_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version that is pinned anew is in the next program, not in that of the next machine."""
    calls: list[tuple[str, ...]] = []
    listed = ["trio==1"]

    def inside(_root: Path, *command: str) -> None:
        calls.append(command)

    monkeypatch.setattr(roots, "CACHE", tmp_path)
    monkeypatch.setattr(roots, "copy_sources", lambda target: None)
    monkeypatch.setattr(roots, "bootstrap", lambda root, platform: root.mkdir())
    monkeypatch.setattr(roots, "inside", inside)
    monkeypatch.setattr(roots, "pins", lambda: listed)
    platform = roots.PLATFORMS["linux-arm64"]

    def installs() -> int:
        calls.clear()
        roots.build_one("linux-arm64", platform, tmp_path / "out", [])
        return sum("venv" in command for command in calls)

    assert (installs(), installs()) == (1, 0)
    root = next(path for path in tmp_path.iterdir() if path.name.startswith("bookworm"))
    (root / "venv").mkdir()
    (root / "venv/old").touch()
    listed[:] = ["trio==2"]
    assert (installs(), installs()) == (1, 0)
    assert not (root / "venv/old").exists()


@pytest.mark.parametrize("name", [name for name, platform in roots.PLATFORMS.items() if platform.cross])
def test_cross_compiler_gets_target_libraries(name: str) -> None:
    platform = roots.PLATFORMS[name]
    assert platform.processor in libc.TRIPLES and platform.wheels.partition("-")[2].startswith("manylinux_")
    assert {f"gcc-{libc.TRIPLES[platform.processor]}", f"libzstd-dev:{platform.cross}"} <= set(platform.packages)
    assert {f"{library}:{platform.cross}" for library in platform.libraries} <= set(platform.packages)
    assert (f"g++-{libc.TRIPLES[platform.processor]}" in platform.packages) is bool(platform.compiled)
    assert not set(platform.compiled) & set(platform.not_there)


@pytest.mark.parametrize("name", ["aarch64", "arm"])
def test_binfmt_magic_matches_target_programs(name: str) -> None:
    """Whatever its system byte is, a shared object too, and no program of another processor."""
    fields = emulation.registration(name, "/usr/bin/qemu").decode().split(":")
    assert fields[1:4] == [f"qemu-{name}", "M", ""] and fields[6:] == ["/usr/bin/qemu", "F"]
    magic, mask = (part.encode().decode("unicode_escape").encode("latin-1") for part in fields[4:6])
    bits, machine = {"aarch64": (2, 183), "arm": (1, 40)}[name]

    def fits(bits: int, system: int, kind: int, machine: int) -> bool:
        head = struct.pack("<4sBBBB8xHH", b"\x7fELF", bits, 1, 1, system, kind, machine)
        return bytes(a & b for a, b in zip(head, mask, strict=True)) == bytes(
            a & b for a, b in zip(magic, mask, strict=True)
        )

    assert fits(bits, 0, 2, machine) and fits(bits, 3, 3, machine)
    assert not fits(bits, 0, 1, machine) and not fits(bits, 0, 2, 62) and not fits(3 - bits, 0, 2, machine)


ENDS_WITH_7 = {
    "arm64": (2, 183, "e00080d2 a80b80d2 010000d4"),  # mov x0, 7; mov x8, 93 (exit); svc 0
    "armv7": (1, 40, "0700a0e3 0170a0e3 000000ef"),  # mov r0, 7; mov r7, 1 (exit); svc 0
}


@pytest.mark.soak  # it leaves the kernel told of the emulator
@pytest.mark.skipif(os.geteuid() != 0, reason="root only")
@pytest.mark.parametrize("architecture", sorted(emulation.QEMU))
def test_a_foreign_program_runs(architecture: str, tmp_path: Path) -> None:
    if reason := emulation.why_not(architecture):
        pytest.skip(reason)
    bits, machine, code = ENDS_WITH_7[architecture]
    text = bytes.fromhex(code)
    place = 0x10000
    if bits == 2:
        size = 64 + 56
        head = struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, place + size, 64, 0, 0, 64, 56, 1, 0, 0, 0)
        segment = struct.pack("<IIQQQQQQ", 1, 5, 0, place, place, size + len(text), size + len(text), 0x1000)
    else:
        size = 52 + 32
        head = struct.pack("<HHIIIIIHHHHHH", 2, machine, 1, place + size, 52, 0, 0x5000400, 52, 32, 1, 0, 0, 0)
        segment = struct.pack("<IIIIIIII", 1, 0, place, place, size + len(text), size + len(text), 5, 0x1000)
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF" + bytes([bits, 1, 1]) + bytes(9) + head + segment + text)
    program.chmod(0o755)
    assert subprocess.run([program], check=False).returncode == 7
