"""The mesh's hot modules for Windows: mypyc writes C, mingw compiles it (build/compiled.py does both for Linux).

mypyc runs in the distribution of CPython that compiles the bytecode, because its C depends on the version of Python.
Only `coder/mesh/core` is compiled: it has no code for one system, and mypyc drops what is not for the system that it
runs on. The cipher's module in C needs `dlopen`, so Windows does without (crypto/batches.py).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import compiled

from desktop import sources

MINGW = "x86_64-w64-mingw32-gcc"
SUFFIX = ".cp314-win_amd64.pyd"
MYPYC = ("mypy", "mypy_extensions", "typing_extensions", "pathspec", "librt", "ast-serialize", "setuptools")
"""What mypyc consists of; setuptools is imported and not used."""
SHARED = f"{compiled.GROUP}__mypyc"
"""Module with all the code; the others only refer to it."""
FIRST_BASE, BASE_STEP = 0x3_4000_0000, 0x100_0000
"""Addresses of libraries; the default one is a hash of the output's path."""
_GENERATE = """
import importlib.machinery, json, sys
files, python, group, suffix = json.loads(sys.argv[1])
importlib.machinery.EXTENSION_SUFFIXES.insert(0, suffix)  # mypyc writes it into `__file__` of modules
from mypyc.build import generate_c_extension_shim, include_dir, mypyc_build
from mypyc.common import RUNTIME_C_FILES
from mypyc.options import CompilerOptions

options = CompilerOptions(multi_file=True, group_name=group, include_runtime_files=False)
flags = ["--follow-imports=silent", "--python-executable", python]
groups, names, dependencies = mypyc_build([*flags, *files], options)
((modules, _),), ((shared, _),) = groups, names
shims = {each.module: generate_c_extension_shim(each.module, each.module.rpartition(".")[2], "build", group)
         for each in modules}
runtime = [*RUNTIME_C_FILES, *(each.path for each in dependencies)]
folders = sorted({name for each in dependencies for name in each.include_dirs})
print(json.dumps({"shared": shared, "shims": shims, "include": include_dir(), "runtime": runtime, "folders": folders}))
"""


def hot_modules() -> list[str]:
    return [name for name in compiled.hot_modules() if name not in compiled.ALSO]


def source_hash(level: str) -> str:
    made_by = f"{compiled.source_hash(level)} {Path(__file__).read_text()} {sources.VERSION} {sys.version}"
    return hashlib.sha256(made_by.encode()).hexdigest()[:16]


def folder(*, quick: bool) -> Path:
    """Return a folder with the compiled modules at the paths of their sources; the result is kept. Raises
    SystemExit."""
    level = "1" if quick else compiled.LEVEL
    kept = sources.CACHE / f"mesh-windows-amd64-{source_hash(level)}"
    if not kept.exists():
        print("windows-amd64: compiling the mesh …", file=sys.stderr)
        with tempfile.TemporaryDirectory(prefix="coder-mesh-") as temporary:
            tree, made = Path(temporary, "tree"), Path(temporary, "made")
            compiled.copy_tree(tree, whole=False)
            (tree / "pyproject.toml").unlink()  # mypyc reads [tool.mypy] for strictness, and lists of other packages
            compile_tree(tree, made, level)
            for earlier in kept.parent.glob("mesh-windows-amd64-*"):
                shutil.rmtree(earlier)
            shutil.copytree(made, kept.with_suffix(".new"), dirs_exist_ok=True)
        kept.with_suffix(".new").replace(kept)
    return kept


def compile_tree(tree: Path, made: Path, level: str) -> None:
    """Compile the hot modules of a copy of the sources."""
    shutil.rmtree(tree / "build")
    arguments = json.dumps([hot_modules(), sys.executable, compiled.GROUP, SUFFIX])
    env = {**os.environ, "PYTHONPATH": f"{mypyc()}:{tree}", "PYTHONNOUSERSITE": "1"}
    command = [*sources.host_python(), "-c", _GENERATE, arguments]
    done = subprocess.run(command, cwd=tree, env=env, check=False, stdout=subprocess.PIPE)
    if done.returncode:
        raise SystemExit("build: mypyc failed, see above")
    plan = json.loads(done.stdout.splitlines()[-1])
    runtime = Path(plan["include"])
    options = ["-O" + level, "-DNDEBUG", "-w", "-I", str(headers()), "-I", str(runtime), "-I", str(tree / "build")]
    options += [part for name in plan["folders"] for part in ("-I", str(runtime / name))]
    shared = [*plan["shared"], *(str(runtime / name) for name in plan["runtime"])]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(lambda at: compile_one(tree, shared[at], at, options), range(len(shared))))
        link(objects, made / f"{SHARED}{SUFFIX}", 0)
        for at, (module, source) in enumerate(sorted(plan["shims"].items()), len(shared)):
            target = made / f"{module.replace('.', '/')}{SUFFIX}"
            link([compile_one(tree, source, at, options)], target, 1 + at - len(shared))


def compile_one(tree: Path, source: str, number: int, options: list[str]) -> str:
    made = f"{number}.o"
    # `assert` of headers writes the name of its file into the program: it must not depend on where the cache is.
    maps = [f"-ffile-prefix-map={folder}=." for folder in (tree, sources.CACHE)]
    run([MINGW, "-c", *options, *maps, "-o", made, source], tree)
    return str(tree / made)


def link(objects: list[str], target: Path, number: int) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    base = FIRST_BASE if not number else FIRST_BASE + BASE_STEP * 4 + number * 0x10_0000
    flags = ["-shared", "-s", "-static-libgcc", "-Wl,--no-insert-timestamp", f"-Wl,--image-base={base:#x}"]
    library = sources.interpreter("windows-x86_64") / f"python{sources.PYTHON.replace('.', '')}.dll"
    run([MINGW, *flags, "-o", str(target), *objects, str(library)], target.parent)


def headers() -> Path:
    return sources.interpreter("windows-x86_64") / "include"


def mypyc() -> Path:
    """Return the folder of mypyc for the distribution of CPython, in the version that compiles the mesh for Linux."""
    constraints = (sources.ROOT / "scripts/constraints.txt").read_bytes()
    kept = sources.CACHE / f"mypyc-{hashlib.sha256(constraints).hexdigest()[:16]}"
    if not kept.exists():
        unpacked = kept.with_suffix(".new")
        shutil.rmtree(unpacked, ignore_errors=True)
        tags = [f"manylinux_2_{minor}_x86_64" for minor in (17, 28)] + ["manylinux2014_x86_64"]
        target = sources.Target("linux-amd64", sources.HOST, tuple(tags))
        pinned = ["-c", str(sources.ROOT / "scripts/constraints.txt"), "--target", str(unpacked)]
        sources.pip("install", "--no-compile", *pinned, *sources.options(target), *MYPYC)
        unpacked.replace(kept)
    return kept


def run(command: list[str], folder: Path) -> None:
    if subprocess.run(command, check=False, cwd=folder).returncode:
        raise SystemExit(f"build: {command[0]} failed")
