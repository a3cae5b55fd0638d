"""Compiles the mesh's hot modules: the same sources, translated by mypyc, in a copy of the tree.

    python build/compiled.py DIR      # a whole copy (tests and scripts too), to run tests and benchmarks in

`build.py` collects the program from a smaller copy unless told otherwise. Whoever installs the wheel gets the plain
modules, which behave alike (docs/decisions/compiled-modules.md). Needs gcc, Python's headers and mypy.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOT = ("coder/mesh/core",)
ALSO = ("coder/mesh/drivers/udp.py",)
"""Of the drivers what runs for every datagram and is no coroutine."""
PLAIN = {
    "coder/mesh/core/crypto/keys.py": "a class that inherits from bytes",
    "coder/mesh/core/tunnel/events.py": "its annotations name a class of a module that imports it: mypyc crashes",
    "coder/mesh/core/wire/derp.py": "decoded JSON has types of its own, and compiled code refuses what is not declared",
}
GROUP = "coder_mesh"
"""The shared object with all the code is named after it; the modules beside their sources only point there."""
_SETUP = """
import sys
from setuptools import setup
from mypyc.build import mypycify
setup(name={group!r}, packages=[], ext_modules=mypycify(
    ["--follow-imports=silent", *{files!r}], opt_level="3", debug_level="0", group_name={group!r}))
"""


def hot_modules(root: Path = ROOT) -> list[str]:
    """Paths of the modules to compile, relative to the root."""
    found = sorted(path for folder in HOT for path in (root / folder).rglob("*.py") if path.name != "__init__.py")
    found += [root / name for name in ALSO]
    return [name for path in found if (name := path.relative_to(root).as_posix()) not in PLAIN]


def copy_tree(target: Path, *, whole: bool) -> None:
    """The sources; with tests and scripts when `whole`."""
    ignore = shutil.ignore_patterns("__pycache__", "node_modules", "*.so", ".mypy_cache")
    names = ["coder", "build", "pyproject.toml", *(("tests", "scripts", "docs") if whole else ())]
    for name in names:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=ignore, dirs_exist_ok=True)
        else:
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)


def compile_tree(target: Path) -> None:
    """Compile the hot modules of a copy in place, and see that each can be imported first."""
    files = hot_modules(target)
    # mypyc reads [tool.mypy] for strictness; packages named there would be compiled, too.
    script = target / "compile_hot.py"
    script.write_text(_SETUP.format(group=GROUP, files=files))
    (target / "pyproject.toml").rename(target / "pyproject.hidden")
    try:
        done = subprocess.run(
            [sys.executable, str(script), "-q", "build_ext", "--inplace"],
            cwd=target, env={**os.environ, "PYTHONPATH": str(target), "CFLAGS": "-g0 -w"}, check=False,
            stdout=sys.stderr,
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(
                "build: the hot modules did not compile (gcc and Python's headers needed); --pure does without"
            )
    finally:
        (target / "pyproject.hidden").rename(target / "pyproject.toml")
        script.unlink()
        for rest in [*(target / "build").glob("*.c"), *(target / "build").glob("*.h"), target / "build/ops.txt"]:
            if rest.name != "launcher.c":
                rest.unlink(missing_ok=True)
        for folder in (target / "build").iterdir():
            if folder.is_dir():
                shutil.rmtree(folder)
    check_imports(target, files)


def imports_of(target: Path) -> list[str]:
    """What compiled modules import: PyInstaller reads source, and cannot see into shared objects."""
    found: set[str] = set()
    for name in hot_modules(target):
        for node in ast.walk(ast.parse((target / name).read_text())):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module)
    return sorted(found - {"__future__"})


def check_imports(target: Path, files: list[str]) -> None:
    """Each module first in a process of its own: where compiled modules import in a circle, the order matters."""
    names = [name.removesuffix(".py").replace("/", ".") for name in files]
    for name in names:
        code = f"import {name} as m; assert m.__file__.endswith('.so'), m.__file__"
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=target, env={**os.environ, "PYTHONPATH": str(target)}, check=False, capture_output=True,
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(f"build: the compiled {name} cannot be imported:\n{done.stderr.decode()}")


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    target = Path(sys.argv[1]).resolve()
    copy_tree(target, whole=True)
    compile_tree(target)
    print(f"{target}: run there with PYTHONPATH={target}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
