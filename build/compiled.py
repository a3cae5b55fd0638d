"""Compile the mesh's hot modules with mypyc, in a copy of the tree.

    python build/compiled.py DIR      # a whole copy (with tests and scripts), to run tests and benchmarks in

The modules written in C (EXTENSIONS) are compiled with them.

`build.py` uses the results of a smaller copy by default. The wheel has the plain modules, which behave the same
(docs/decisions/compiled-modules.md). Requires gcc, Python's headers and mypy; for another processor (libc.CROSS) also
its cross compiler and its Python's headers and configuration.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import check
import foreign
import libc

ROOT = Path(__file__).resolve().parent.parent
HOT = ("coder/mesh/core",)
ALSO = ("coder/mesh/drivers/udp.py",)
"""Modules of the drivers that run for every datagram and are not coroutines."""
EXTENSIONS = ("coder/mesh/core/crypto/_batch_cipher.c",)
"""Modules in C. Their users do without where they are missing, so the wheel has none."""
LIBRARIES = (
    "_cffi_backend",
    "cryptography.hazmat.bindings._rust",
    "google._upb._message",
    "greenlet._greenlet",
    "msgspec._core",
    "nacl._sodium",
    "yaml._yaml",
)
"""Native modules of packages that are imported, too: one compiled against an older library than its own fails only when
it is loaded."""
PLAIN = {
    "coder/mesh/core/crypto/keys.py": "a class that inherits from bytes",
    "coder/mesh/core/wire/derp.py": "frames are values made a few times a connection; packets never become one",
    "coder/mesh/core/wire/derp_reader.py": "as derp.py",
    "coder/mesh/core/wire/derp_info.py": "decoded JSON has types of its own; compiled code refuses undeclared ones",
}
_FIRST = """
import importlib, sys
place = importlib.import_module(sys.argv[1]).__file__
sys.exit(0 if place.endswith(".so") else f"it is {place}")
"""
GROUP = "coder_mesh"
"""Name of the shared object with all the code; the modules next to their sources only refer to it."""
LEVEL, QUICK_LEVEL = "3", "g"
"""Optimisation levels of gcc. The quick one takes half the time; a request and its reply cost a sixth more in the
stack."""
_SETUP = """
import os, sys
from concurrent.futures import ThreadPoolExecutor
from setuptools import Extension, setup
from setuptools._distutils.ccompiler import CCompiler
from mypyc.build import mypycify
from mypyc.common import PLATFORM_SIZE

if PLATFORM_SIZE != {size}:
    sys.exit(f"mypyc writes C for numbers of {{PLATFORM_SIZE}} bytes, and {size} is wanted")

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
    multi_file=True) + [Extension(name, [path], libraries=["dl"]) for name, path in {extensions!r}])
"""


def hot_modules(root: Path = ROOT) -> list[str]:
    """Return the paths of the modules to compile, relative to the root."""
    paths = sorted(path for folder in HOT for path in (root / folder).rglob("*.py") if path.name != "__init__.py")
    paths += [root / name for name in ALSO]
    return [name for path in paths if (name := path.relative_to(root).as_posix()) not in PLAIN]


def source_hash(level: str, root: Path = ROOT) -> str:
    """Return a hash of the compilation's inputs: the sources with the modules of their types, the compilers, their
    options, the processor."""
    import mypy.version

    made_by = f"{sys.version} {mypy.version.__version__} {_SETUP} {level} {libc.machine()}"
    digest = hashlib.sha256(made_by.encode())
    sources = [path for folder in ("coder/base", "coder/mesh") for path in (root / folder).rglob("*.py")]
    sources += [root / name for name in EXTENSIONS]
    for path in sorted(sources):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:32]


def copy_tree(target: Path, *, whole: bool) -> None:
    """Copy the sources; if `whole`, with tests and scripts."""
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
    """Compile the hot modules of a copy in place, and check that they import, on request each of them first. For
    another processor, check only that the files are for it."""
    files = hot_modules(target)
    # mypyc reads [tool.mypy] for strictness; it would also compile packages listed there.
    script = target / "compile_hot.py"
    extensions = list(zip(extension_names(), EXTENSIONS, strict=True))
    script.write_text(_SETUP.format(group=GROUP, files=files, extensions=extensions, level=level, size=pointer_size()))
    (target / "pyproject.toml").rename(target / "pyproject.hidden")
    try:
        done = subprocess.run(
            [sys.executable, str(script), "-q", "build_ext", "--inplace"],
            cwd=target,
            env={**os.environ, "PYTHONPATH": str(target), **compiler_environment()},
            check=False,
            stdout=sys.stderr,
        )
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
    if libc.CROSS:
        check_processor(target)
    else:
        check_imports(target, [*(files if each_first else files[:1]), *EXTENSIONS])


def pointer_size() -> int:
    """Return the pointer size in bytes of the target processor, which is the width of mypyc's short integers."""
    return 4 if libc.machine() == "armv7l" else struct.calcsize("P")


def compiler_environment() -> dict[str, str]:
    """Return the compiler settings of the target. mypyc also reads the processor's word size there: its C differs for
    32 bits."""
    return {"CFLAGS": "-g0 -w", **(foreign.python_environment(libc.CROSS) if libc.CROSS else {})}


def check_processor(target: Path) -> None:
    """Check that each file is for the target processor and named as its Python expects."""
    ending = f"-{libc.TRIPLES[libc.machine()]}.so"
    for path in target.rglob("*.so"):
        if foreign.machine_of(path) != foreign.MACHINES[libc.machine()] or not path.name.endswith(ending):
            raise SystemExit(f"build: compiled, and not for {libc.machine()}: {path.relative_to(target)}")


def module_names(files: Sequence[str]) -> list[str]:
    return [name.rpartition(".")[0].replace("/", ".") for name in files]


def extension_names() -> list[str]:
    return module_names(EXTENSIONS)


def library_names(folder: Path) -> list[str]:
    """Return the native modules of `LIBRARIES` that a program's folder has."""
    return [name for name in LIBRARIES if any(folder.glob(f"_internal/{name.replace('.', '/')}.*so"))]


def check_program(folder: Path, emulator: Sequence[str] = (), *, each_first: bool = True) -> None:
    """Run check_imports in a folder of modules.convert, whose program can require an emulator."""
    names = [*module_names(hot_modules())[: None if each_first else 1], *extension_names(), *library_names(folder)]
    env = check.environment(folder / "_internal")

    def ask(name: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([*emulator, folder / "coder", name], env=env, check=False, capture_output=True)

    with check.another_main(folder, _FIRST), ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, done in zip(names, pool.map(ask, names), strict=True):
            if done.returncode:
                raise SystemExit(f"build: the program cannot import the compiled {name}:\n{done.stderr.decode()}")


def check_imports(target: Path, files: list[str]) -> None:
    """Import each module first in a separate process: the order matters for import cycles of compiled modules."""
    for name in module_names(files):
        code = f"import {name} as m; assert m.__file__.endswith('.so'), m.__file__"
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=target,
            env={**os.environ, "PYTHONPATH": str(target)},
            check=False,
            capture_output=True,
        )
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
