"""The hot modules of each processor: for whom they are compiled, what is kept, and how they are tried in a program."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.kit.programs.single_binary import recipe

sys.path.insert(0, str(recipe.ROOT / "build"))
import check
import compiled
import emulation
import foreign
import libc
import modules

CROSS = ("", "aarch64", "armv7l")


def elf(path: Path, machine: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x7fELF" + bytes(14) + foreign.MACHINES[machine].to_bytes(2, "little"))


def test_compiled_modules_are_keyed_by_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = set()
    for name in CROSS[1:]:
        monkeypatch.setattr(libc, "CROSS", name)
        hashes |= {compiled.source_hash(level) for level in (compiled.LEVEL, compiled.QUICK_LEVEL)}
    assert len(hashes) == 4


@pytest.mark.parametrize("cross", CROSS)
def test_for_whom_c_is_compiled(cross: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libc, "CROSS", cross)
    told = compiled.compiler_environment()
    assert told["CFLAGS"] == "-g0 -w" and ("CC" in told) is bool(cross)
    if cross:
        assert told["CC"] == libc.tool("gcc") and told["_PYTHON_SYSCONFIGDATA_NAME"].endswith(libc.TRIPLES[cross])
        assert compiled.pointer_size() == (4 if cross == "armv7l" else 8)


@pytest.mark.parametrize("size", [4, 8])
def test_mypyc_uses_target_integer_width(size: int, tmp_path: Path) -> None:
    """Its own Python may be wider: C for 64 bits would hold numbers that do not fit a register of 32."""
    (tmp_path / "_sysconfigdata__other.py").write_text(f"build_time_vars = {{'SIZEOF_SIZE_T': {size}}}\n")
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "_PYTHON_SYSCONFIGDATA_NAME": "_sysconfigdata__other"}
    head = compiled._SETUP.partition("def compile_side_by_side")[0]
    for wanted in (4, 8):
        script = head.format(size=wanted)
        done = subprocess.run([sys.executable, "-c", script], env=env, check=False, capture_output=True, text=True)
        assert (done.returncode == 0) is (wanted == size), done
        assert (f"numbers of {size} bytes, and {wanted} is wanted" in done.stderr) is (wanted != size)


@pytest.mark.parametrize("cross", CROSS[1:])
def test_wrong_processor_module_stops_build(cross: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libc, "CROSS", cross)
    good = tmp_path / f"coder/mesh/core/engine.cpython-311-{libc.TRIPLES[cross]}.so"
    elf(good, cross)
    compiled.check_processor(tmp_path)
    elf(good, "x86_64")
    with pytest.raises(SystemExit, match=rf"not for {cross}: coder/mesh/core/engine"):
        compiled.check_processor(tmp_path)
    good.unlink()
    elf(tmp_path / f"coder/mesh/core/engine{sysconfig.get_config_var('EXT_SUFFIX')}", cross)
    with pytest.raises(SystemExit, match=rf"not for {cross}"):
        compiled.check_processor(tmp_path)


class Folder:
    """A program that is a script: it keeps what it was asked, and cannot import one module."""

    def __init__(self, place: Path, bad: str) -> None:
        self.place, self.log = place, place / "log"
        (place / "_internal").mkdir(parents=True)
        program = place / "coder"
        program.write_text(
            f"#!/bin/sh\ntest -e {place}/_internal/modules-full.bin || exit 3\n"
            f'echo "$LD_LIBRARY_PATH $1" >>{self.log}\n'
            f'[ "$1" != "{bad}" ] || {{ echo "it is plain" >&2; exit 1; }}\n'
        )
        program.chmod(0o755)

    def asked(self) -> list[str]:
        lines = [line.split() for line in self.log.read_text().splitlines()]
        assert {place for place, _ in lines} == {str(self.place / "_internal")}
        return sorted(name for _, name in lines)


NAMES = sorted([*compiled.module_names(compiled.hot_modules()), *compiled.extension_names()])


def test_each_compiled_module_imports_first(tmp_path: Path) -> None:
    whole = Folder(tmp_path / "whole", bad="none")
    compiled.check_program(whole.place, ["/bin/sh"])
    assert whole.asked() == NAMES and not (whole.place / "_internal/modules-full.bin").exists()
    quick = Folder(tmp_path / "quick", bad="none")
    compiled.check_program(quick.place, each_first=False)
    assert len(quick.asked()) == 1 + len(compiled.EXTENSIONS)
    for name in ("nacl/_sodium.abi3.so", "_cffi_backend.cpython-311-arm-linux-gnueabihf.so"):
        (quick.place / "_internal" / name).parent.mkdir(exist_ok=True)
        (quick.place / "_internal" / name).touch()
    quick.log.unlink()
    compiled.check_program(quick.place, each_first=False)
    assert {"nacl._sodium", "_cffi_backend"} < set(quick.asked()) and len(quick.asked()) == 3 + len(compiled.EXTENSIONS)
    broken = Folder(tmp_path / "broken", bad=NAMES[-1])
    with pytest.raises(SystemExit, match=rf"cannot import the compiled {NAMES[-1]}:\nit is plain"):
        compiled.check_program(broken.place)


def test_probe_distinguishes_plain_from_compiled(tmp_path: Path) -> None:
    """What another_main puts in, run by this Python."""
    (tmp_path / "plain.py").touch()
    compiled_module = next(name for name in ("_json", "_bisect", "_ssl") if _is_shared(name))
    for name, code in (("plain", 1), (compiled_module, 0), ("absent", 1)):
        command = [sys.executable, "-c", compiled._FIRST, name]
        env = {**os.environ, "PYTHONPATH": str(tmp_path)}
        done = subprocess.run(command, env=env, check=False, capture_output=True, text=True)
        assert done.returncode == code, done
        assert ("plain.py" in done.stderr) is (name == "plain")


def _is_shared(name: str) -> bool:
    return str(getattr(__import__(name), "__file__", "")).endswith(".so")


@pytest.mark.parametrize("quick", [True, False])
def test_missing_emulator_is_reported(
    *, quick: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tried: list[tuple[object, ...]] = []
    monkeypatch.setattr(compiled, "check_program", lambda *given, each_first: tried.append((*given, each_first)))
    monkeypatch.setattr(libc, "CROSS", "armv7l")
    monkeypatch.setattr(emulation, "emulator", lambda architecture: "")
    recipe.try_compiled(tmp_path, quick=quick)
    assert not tried and "no emulator for armv7l" in capsys.readouterr().err
    monkeypatch.setattr(emulation, "emulator", lambda architecture: f"/usr/bin/qemu-{architecture}")
    recipe.try_compiled(tmp_path, quick=quick)
    assert tried == [(tmp_path, ["/usr/bin/qemu-armv7"], not quick)]


def test_probe_module_file_is_readable(tmp_path: Path) -> None:
    (tmp_path / "_internal").mkdir()
    with check.another_main(tmp_path, compiled._FIRST):
        there = modules.unpacked((tmp_path / "_internal/modules-full.bin").read_bytes())
    assert there["coder.__main__"][0] == modules.MODULE
