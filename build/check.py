"""Check that a built program has everything it can import: load each of its modules, and run every import of the
sources, also those inside functions.

    python build/check.py FILE …            # code 1 and a line for each that is missing

PyInstaller follows only imports that it sees; a module named in a string, or excluded by mistake, would fail only when
its command runs. The check runs inside the program: its folder gets another main module, and nothing else is changed.
Modules that this environment cannot import either (another system's modules, optional ones) are ignored. Requires the
Python that the program was built with, because the bytecode must match.
"""

from __future__ import annotations

import ast
import json
import marshal
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import editions
import modules

Wanted = dict[str, list[str]]
"""Importing module -> its imports: modules, and `module:name` for names of modules."""

_ASK = """
import importlib, json, sys, warnings
warnings.simplefilter("ignore")
def there(wanted):
    place, _, name = wanted.partition(":")
    try:
        found = importlib.import_module(place)
        if name and not hasattr(found, name):
            importlib.import_module(f"{place}.{name}")
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return ""
with open(sys.argv[1], encoding="utf-8") as file:
    wanted = json.load(file)
failed = {name: said for name in wanted if (said := there(name))}
with open(sys.argv[2], "w", encoding="utf-8") as file:
    json.dump(failed, file)
"""


@dataclass
class Report:
    """Imports that a program lacks."""

    edition: str
    loaded: int
    "Requested modules and names."
    missing: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)
    "Imports of modules that `editions` excludes from this program."


def check(program: Path, emulator: Sequence[str] = ()) -> Report:
    """Unpack the program and check it; with an emulator (and its arguments), on that processor."""
    with tempfile.TemporaryDirectory(prefix="coder-check-") as temporary:
        env = {**os.environ, "CODER_BINARY_CACHE": f"{temporary}/cache", "CODER_NO_COMMAND_SERVER": "1"}
        subprocess.run([*emulator, program.resolve(), "version"], env=env, check=True, stdout=subprocess.DEVNULL)
        (folder,) = (path for path in Path(temporary, "cache").iterdir() if (path / "coder").exists())
        return check_folder(folder, emulator)


def check_folder(folder: Path, emulator: Sequence[str] = ()) -> Report:
    """Check a folder of modules.convert."""
    internal = folder / "_internal"
    full = internal / "modules-full.bin"
    beneath = modules.unpacked((internal / "modules.bin").read_bytes())
    above = modules.unpacked(full.read_bytes()) if full.exists() else {}
    found = {name: kind for name, (kind, _) in (beneath | above).items() if kind != modules.FUNCTION}
    slim = "coder.coderd.app" not in found
    requested = required_providers(name for name in found if name.partition(".")[0] == "coder")
    requested[""] = sorted(name for name in found if not name.endswith("__main__"))
    requested_names = sorted({name for names in requested.values() for name in names})
    with another_main(folder, _ASK):
        failed = ask([*emulator, str(folder / "coder")], requested_names, internal)
    failed_here = ask([sys.executable, "-c", _ASK], requested_names) if failed else {}
    report = Report("slim" if slim else "full", len(requested_names))
    absent = set(editions.left_out(failed_modules(failed))) if slim else set()
    for who, names in sorted(requested.items()):
        for name in names:
            if name not in failed or name in failed_here:
                continue
            line = f"{who or 'the module file'}: {name} ({failed[name]})"
            (report.without if is_meant(name, failed[name], absent, slim=slim) else report.missing).append(line)
    return report


@contextmanager
def another_main(folder: Path, source: str) -> Iterator[None]:
    """Replace the program of a modules.convert folder with this source for the duration of the block."""
    full = folder / "_internal/modules-full.bin"
    before = full.read_bytes() if full.exists() else None
    above = modules.unpacked(before) if before else {}
    above["coder.__main__"] = (modules.MODULE, marshal.dumps(compile(source, "check", "exec")))
    full.write_bytes(modules.packed(above))
    try:
        yield
    finally:
        if before is None:
            full.unlink()
        else:
            full.write_bytes(before)


def environment(internal: Path) -> dict[str, str]:
    """Return the environment that skips an unpacked program's re-exec for its libraries (`starter.c`), which would
    leave the emulator."""
    return {**os.environ, "LD_LIBRARY_PATH": str(internal), "_PYI_APPLICATION_HOME_DIR": str(internal)}


def failed_modules(failed: Iterable[str]) -> set[str]:
    """Return the modules that a failed import can refer to."""
    return {module for name in failed for module in (name.partition(":")[0], name.replace(":", "."))}


def is_meant(name: str, message: str, absent: set[str], *, slim: bool) -> bool:
    """Return whether `editions` excludes the module, or a module that its import failed for."""
    module, _, inner = name.partition(":")
    named = message.partition("No module named '")[2].partition("'")[0]
    tops = {module.partition(".")[0], named.partition(".")[0]}
    if tops & set(editions.NOT_RUN) or (named and not exists(named)):
        return True
    if not slim:
        return False
    of_server = {module, f"{module}.{inner}", named} & absent or editions.in_server_rooms(named)
    return bool(of_server or tops & set(editions.LIBRARIES))


def exists(name: str) -> bool:
    """Return whether this environment has the module; it lacks those of other systems."""
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def ask(command: list[str], names: list[str], internal: Path | None = None) -> dict[str, str]:
    """Return the names that a program cannot import with their errors; `internal` is an unpacked program's folder."""
    with tempfile.TemporaryDirectory(prefix="coder-check-") as temporary:
        question, answer = Path(temporary, "question"), Path(temporary, "answer")
        question.write_text(json.dumps(names))
        env = {**(environment(internal) if internal else os.environ), "PYTHONPATH": str(editions.ROOT)}
        done = subprocess.run(
            [*command, question, answer], env=env, cwd=temporary, check=False, stdout=subprocess.DEVNULL
        )
        if not answer.exists():
            raise SystemExit(f"check: {command[0]} ended with {done.returncode} before it had loaded everything")
        errors: dict[str, str] = json.loads(answer.read_text())
    return errors


def required_providers(names: Iterable[str]) -> Wanted:
    """Return every import in the sources of our modules."""
    found: Wanted = {}
    for name in names:
        path = editions.module_file(name)
        if path is not None and name != "coder.__main__":
            found[name] = sorted(set(imports(ast.parse(path.read_text(encoding="utf-8")))))
    return found


def imports(tree: ast.AST) -> Iterator[str]:
    """Return the modules, and `module:name`, that a source imports at run time, without those for types only."""
    yield from (f"{module}:{name}" if name else module for module, name in editions.imported(tree))


def main() -> int:
    failed = False
    for name in sys.argv[1:]:
        report = check(Path(name))
        for line in report.missing:
            print(line)
        failed |= bool(report.missing)
        more = f", {len(report.without)} left out on purpose" if report.without else ""
        print(
            f"{name}: {report.edition}, {report.loaded} imports, {len(report.missing)} missing{more}", file=sys.stderr
        )
    return 1 if failed or len(sys.argv) < 2 else 0


if __name__ == "__main__":
    raise SystemExit(main())
