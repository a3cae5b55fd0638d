"""Compiles the mesh's hot modules: the same sources, translated by mypyc, in a copy of the tree.

    python build/compiled.py DIR      # a whole copy (tests and scripts too), to run tests and benchmarks in

`build.py` takes the results from a smaller copy unless told otherwise. Whoever installs the wheel gets the plain
modules, which behave alike (docs/decisions/compiled-modules.md). Needs gcc, Python's headers and mypy.
"""

from __future__ import annotations

import hashlib
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
    "coder/mesh/core/wire/derp.py": "frames are values made a few times a connection; packets never become one",
    "coder/mesh/core/wire/derp_reader.py": "as derp.py",
    "coder/mesh/core/wire/derp_info.py": "decoded JSON has types of its own; compiled code refuses undeclared ones",
}
GROUP = "coder_mesh"
"""The shared object with all the code is named after it; the modules beside their sources only point there."""
LEVEL, QUICK_LEVEL = "3", "g"
"""Of gcc's optimisation. The quick one takes half the time; question and answer cost a sixth more in the stack."""
_SETUP = """
import os, sys
from concurrent.futures import ThreadPoolExecutor
from setuptools import setup
from setuptools._distutils.ccompiler import CCompiler
from mypyc.build import mypycify

def compile_side_by_side(self, sources, output_dir=None, macros=None, include_dirs=None, debug=0,
                         extra_preargs=None, extra_postargs=None, depends=None):
    macros, objects, extra, options, build = self._setup_compile(
        output_dir, macros, include_dirs, sources, depends, extra_postargs)
    flags = self._get_cc_args(options, debug, extra_preargs)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda made: self._compile(made, *build[made], flags, extra, options), build))
    return objects

CCompiler.compile = compile_side_by_side
setup(name={group!r}, packages=[], ext_modules=mypycify(
    ["--follow-imports=silent", *{files!r}], opt_level={level!r}, debug_level="0", group_name={group!r},
    multi_file=True))
"""


def hot_modules(root: Path = ROOT) -> list[str]:
    """Paths of the modules to compile, relative to the root."""
    found = sorted(path for folder in HOT for path in (root / folder).rglob("*.py") if path.name != "__init__.py")
    found += [root / name for name in ALSO]
    return [name for path in found if (name := path.relative_to(root).as_posix()) not in PLAIN]


def source_hash(level: str, root: Path = ROOT) -> str:
    """Changes when what is compiled does: the sources with all they take types from, the compilers, their options."""
    import mypy.version

    digest = hashlib.sha256(f"{sys.version} {mypy.version.__version__} {_SETUP} {level}".encode())
    sources = [path for folder in ("coder/base", "coder/mesh") for path in (root / folder).rglob("*.py")]
    for path in sorted(sources):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:32]


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


def compile_tree(target: Path, level: str = LEVEL, *, each_first: bool = True) -> None:
    """Compile the hot modules of a copy in place, and see that they can be imported, each as the first if so asked."""
    files = hot_modules(target)
    # mypyc reads [tool.mypy] for strictness; packages named there would be compiled, too.
    script = target / "compile_hot.py"
    script.write_text(_SETUP.format(group=GROUP, files=files, level=level))
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
        for rest in [*(target / "build").glob("*.[ch]"), target / "build/ops.txt"]:
            if not (ROOT / "build" / rest.name).exists():
                rest.unlink(missing_ok=True)
        for folder in (target / "build").iterdir():
            if folder.is_dir():
                shutil.rmtree(folder)
    check_imports(target, files if each_first else files[:1])


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
