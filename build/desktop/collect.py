"""Collection of a program's modules: every import in the sources of our modules is followed.

    python3.14 build/desktop/collect.py --target windows-amd64 --library DIR --site DIR --out FOLDER

The interpreter that runs this compiles the bytecode, so it has the version of the target's. The folder gets
`modules.bin` (build/modules.py), native modules, libraries and data. Ends with code 1 and a line for each import of our
modules that does not resolve.
"""

from __future__ import annotations

import argparse
import ast
import marshal
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "build"))

import editions  # noqa: E402 - found by the line above
import modules  # noqa: E402

EXCLUDED = frozenset(
    {
        *editions.NOT_RUN,
        *editions.LIBRARIES,
        "IPython",
        "OpenSSL",
        "_pyrepl",
        "ensurepip",
        "fido2",
        "gssapi",
        "hypothesis",
        "idlelib",
        "libnacl",
        "lib2to3",
        "pdb",
        "pip",
        "pydoc",
        "pydoc_data",
        "jwt",
        "re2",
        "sphinx",
        "test",
        "tkinter",
        "turtledemo",
        "unittest",
        "doctest",
    }
) - {"psutil"}
"""Packages that are not collected: the server's, and tools for developers. psutil takes the place of /proc."""
HIDDEN = {
    "_cffi_backend": ("nacl",),
    "ctypes._layout": ("ctypes",),
    "google._upb._message": ("google",),
    "keyring.backends": ("keyring",),
    "keyring.backends.Windows": ("keyring",),
    "keyring.backends.macOS": ("keyring",),
}
"""Modules that native modules, or names in strings, import; with the packages whose presence requires them."""
EARLY = ("encodings",)
"""Packages that the interpreter imports before the module file can be read; they are files of the folder."""
OTHER_SYSTEMS = {
    "windows": {"_posixsubprocess", "_scproxy", "fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios"},
    "darwin": {
        "_winapi",
        "_overlapped",
        "msvcrt",
        "nt",
        "winreg",
        "winsound",
        "winpty",
        "win32ctypes",
        "psutil._psutil_windows",
    },
}
"""Modules that belong to another system: an import of them is guarded, or its command does not exist there."""
NATIVE = {"windows": (".pyd", ".cp314-win_amd64.pyd"), "darwin": (".cpython-314-darwin.so", ".abi3.so", ".so")}
BROKEN = {"darwin": ("_decimal", "_lzma", "_zstd", "_gdbm", "_dbm", "_curses_panel")}
"""Native modules of the distribution that import libraries which it lacks. Python's own library works without them."""

# A task of Python 3.14 runs only while its loop is the running one of the interpreter's own record.
_HANDLE_RUN = """
_original_handle_run = asyncio.Handle._run


def _handle_run(self):
    before = _orig_run_get()
    asyncio._set_running_loop(self._loop)
    try:
        _original_handle_run(self)
    finally:
        asyncio._set_running_loop(before)


asyncio.Handle._run = _handle_run
"""
PATCHES: dict[str, tuple[tuple[str, str], ...]] = {
    # Python 3.14 renamed the classes and functions of event loop policies, and has no child watchers.
    "trio_asyncio._loop": (
        ("asyncio.events.BaseDefaultEventLoopPolicy", "asyncio.events._BaseDefaultEventLoopPolicy"),
        ('asyncio.AbstractChildWatcher if sys.platform != "win32" else object', "object"),
        ("new_policy, asyncio.AbstractEventLoopPolicy\n", "new_policy, asyncio.events._AbstractEventLoopPolicy\n"),
        ("(_TrioPolicy, asyncio.DefaultEventLoopPolicy)", "(_TrioPolicy, asyncio._DefaultEventLoopPolicy)"),
        ("_policy_get = _aio_event.get_event_loop_policy", "_policy_get = _aio_event._get_event_loop_policy"),
        ("_policy_set = _aio_event.set_event_loop_policy", "_policy_set = _aio_event._set_event_loop_policy"),
        (
            "\n_aio_event.get_event_loop_policy = _new_policy_get\n",
            "\n_aio_event.get_event_loop_policy = _aio_event._get_event_loop_policy = _new_policy_get\n",
        ),
        (
            "\n_aio_event.set_event_loop_policy = _new_policy_set\n",
            "\n_aio_event.set_event_loop_policy = _aio_event._set_event_loop_policy = _new_policy_set\n",
        ),
        ("\nasyncio._get_running_loop = _new_run_get\n", "\nasyncio._get_running_loop = _new_run_get\n" + _HANDLE_RUN),
    ),
}
"""Packages that do not know this version of Python, with what makes them run on it."""


def source_of(name: str, path: Path) -> bytes:
    """Return a module's source with its patches. A patch that does not apply once stops the build."""
    text = path.read_bytes()
    for before, after in PATCHES.get(name, ()):
        if text.count(before.encode()) != 1:
            raise SystemExit(f"build: this version of {name} does not have {before!r} once")
        text = text.replace(before.encode(), after.encode())
    return text


@dataclass
class Collection:
    """Modules found so far."""

    system: str
    places: tuple[Path, ...]
    "Folders of sources, in the order of the search."
    absent: frozenset[str] = frozenset()
    "Our modules that the slim edition lacks."
    compiled: dict[str, Path] = field(default_factory=dict)
    "Native modules that take the place of our sources."
    sources: dict[str, Path] = field(default_factory=dict)
    native: dict[str, Path] = field(default_factory=dict)
    namespaces: set[str] = field(default_factory=set)
    unresolved: dict[str, set[str]] = field(default_factory=dict)
    "Importing module -> names."

    def find(self, name: str) -> Path | None:
        """Return the file of a module, or the folder of a namespace package."""
        relative = name.replace(".", "/")
        if name in BROKEN.get(self.system, ()):
            return None
        for place in self.places:
            path = place / relative
            for candidate in (path / "__init__.py", path.with_name(f"{path.name}.py")):
                if candidate.is_file():
                    return candidate
            for suffix in NATIVE[self.system]:
                if (native := path.with_name(path.name + suffix)).is_file():
                    return native
        for place in self.places:
            folder = place / relative
            if folder.is_dir() and any(path.suffix in {".py", ".pyd", ".so"} for path in folder.rglob("*")):
                return folder
        return None

    def follow(self, names: list[str]) -> None:
        """Collect the modules and everything they import."""
        todo = [("", name) for name in names]
        while todo:
            importer, name = todo.pop()
            if self.has(name) or is_excluded(name) or name in self.absent:
                continue
            path = self.find(name)
            if path is None:
                if not is_built_in(name, self.system):
                    self.unresolved.setdefault(importer, set()).add(name)
                continue
            if "." in name:
                todo.append((importer, name.rpartition(".")[0]))
            if path.is_dir():
                self.namespaces.add(name)
            elif path.suffix != ".py":
                self.native[name] = path
            else:
                if name in self.compiled:
                    self.native[name] = self.compiled[name]
                else:
                    self.sources[name] = path
                todo += [(name, wanted) for wanted in self.imports(name, path)]
            todo += [(name, hidden) for hidden, packages in HIDDEN.items() if name in packages and self.find(hidden)]

    def has(self, name: str) -> bool:
        return name in self.sources or name in self.native or name in self.namespaces

    def imports(self, name: str, path: Path) -> Iterator[str]:
        """Yield the modules that a source imports at any time."""
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        for module, imported in imported_names(ast.parse(path.read_bytes()), package):
            yield module
            if imported and self.find(f"{module}.{imported}"):
                yield f"{module}.{imported}"


def imported_names(tree: ast.AST, package: str) -> Iterator[tuple[str, str]]:
    """Yield (module, imported name or "") of every import, relative ones resolved."""
    yield from editions.imported(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            parts = package.split(".")
            base = parts[: len(parts) - node.level + 1]
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((module, alias.name) for alias in node.names)


def is_excluded(name: str) -> bool:
    return any(name == excluded or name.startswith(f"{excluded}.") for excluded in EXCLUDED)


def is_built_in(name: str, system: str) -> bool:
    """Return whether the target's interpreter contains the module, or another system does."""
    others = OTHER_SYSTEMS[system]
    top = name.partition(".")[0]
    return name in ALIASES or name in others or top in others or top in BUILT_IN[system]


ALIASES = frozenset({"collections.abc", "os.path", "importlib.resources.abc", "xml.etree.cElementTree"})
"""Names of modules that another module creates."""


BUILT_IN = {
    "windows": set(
        "_abc _bisect _blake2 _codecs_cn _contextvars _csv _datetime _functools _heapq _imp _interpchannels "
        "_interpqueues _interpreters _io _json _locale _lsprof _md5 _opcode _operator _pickle _random _sha1 _sha2 "
        "_sha3 _signal _sre _stat _statistics _string _struct _suggestions _symtable _sysconfig _tokenize "
        "_tracemalloc _typing _warnings _weakref _winapi array atexit binascii builtins cmath errno faulthandler gc "
        "itertools marshal math mmap msvcrt nt sys time winreg xxsubtype zlib _hmac _opcode_metadata".split()
    ),
    "darwin": set(
        "_abc _ast _codecs _collections _datetime _functools _imp _io _locale _opcode _operator _signal _sre _stat "
        "_string _suggestions _symtable _sysconfig _thread _tokenize _tracemalloc _types _typing _warnings _weakref "
        "atexit builtins errno faulthandler gc itertools marshal posix pwd sys time".split()
    ),
}


def is_required(importer: str, name: str) -> bool:
    """Return whether an import that does not resolve stops the build: one of our modules, or of a package's own."""
    top = importer.partition(".")[0]
    return top in {"coder", ""} or name.partition(".")[0] == top


def slim_modules() -> tuple[list[str], frozenset[str]]:
    """Return our modules of the slim edition, and those it lacks."""
    paths = [path.relative_to(ROOT) for path in (ROOT / "coder").rglob("*.py") if "node_modules" not in path.parts]
    names = [path.with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__") for path in paths]
    absent = frozenset(editions.left_out(names, ROOT))
    return sorted(name for name in names if name not in absent), absent


def compiled_modules(folder: Path, suffix: str) -> dict[str, Path]:
    """Return the native modules of a folder by name."""
    return {
        path.relative_to(folder).as_posix().removesuffix(suffix).replace("/", "."): path
        for path in sorted(folder.rglob(f"*{suffix}"))
    }


def entries(found: Collection) -> modules.Entries:
    """Compile the collected sources, except those of EARLY."""
    result: modules.Entries = dict.fromkeys(found.namespaces, (modules.NAMESPACE, b""))
    for name, path in sorted(found.sources.items()):
        if name.partition(".")[0] not in EARLY:
            kind = modules.PACKAGE if path.name == "__init__.py" else modules.MODULE
            result[name] = (kind, compiled(path, name))
    return result


def compiled(path: Path, name: str) -> bytes:
    inner = "/__init__.py" if path.name == "__init__.py" else ".py"
    code = compile(
        source_of(name, path), name.replace(".", "/") + inner, "exec", dont_inherit=True, optimize=modules.level(name)
    )
    # Marshalled twice: reference counts at compile time affect the bytes.
    return marshal.dumps(marshal.loads(marshal.dumps(code)))  # noqa: S302


def write_pyc(target: Path, code: bytes) -> None:
    """Write bytecode in the format of a file without source."""
    import importlib.util

    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(importlib.util.MAGIC_NUMBER + bytes(12) + code)


def write(found: Collection, library: Path, out: Path) -> None:
    """Write the program's folder."""
    out.mkdir(parents=True)
    (out / "modules.bin").write_bytes(modules.packed(entries(found)))
    for name, path in found.sources.items():
        if name.partition(".")[0] in EARLY:
            relative = path.relative_to(library)
            write_pyc(out / relative.with_suffix(".pyc"), compiled(path, name))
    for start, source in (("_coder_start", "finder.py"), ("_modules", "desktop/module_file.py")):
        write_pyc(out / f"{start}.pyc", compiled(ROOT / "build" / source, start))
    for name, path in found.native.items():
        target = out / name.replace(".", "/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target.with_name(path.name))
    for path in data_files(found):
        target = out / path.relative_to(next(place for place in found.places if path.is_relative_to(place)))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def data_files(found: Collection) -> Iterator[Path]:
    """Yield the data of our packages, and what wheels keep beside their modules: libraries and metadata."""
    for path in sorted((ROOT / "coder").rglob("*")):
        folder = path.parent.relative_to(ROOT).as_posix()
        is_source = {"node_modules", "__pycache__"} & set(path.parts) or path.suffix in {".py", ".pyc", ".pyi", ".so"}
        if path.is_file() and not is_source and editions.is_slim_data(folder):
            yield path
    site = found.places[1]
    tops = {name.partition(".")[0] for name in (*found.sources, *found.native)}
    for path in sorted(site.rglob("*")):
        top = path.relative_to(site).parts[0]
        is_library = top.endswith(".libs") or (top in tops and path.suffix in {".dll", ".dylib", ".exe"})
        is_metadata = top.endswith(".dist-info") and path.name in {"METADATA", "entry_points.txt"}
        if path.is_file() and (is_library or (is_metadata and path.name != "METADATA")):
            yield path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", required=True, help="platform, as windows-amd64")
    parser.add_argument("--library", type=Path, required=True, help="the target's standard library")
    parser.add_argument("--site", type=Path, required=True, help="the target's wheels, unpacked")
    parser.add_argument("--compiled", type=Path, help="compiled modules of ours, at the paths of their sources")
    parser.add_argument("--out", type=Path, required=True, help="a folder to create")
    args = parser.parse_args()
    system = args.target.partition("-")[0]
    dynamic = (args.library / "lib-dynload",) if system == "darwin" else ()
    ours, absent = slim_modules()
    native = compiled_modules(args.compiled, NATIVE[system][-1]) if args.compiled else {}
    extra = (args.compiled,) if args.compiled else ()
    found = Collection(system, (ROOT, args.site, args.library, *dynamic, *extra), absent, native)
    encodings = [
        f"encodings.{path.stem}" for path in (args.library / "encodings").glob("*.py") if path.stem != "__init__"
    ]
    found.follow([*ours, *encodings, "encodings", *native])
    for name, lacking in sorted(found.unresolved.items()):
        if required := {each for each in lacking if is_required(name, each)}:
            print(f"{name}: imports {', '.join(sorted(required))}")
    if any(is_required(name, each) for name, lacking in found.unresolved.items() for each in lacking):
        return 1
    write(found, args.library, args.out)
    print(f"{len(found.sources)} modules, {len(found.native)} native ones", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
