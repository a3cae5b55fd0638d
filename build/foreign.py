"""Conversion of a collected program for another processor.

PyInstaller follows imports on the machine it runs on, and Python bytecode is the same on every processor. This module
exchanges the rest: extension modules, libraries and programs, for those of the same wheels and Debian packages for the
other processor; the few sources of wheels that differ; Python's configuration. None of it is executed.

The other processor's wheels are in a separate folder, its Debian packages next to this machine's (multiarch).
"""

from __future__ import annotations

import marshal
import platform
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import libc
import modules

MACHINES = {"x86_64": 62, "aarch64": 183, "armv7l": 40}
"""Processor numbers of ELF files."""
_NEEDED = re.compile(r"\(NEEDED\).*\[(.+)\]")
_OURS = ("coder", "base_library.zip")


def exchange(
    folder: Path, entries: modules.Entries, wheels: Path, *, system: Path = Path("/"), site: Path | None = None
) -> None:
    """Convert a collected folder and its modules to the other processor, in place."""
    site = site or Path(sysconfig.get_path("purelib"))
    internal = folder / "_internal"
    for path in sorted(internal.rglob("*")):
        name = path.relative_to(internal)
        if name.parts[0] not in _OURS and path.is_file():
            _exchange_file(path, name, wheels, system)
    _add_needed(internal, wheels, system)
    left = [path for path in sorted(internal.rglob("*")) if machine_of(path) not in {0, MACHINES[libc.machine()]}]
    if left:
        raise SystemExit(f"build: not for {libc.machine()}: {', '.join(map(str, left))}")
    _exchange_sources(entries, site, wheels)
    _exchange_configuration(entries, system)


def strip(folder: Path) -> None:
    """Strip debug symbols, which some wheels include, as PyInstaller does for this machine's files."""
    files = [str(path) for path in sorted((folder / "_internal").rglob("*")) if machine_of(path)]
    subprocess.run([libc.tool("strip"), *files], check=True)


def machine_of(path: Path) -> int:
    """Return the processor number of an ELF file; 0 for other files."""
    if path.is_symlink() or not path.is_file():
        return 0
    with path.open("rb") as file:
        head = file.read(20)
    return int.from_bytes(head[18:20], "little") if head.startswith(b"\x7fELF") else 0


def python_environment(machine: str) -> dict[str, str]:
    """Return the environment in which this machine's Python builds extension modules for another (both Debian's,
    multiarch)."""
    triple = libc.TRIPLES[machine]
    return {
        "_PYTHON_HOST_PLATFORM": f"linux-{machine}",
        "_PYTHON_SYSCONFIGDATA_NAME": f"_sysconfigdata__{triple}",
        "CC": f"{triple}-gcc",
        "CXX": f"{triple}-g++",
    }


def _renamed(name: str) -> str:
    """Return the name of an extension module for the other processor; names contain the platform."""
    return name.replace(libc.TRIPLES[platform.machine()], libc.TRIPLES[libc.machine()])


def _exchange_file(path: Path, name: Path, wheels: Path, system: Path) -> None:
    foreign_file = wheels / _renamed(name.as_posix())
    if not machine_of(path.resolve()):
        if foreign_file.is_file() and foreign_file.read_bytes() != path.read_bytes():
            shutil.copy2(foreign_file, path)
        return
    path.unlink()
    if "lib-dynload" in name.parts:
        foreign_file = system / f"usr/lib/python{sysconfig.get_python_version()}/lib-dynload" / _renamed(name.name)
    elif not foreign_file.exists():
        # A wheel for every Python from some version on names its modules otherwise than a source compiled for one. Of
        # libraries only the machine's are looked for; those that lie in a wheel are found by who needs them.
        candidates = (
            sorted(foreign_file.parent.glob(f"{foreign_file.name.partition('.')[0]}.*.so"))
            if foreign_file.suffix == ".so"
            else []
        )
        library = _system_library(name.name, system) if len(name.parts) == 1 else None
        foreign_file = next(iter(candidates), library or foreign_file)
    if foreign_file.is_file():
        shutil.copy2(foreign_file, path.with_name(foreign_file.name))
    elif ".so." not in path.name and not name.parts[0].endswith(".libs"):
        raise SystemExit(f"build: {foreign_file} is not there, and {name} is not for {libc.machine()}")


def _system_library(name: str, system: Path) -> Path | None:
    triple = libc.TRIPLES[libc.machine()]
    paths = (system / folder / triple / name for folder in ("usr/lib", "lib"))
    return next((folder for folder in paths if folder.is_file()), None)


def needed_by(path: Path) -> list[str]:
    """Return the libraries that an ELF file of any processor requires."""
    output = subprocess.run(["readelf", "-dW", str(path)], capture_output=True, text=True, check=True).stdout
    return _NEEDED.findall(output)


def _add_needed(internal: Path, wheels: Path, system: Path) -> None:
    """Exchange the libraries that the exchanged files require: their names in wheels differ for each processor."""
    in_wheels = {path.name: path for path in sorted(wheels.rglob("*.so*"))}
    todo = [path for path in sorted(internal.rglob("*")) if machine_of(path)]
    have = {path.name for path in internal.rglob("*.so*")}
    of_libc = {*libc.LIBRARIES, Path(libc.LOADERS[libc.machine()]).name}
    while todo:
        for name in needed_by(todo.pop()):
            if name in have or name in of_libc:
                continue
            source = in_wheels.get(name)
            target = internal / (source.relative_to(wheels) if source else name)
            source = source or _system_library(name, system)
            if source is None:
                raise SystemExit(f"build: {name} for {libc.machine()} is neither in a wheel nor installed")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
            have.add(name)
            todo.append(target)


def _exchange_sources(entries: modules.Entries, site: Path, wheels: Path) -> None:
    for name, (kind, _) in list(entries.items()):
        inner = "/__init__.py" if kind == modules.PACKAGE else ".py"
        relative = name.replace(".", "/") + inner
        if not (site / relative).is_file():
            continue
        if not (wheels / relative).is_file():
            raise SystemExit(f"build: the wheels for {libc.machine()} lack {relative}")
        text = (wheels / relative).read_bytes()
        if text != (site / relative).read_bytes():
            if name in modules.LEAN:
                raise SystemExit(f"build: {relative} is changed in what it loads, and another one for {libc.machine()}")
            code = compile(text, relative, "exec", dont_inherit=True, optimize=modules.level(name))
            entries[name] = (kind, marshal.dumps(code))


def _exchange_configuration(entries: modules.Entries, system: Path) -> None:
    for name in [name for name in entries if name.startswith("_sysconfigdata")]:
        foreign_file = system / f"usr/lib/python{sysconfig.get_python_version()}" / f"{_renamed(name)}.py"
        if not foreign_file.is_file():
            raise SystemExit(f"build: {foreign_file} is not there")
        kind, _ = entries.pop(name)
        code = compile(foreign_file.read_bytes(), foreign_file.name, "exec", dont_inherit=True, optimize=1)
        entries[_renamed(name)] = (kind, marshal.dumps(code))
