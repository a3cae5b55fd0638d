"""A collected program made another processor's: what is exchanged, what is left out, what stops the build."""

from __future__ import annotations

import marshal
import platform
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.kit.programs.single_binary import recipe

sys.path.insert(0, str(recipe.ROOT / "build"))
import foreign
import libc
import modules

HERE = libc.TRIPLES.get(platform.machine(), "")
OTHERS = ("aarch64", "armv7l")
PYTHON = f"usr/lib/python{sysconfig.get_python_version()}"
pytestmark = [
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the others are arm's"),
    pytest.mark.skipif(not shutil.which("gcc") or not shutil.which("readelf"), reason="gcc and binutils needed"),
]


@pytest.fixture(autouse=True, params=OTHERS)
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(libc, "CROSS", request.param)
    return str(request.param)


@pytest.fixture
def there(machine: str) -> str:
    """How Debian calls it."""
    return libc.TRIPLES[machine]


class Trees:
    """A collected folder and where its counterparts are; files are small, and for another processor by their word."""

    def __init__(self, place: Path) -> None:
        self.folder, self.wheels, self.system, self.site = (place / n for n in ("coder", "wheels", "system", "site"))
        self.internal = self.folder / "_internal"
        self.found: modules.Entries = {}
        self.made = place / "made.so"

    def library(self, target: Path, *needs: str, for_machine: str = "") -> None:
        """A shared object that asks for libraries of these names."""
        for name in needs:
            self._compile(self.made.with_name(name), f"-Wl,-soname,{name}")
        target.parent.mkdir(parents=True, exist_ok=True)
        self._compile(target, "-Wl,--no-as-needed", *(str(self.made.with_name(name)) for name in needs))
        data = bytearray(target.read_bytes())
        data[18:20] = foreign.MACHINES[for_machine or libc.CROSS].to_bytes(2, "little")
        target.write_bytes(data)

    def native(self, name: str) -> None:
        self.library(self.internal / name, for_machine="x86_64")

    def _compile(self, target: Path, *flags: str) -> None:
        command = ["gcc", "-shared", "-nostdlib", "-x", "c", "/dev/null", "-x", "none", "-o", str(target), *flags]
        subprocess.run(command, check=True)

    def source(self, place: str, here: str, there: str | None) -> None:
        for root, text in ((self.site, here), (self.wheels, there)):
            if text is not None:
                (root / place).parent.mkdir(parents=True, exist_ok=True)
                (root / place).write_text(text)

    def exchange(self) -> list[str]:
        self.internal.mkdir(parents=True, exist_ok=True)
        foreign.exchange(self.folder, self.found, self.wheels, system=self.system, site=self.site)
        return sorted(p.relative_to(self.internal).as_posix() for p in self.internal.rglob("*") if not p.is_dir())


@pytest.fixture
def trees(tmp_path: Path) -> Trees:
    return Trees(tmp_path)


def test_each_file_kind_has_counterpart(trees: Trees, machine: str, there: str) -> None:
    dynload = f"python{sysconfig.get_python_version()}/lib-dynload"
    for name in (
        f"{dynload}/_ssl.cpython-311-{HERE}.so",
        f"wheel/_fast.cpython-311-{HERE}.so",
        "wheel/_abi.abi3.so",
        "wheel/_once_abi.abi3.so",
        "_top.abi3.so",
        "libssl.so.3",
        "wheel.libs/libmade-1a2b.so.5",
        "libpython3.11.so.1.0",
        "wheel/bin/program",
    ):
        trees.native(name)
    (trees.internal / "libmade-1a2b.so.5").symlink_to("wheel.libs/libmade-1a2b.so.5")
    (trees.internal / "wheel/WHEEL").write_text(f"Tag: {HERE}")
    (trees.internal / "coder").mkdir()
    (trees.internal / "coder/page.html").write_text("ours")
    trees.library(trees.system / PYTHON / f"lib-dynload/_ssl.cpython-311-{there}.so", "libssl.so.3", "libc.so.6")
    trees.library(trees.system / f"usr/lib/{there}/libssl.so.3", "libcrypto.so.3")
    trees.library(trees.system / f"lib/{there}/libcrypto.so.3", Path(libc.LOADERS[machine]).name)
    trees.library(trees.system / f"usr/lib/{there}/libpython3.11.so.1.0")
    trees.library(trees.wheels / f"wheel/_fast.cpython-311-{there}.so", "libmade-9f8e.so.5")
    trees.library(trees.wheels / "wheel.libs/libmade-9f8e.so.5")
    trees.library(trees.wheels / "wheel/_abi.abi3.so")
    for name in ("wheel/_once_abi", "_top"):  # compiled from source
        trees.library(trees.wheels / f"{name}.cpython-311-{there}.so")
    trees.library(trees.wheels / "wheel/bin/program")
    (trees.wheels / "wheel/WHEEL").write_text(f"Tag: {there}")
    assert trees.exchange() == sorted(
        [
            f"{dynload}/_ssl.cpython-311-{there}.so",
            f"wheel/_fast.cpython-311-{there}.so",
            "wheel/_abi.abi3.so",
            f"wheel/_once_abi.cpython-311-{there}.so",
            f"_top.cpython-311-{there}.so",
            "libssl.so.3",
            "libcrypto.so.3",
            "wheel.libs/libmade-9f8e.so.5",
            "libpython3.11.so.1.0",
            "wheel/bin/program",
            "wheel/WHEEL",
            "coder/page.html",
        ]
    )
    assert (trees.internal / "wheel/WHEEL").read_text().endswith(there)


@pytest.mark.parametrize(
    ("collected", "needs", "says"),
    [
        ("wheel/_fast.so", (), "_fast.so is not for MACHINE"),
        ("wheel/bin/program", (), "program is not for MACHINE"),
        ("wheel/_fast.so", ("libabsent.so.1",), "libabsent.so.1 for MACHINE is neither in a wheel nor installed"),
    ],
)
def test_missing_counterpart_stops_build(
    trees: Trees, machine: str, collected: str, needs: tuple[str, ...], says: str
) -> None:
    trees.native(collected)
    if needs:
        trees.library(trees.wheels / collected, *needs)
    with pytest.raises(SystemExit, match=says.replace("MACHINE", machine)):
        trees.exchange()


def test_files_are_stripped_by_target_tool(trees: Trees, there: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trees.library(trees.internal / "wheel/_fast.so")
    trees.library(trees.internal / "libssl.so.3")
    (trees.internal / "words.txt").write_text("no program")
    (trees.internal / "libssl.so").symlink_to("libssl.so.3")
    calls: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, check: calls.append(command))
    foreign.strip(trees.folder)
    assert calls == [[f"{there}-strip", *(str(trees.internal / name) for name in ("libssl.so.3", "wheel/_fast.so"))]]


@pytest.mark.parametrize("wrong", [*OTHERS, "x86_64"])
def test_wrong_processor_counterpart_stops_build(trees: Trees, machine: str, wrong: str) -> None:
    if wrong == machine:
        return
    trees.native("wheel/_fast.so")
    trees.library(trees.wheels / "wheel/_fast.so", for_machine=wrong)
    with pytest.raises(SystemExit, match=rf"not for {machine}: .*_fast\.so"):
        trees.exchange()


def test_differing_sources_are_recompiled(trees: Trees) -> None:
    same = marshal.dumps(compile("same = 1", "same.py", "exec"))
    trees.found = {"same": (modules.MODULE, same), "pack": (modules.PACKAGE, same), "coder": (modules.PACKAGE, same)}
    trees.source("same.py", "same = 1", "same = 1")
    trees.source("pack/__init__.py", "where = 'here'", "where = 'there'")
    trees.exchange()
    assert trees.found["same"] == (modules.MODULE, same) and trees.found["coder"] == (modules.PACKAGE, same)
    kind, code = trees.found["pack"]
    space: dict[str, object] = {}
    exec(marshal.loads(code), space)  # noqa: S102, S302 - of this test
    assert kind == modules.PACKAGE and space["where"] == "there"


@pytest.mark.parametrize(
    ("name", "there", "says"),
    [("pack.part", None, "lack pack/part.py"), ("msgspec._utils", "other", "changed in what it loads")],
)
def test_unusable_sources_stop_build(trees: Trees, name: str, there: str | None, says: str) -> None:
    trees.found = {name: (modules.MODULE, b"")}
    trees.source(f"{name.replace('.', '/')}.py", "same", there)
    with pytest.raises(SystemExit, match=says):
        trees.exchange()


def test_python_gets_target_configuration(trees: Trees, there: str) -> None:
    trees.found = {f"_sysconfigdata__{HERE}": (modules.MODULE, b"")}
    with pytest.raises(SystemExit, match="_sysconfigdata"):
        trees.exchange()
    trees.found = {f"_sysconfigdata__{HERE}": (modules.MODULE, b"")}
    place = trees.system / PYTHON / f"_sysconfigdata__{there}.py"
    place.parent.mkdir(parents=True)
    place.write_text("build_time_vars = {}")
    trees.exchange()
    assert list(trees.found) == [f"_sysconfigdata__{there}"]


def test_tools_and_names_match_target(machine: str, there: str) -> None:
    assert libc.machine() == machine and libc.tool("gcc") == f"{there}-gcc"
    assert libc.places()[0] == f"/lib/{there}/libc.so.6"
    # Of 32 bits: as wide as a file system's numbers.
    assert bool(libc.wide()) is (machine == "armv7l")
