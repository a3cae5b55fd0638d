"""Conversion of PyInstaller's folder: one mapped file of modules, and build/starter.c as the program.

The code is PyInstaller's, with two exceptions: unused docstrings are removed, and the functions that `dataclasses`
generates and compiles at every import are compiled here once, from the texts that an import of the program produces.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import marshal
import os
import shutil
import struct
import subprocess
import sys
import sysconfig
import types
import zipfile
from pathlib import Path

import libc

MAGIC = b"CODERMD3"
MODULE, PACKAGE, NAMESPACE, FUNCTION = range(4)
FUNCTION_DIGITS = 32
HERE = Path(__file__).resolve().parent
NOT_NEEDED = {"pyi_rth_cryptography_openssl"}
"Start-up scripts without effect here: this one sets a folder of OpenSSL modules, which does not exist."
DOCSTRINGS = (
    "coder.api",
    "coder.coderd.http",
    "coder.coderd.rpc_endpoints",
    "coder.coderd.services",
    "alembic",
    "asyncpg",
    "click",
    "flask",
    "quart",
    "sqlalchemy",
    "werkzeug",
)
"""Packages that read docstrings at run time, their own or those of dependents: the API's description uses those of
views, stream handlers and body types. All others lose theirs, which saves 2 MiB in every agent; Python's own library
supports that (-OO)."""
_ENTRY = struct.Struct("<5I")
_PYC_HEADER = 16
Entries = dict[str, tuple[int, bytes]]

_RECORD = """
import dataclasses, importlib, json, pkgutil, sys
texts = set()
original = dataclasses._create_fn
def create(name, args, body, *, globals=None, locals=None, return_type=dataclasses.MISSING):
    names = list(locals or {})
    head = "->_return_type" if return_type is not dataclasses.MISSING else ""
    names += ["_return_type"] if return_type is not dataclasses.MISSING and "_return_type" not in names else []
    lines = "\\n".join(f"  {line}" for line in body)
    inner = f" def {name}({','.join(args)}){head}:\\n{lines}"
    texts.add(f"def __create_fn__({', '.join(names)}):\\n{inner}\\n return {name}")
    return original(name, args, body, globals=globals, locals=locals, return_type=return_type)
dataclasses._create_fn = create
import coder
for found in pkgutil.walk_packages(coder.__path__, "coder."):
    if not found.name.endswith("__main__"):
        try:
            importlib.import_module(found.name)
        except ImportError as error:
            print(f"not recorded: {error}", file=sys.stderr)
json.dump(sorted(texts), sys.stdout)
"""
LEAN: dict[str, tuple[tuple[str, str], ...]] = {
    # importing inspect takes a fifth of `coder version`, only to generate a class's missing docstring
    "dataclasses": (
        ("import inspect\n", "import _modules\n"),
        ("str(inspect.signature(cls)).replace(' -> None', '')", "''"),
        ("    exec(txt, globals, ns)\n", "    exec(_modules.function(txt) or txt, globals, ns)\n"),
    ),
    # this Python's typing has the names it imports; typing_extensions imports inspect, too
    "msgspec._utils": (
        ("from typing_extensions import get_type_hints as", "from typing import get_type_hints as"),
        ("from typing_extensions import NotRequired, Required", "from typing import NotRequired, Required"),
    ),
    "uuid": (
        (
            "    import platform\n    _platform_system = platform.system()\n",
            "    _platform_system = os.uname().sysname\n",
        ),
    ),
}
"""Third-party modules that short commands import, with their patches."""


def convert(
    folder: Path, entries: Entries, texts: list[str], shared: Path | None = None, beneath: Path | None = None
) -> None:
    """Rewrite a collected folder in place to one with the modules in `entries` and the functions in `texts`.

    Compiled modules of `shared` replace the plain ones. `beneath` is a converted folder: its module file is copied
    unchanged, and new or different modules go into a second file, so that the larger program extends the smaller one.
    """
    entries = dict(entries)
    for path in shared.rglob("*.so") if shared is not None else ():
        relative = path.relative_to(shared)  # type: ignore[arg-type]
        entries.pop(relative.with_name(relative.name.partition(".")[0]).as_posix().replace("/", "."), None)
        (folder / "_internal" / relative).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, folder / "_internal" / relative)
    entries["_coder_start"] = (MODULE, _compiled((HERE / "finder.py").read_text(), "_coder_start"))
    for name in LEAN:
        entries[name] = (MODULE, _compiled(lean_source(name), f"{name.replace('.', '/')}.py", level(name)))
    for text in texts:
        entries[function_name(text)] = (FUNCTION, marshal.dumps(compile(text, "<string>", "exec", optimize=1)))
    relative = folder / "_internal" / "modules.bin"
    if beneath is None or beneath == folder:
        relative.write_bytes(packed(entries))
    else:
        shutil.copyfile(beneath / "_internal" / "modules.bin", relative)
        existing = unpacked(relative.read_bytes())
        added = {name: entry for name, entry in entries.items() if existing.get(name) != entry}
        relative.with_name("modules-full.bin").write_bytes(packed(added))
    (folder / "_internal" / "base_library.zip").unlink()
    compile_starter(folder / "coder")


def collected(folder: Path) -> Entries:
    """Return every Python module in PyInstaller's program and its zip."""
    from PyInstaller.archive.readers import CArchiveReader

    entries: Entries = {}
    archive = CArchiveReader(str(folder / "coder"))
    inner = archive.open_embedded_archive(next(name for name in archive.toc if name.endswith(".pyz")))
    for name, (typecode, *_) in inner.toc.items():
        code = inner.extract(name)
        kind = (MODULE, PACKAGE, 0, NAMESPACE)[typecode]
        entries[name] = (kind, marshal.dumps(code) if isinstance(code, types.CodeType) else b"")
    with zipfile.ZipFile(folder / "_internal" / "base_library.zip") as base:
        for path in base.namelist():
            name = path.removesuffix(".pyc").replace("/", ".")
            kind = PACKAGE if name.endswith(".__init__") else MODULE
            # Marshalled again: reference counts at compile time affect the bytes.
            code = marshal.loads(base.read(path)[_PYC_HEADER:])  # noqa: S302 - PyInstaller's own, of a moment ago
            entries[name.removesuffix(".__init__")] = (kind, marshal.dumps(code))
    for name, entry in archive.toc.items():
        if entry[-1] == "m" and not name.startswith("pyimod"):
            entries[name] = (MODULE, archive.extract(name))  # PyInstaller's own early import: struct
    hooks = {name for name, entry in archive.toc.items() if entry[-1] == "s" and name.startswith("pyi_rth")}
    if hooks - NOT_NEEDED:
        raise SystemExit(f"build: start-up scripts of PyInstaller that would not run: {hooks - NOT_NEEDED}")
    if (folder / "_internal" / "ossl-modules").exists():
        raise SystemExit("build: OpenSSL's modules were collected, but their path is not set")
    for name, (kind, code) in entries.items():
        if level(name) == 2 and code:
            entries[name] = (kind, without_docstrings(name, code))
    entries["coder.__main__"] = (MODULE, archive.extract("__main__"))
    return entries


def level(name: str) -> int:
    """Optimisation levels: without asserts, and without docstrings if they are unused."""
    return 1 if any(name == package or name.startswith(f"{package}.") for package in DOCSTRINGS) else 2


def without_docstrings(name: str, written: bytes) -> bytes:
    """Return a module's code without docstrings, compiled from its source; unchanged if that fails."""
    code: types.CodeType = marshal.loads(written)  # noqa: S302 - what this build compiled
    inner = "/__init__.py" if code.co_filename.endswith("__init__.py") else ".py"
    for folder in (str(HERE.parent), *(sysconfig.get_path(part) for part in ("purelib", "platlib", "stdlib"))):
        source_path = Path(folder, f"{name.replace('.', '/')}{inner}")
        if source_path.is_file():
            text = source_path.read_bytes()
            same = compile(text, code.co_filename, "exec", dont_inherit=True, optimize=1) == code
            return _compiled(text, code.co_filename, 2) if same else written
    return written


def _compiled(text: str | bytes, name: str, optimize: int = 1) -> bytes:
    # Marshalled twice: reference counts at compile time affect the bytes.
    marshalled = marshal.dumps(compile(text, name, "exec", dont_inherit=True, optimize=optimize))
    return marshal.dumps(marshal.loads(marshalled))  # noqa: S302


def lean_source(name: str) -> str:
    """Return the source of a module with its patches. A patch that no longer applies stops the build."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise SystemExit(f"build: {name} is not installed")
    text = Path(spec.origin).read_text()
    for before, after in LEAN[name]:
        if text.count(before) != 1:
            raise SystemExit(f"build: this version of {name} does not have {before!r} once")
        text = text.replace(before, after)
    return text


def cut_out(folder: Path, target: Path, files: list[str]) -> None:
    """Create a folder with only some of another's files; both can then be converted."""
    if target.exists():  # an interrupted build leaves a folder
        shutil.rmtree(target)
    (target / "_internal").mkdir(parents=True)
    for name in files:
        source = target / "_internal" / name
        source.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(folder / "_internal" / name, source, follow_symlinks=False)


def recorded_texts(sources: Path) -> list[str]:
    """Return the functions that `dataclasses` generates when all our modules are imported."""
    done = subprocess.run(
        [sys.executable, "-c", _RECORD],
        cwd=sources,
        env={**os.environ, "PYTHONPATH": str(sources)},
        check=True,
        stdout=subprocess.PIPE,
    )
    texts: list[str] = json.loads(done.stdout)
    return texts


def function_name(text: str) -> str:
    """Return the key for the code of a function's text: short, and no module's name."""
    return f"={hashlib.sha256(text.encode()).hexdigest()[:FUNCTION_DIGITS]}"


def packed(entries: Entries) -> bytes:
    """Return the content of the module file; build/starter.c describes its layout."""
    names = sorted((name.encode(), name) for name in entries)
    index = bytearray()
    name_at = len(MAGIC) + 4 + _ENTRY.size * len(names)
    code_at = name_at + sum(len(raw) for raw, _ in names)
    # Names come first, together: a lookup must not touch, and so load, the pages of code.
    for raw, name in names:
        kind, code = entries[name]
        index += _ENTRY.pack(name_at, len(raw), code_at, len(code), kind)
        name_at += len(raw)
        code_at += len(code)
    body = b"".join([*(raw for raw, _ in names), *(entries[name][1] for _, name in names)])
    return MAGIC + struct.pack("<I", len(names)) + index + body


def unpacked(data: bytes) -> Entries:
    """Return the entries of a module file that `packed` wrote."""
    entries: Entries = {}
    start = len(MAGIC) + 4
    (count,) = struct.unpack_from("<I", data, len(MAGIC))
    for name, name_size, code, code_size, kind in _ENTRY.iter_unpack(data[start : start + count * _ENTRY.size]):
        entries[data[name : name + name_size].decode()] = (kind, data[code : code + code_size])
    return entries


def compile_starter(target: Path) -> None:
    number = sysconfig.get_config_var("LDVERSION")
    folder = f"/usr/lib/{libc.TRIPLES[libc.CROSS]}" if libc.CROSS else sysconfig.get_config_var("LIBDIR")
    target.unlink(missing_ok=True)
    command = [
        libc.tool("gcc"),
        "-O2",
        "-Wall",
        "-Wextra",
        "-s",
        f'-DPYTHON_NUMBER="{sysconfig.get_python_version()}"',
        f"-I{sysconfig.get_path('include')}",
        "-o",
        str(target),
        str(HERE / "starter.c"),
        str(HERE / "sha256.c"),
        f"-L{folder}",
        f"-lpython{number}",
        "-Wl,-rpath,$ORIGIN/_internal",
    ]
    if subprocess.run(command, check=False).returncode != 0:
        raise SystemExit("build: the start program did not compile; it needs Python's headers and shared library")
    target.chmod(0o755)
