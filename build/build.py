"""Build the single binary on Linux: PyInstaller's folder behind the unpack-once launcher.

    python build/build.py [--out DIR] [--work DIR] [--pure] [--slim]
    python build/build.py --platform all           # Linux in Debian roots (roots.py), Windows, macOS (desktop/)

The mesh's hot modules are compiled (compiled.py) unless --pure is set or mypy is not installed. That runs concurrently
with PyInstaller, and the results are cached by the hash of the sources. The result is `coder-linux-<arch>`, the name
under which a server offers it at /bin, and `coder-slim-linux-<arch>`, the agent and the command line only
(editions.py), with bills of materials (`.cdx.json`) and SHA256SUMS (sbom.py). A stamp of the sources makes a second run
return immediately. Requires gcc, zstd and its static library (Debian: gcc binutils zstd libzstd-dev).
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import compiled
import deb
import emulation
import foreign
import libc
import modules
import packing
import sbom

ROOT = Path(__file__).resolve().parent.parent
LAUNCHER = ("launcher.c", "cache.c", "unpack.c", "sha256.c", "host_libc.c", "command_client.c")
API_DESCRIPTION = "coder/coderd/http/openapi/openapi.json"
LEVEL, QUICK_LEVEL = 19, 3
"""Compression levels: the first takes half a minute and saves a fifth of the size."""
ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64", "armv7l": "armv7"}
DEFAULT_OUT = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "coder" / "bin"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="where the binary goes")
    parser.add_argument("--work", type=Path, default=None, help="PyInstaller's work folder (default: below --out)")
    parser.add_argument("--compiled", type=Path, default=None, help="where compiled modules are kept (below --out)")
    parser.add_argument("--force", action="store_true", help="build even if nothing changed")
    parser.add_argument("--pure", action="store_true", help="do not compile the mesh's hot modules: quicker to build")
    parser.add_argument("--quick", action="store_true", help="compress less: quicker to build")
    parser.add_argument("--slim", action="store_true", help="only the slim program: agent and command line")
    parser.add_argument("--keep-dashboard", action="store_true", help="take the dashboard as it is, built or not")
    parser.add_argument("--platform", default="", help="all, or a list such as linux-amd64,linux-arm64")
    parser.add_argument("--cross", type=Path, help="for another processor: its wheels, in a folder named as aarch64")
    args = parser.parse_args()
    if args.cross:
        libc.CROSS = args.cross.name
    if args.platform:
        import roots

        if roots.needs_dashboard(args.platform):
            build_dashboard(args)
        return roots.build_platforms(args.platform, args.out, handed_on(args), force=args.force)
    return build_here(args)


def handed_on(args: argparse.Namespace) -> list[str]:
    """Options that are passed on to a build in a root."""
    return [f"--{name}" for name in ("pure", "quick", "slim") if getattr(args, name)]


def build_here(args: argparse.Namespace) -> int:
    """Build for this machine's own processor."""
    check_system()
    build_dashboard(args)
    name = f"coder-{sys.platform}-{ARCHITECTURES.get(libc.machine(), libc.machine())}"
    slim_name = name.replace("coder-", "coder-slim-", 1)
    binary, stamp = args.out / name, args.out / f"{name}.stamp"
    sources = source_hash()
    # A compiled program satisfies requests for a plain one, and a full one satisfies requests for the slim one.
    required_stamps = [f"{sources} compiled"] + [f"{sources} pure"] * (args.pure or not can_compile())
    required_stamps += [f"{line} slim" for line in required_stamps] if args.slim else []
    if not args.force and binary.exists() and stamp.exists() and stamp.read_text() in required_stamps:
        print(f"{binary} is up to date", file=sys.stderr)
        return 0
    check_tools()
    cache = (args.compiled or args.out / "compiled").resolve()
    work = (args.work or args.out / "work").resolve()
    pure = args.pure or not can_compile()
    with ThreadPoolExecutor() as beside:
        shared = None if pure else beside.submit(compiled_modules, cache, quick=args.quick)
        texts = beside.submit(modules.recorded_texts, ROOT)
        collect = collect_slim if args.slim else collect_both
        editions = collect(work)
        folders = list(editions)
        for folder, entries in editions.items():
            if args.cross:
                foreign.exchange(folder, entries, args.cross)
                foreign.strip(folder)
            modules.convert(folder, entries, texts.result(), shared.result() if shared else None, folders[0])
    if libc.has_glibc():
        libc.bundle(folders[0])
    if args.cross and not pure:
        try_compiled(folders[0], quick=args.quick)
    pack_into(args, folders, slim_name, name)
    stamp.write_text(f"{sources} {'pure' if pure else 'compiled'}{' slim' if args.slim else ''}")
    shutil.rmtree(work, ignore_errors=True)
    kind = "of plain Python (--pure, or no mypy to compile the mesh with)" if pure else "with compiled modules"
    sizes = ", ".join(
        f"{program_file} ({program_file.stat().st_size / 1e6:.1f} MB)"
        for program_file in (binary, args.out / slim_name)
    )
    print(f"built {kind}: {sizes}", file=sys.stderr)
    return 0


def try_compiled(folder: Path, *, quick: bool) -> None:
    """Check the modules compiled for another processor, in the program and under an emulator."""
    if program := emulation.emulator(ARCHITECTURES[libc.machine()]):
        print(f"importing what was compiled, by {program} …", file=sys.stderr)
        compiled.check_program(folder, [program], each_first=not quick)
    else:
        print(f"build: no emulator for {libc.machine()}: what was compiled was not imported", file=sys.stderr)


def pack_into(args: argparse.Namespace, folders: list[Path], slim_name: str, name: str) -> None:
    """Write both programs, their bills of materials, and the checksums."""
    print("packing …", file=sys.stderr)
    args.out.mkdir(parents=True, exist_ok=True)
    level = QUICK_LEVEL if args.pure or args.quick else LEVEL
    with ThreadPoolExecutor() as beside:
        packed = [beside.submit(packing.pack, folders[0], level)]
        packed += [beside.submit(packing.pack, folder, level, without=folders[0]) for folder in folders[1:]]
        launcher = compile_launcher(folders[0].parent, libc.launcher_flags(folders)).read_bytes()
        for edition, folder in ((slim_name, folders[0]), (name, folders[-1])):
            document = sbom.describe(folder, edition, deb.version(), dashboard=folder != folders[0], site=args.cross)
            sbom.write(args.out / f"{edition}.cdx.json", document)
        slim, *rest = (each.result() for each in packed)
    program = packing.slim_program(launcher, slim)
    packing.write(args.out / slim_name, program)
    packing.write(args.out / name, packing.full_program(launcher, slim, *rest) if rest else program)
    sbom.write_sums(args.out)


def build_dashboard(args: argparse.Namespace) -> None:
    """Build the missing dashboard of a fresh clone, because a server without pages is useless; skip it without
    Node.js."""
    if args.slim or args.keep_dashboard:
        return
    if subprocess.run([ROOT / "scripts/dashboard"], check=False).returncode:
        print("build: the dashboard could not be built (see above); the server will have no pages", file=sys.stderr)
    if subprocess.run([ROOT / "scripts/docs", "--pack"], check=False).returncode:
        print("build: the documentation could not be built (see above); /docs will say so", file=sys.stderr)


def source_hash() -> str:
    """Return a hash of everything that goes into the binary."""
    digest = hashlib.sha256(sys.version.encode())
    files = [path for path in (ROOT / "coder").rglob("*") if path.is_file() and not _ignored(path)]
    for path in sorted([*files, *(ROOT / "build").glob("*.*"), ROOT / "pyproject.toml"]):
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _ignored(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    return "__pycache__" in parts or "node_modules" in parts or path.suffix == ".pyc"


def check_system() -> None:
    if not sys.platform.startswith("linux"):
        raise SystemExit(
            "build: there is a launcher for Linux only; elsewhere PyInstaller makes one file by itself: "
            "python -m PyInstaller build/coder.spec, with CODER_EDITION=slim (.ci/other-platforms.yml)"
        )


def check_tools() -> None:
    missing = [tool for tool in (*map(libc.tool, ("gcc", "strip", "objdump")), "zstd") if shutil.which(tool) is None]
    if missing:
        raise SystemExit(
            f"build: {', '.join(missing)} not found; on Debian: apt-get install gcc binutils zstd libzstd-dev"
        )
    with tempfile.TemporaryDirectory(prefix="coder-link-") as folder:
        command = [libc.tool("gcc"), "-static", "-x", "c", "-o", f"{folder}/linked", "-", "-lzstd"]
        source = b"#include <zstd.h>\nint main(void) { return ZSTD_versionNumber() == 0; }\n"
        # The launcher is compiled last; without its library, minutes of work would be lost.
        if subprocess.run(command, input=source, stderr=subprocess.DEVNULL, check=False).returncode != 0:
            raise SystemExit("build: no program can be linked with zstd; on Debian: apt-get install libzstd-dev")


def can_compile() -> bool:
    return importlib.util.find_spec("mypyc") is not None and importlib.util.find_spec("setuptools") is not None


def compiled_modules(cache: Path, *, quick: bool) -> Path:
    """Return a folder with the shared objects of the hot modules, at the paths of their sources."""
    level = compiled.QUICK_LEVEL if quick else compiled.LEVEL
    import fcntl  # Linux only, as the whole build; but other systems import this file and print that

    cached = cache / compiled.source_hash(level)
    cache.mkdir(parents=True, exist_ok=True)
    # A concurrent build waits for the compilation and uses its result.
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not cached.exists():
            _compile_into(cached, level, quick=quick)
    return cached


def _compile_into(cached: Path, level: str, *, quick: bool) -> None:
    print("compiling the mesh (about a minute) …", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="coder-compiled-") as folder:
        target = Path(folder)
        compiled.copy_tree(target, whole=False)
        compiled.compile_tree(target, level, each_first=not quick)
        for old in cached.parent.iterdir():  # one build is enough
            if old.is_dir():
                shutil.rmtree(old, ignore_errors=True)
        temporary = cached.parent / "new"
        for path in sorted(target.rglob("*.so")):
            relative = temporary / path.relative_to(target)
            relative.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, relative)
            subprocess.run([libc.tool("strip"), str(relative)], check=True)
        temporary.replace(cached)


def collect_slim(work: Path) -> dict[Path, modules.Entries]:
    """Return the slim program's folder and its modules."""
    folder = run_pyinstaller(work, "slim")
    return {folder: modules.collected(folder)}


def collect_both(work: Path) -> dict[Path, modules.Entries]:
    """Return the folders of the slim and the full program with their modules; the slim one is extracted from the full
    one."""
    with ThreadPoolExecutor() as beside:
        described = beside.submit(write_api_description, work / "openapi.json")
        full = run_pyinstaller(work, "full")
        description_path = full / "_internal" / API_DESCRIPTION
        description_path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(described.result(), description_path)
    entries = modules.collected(full)
    slim_part = json.loads((work / "slim.json").read_text())
    slim = work / "slim" / "coder"
    modules.cut_out(full, slim, slim_part["files"])
    slim_modules = {*slim_part["modules"], "struct"}
    return {slim: {name: entry for name, entry in entries.items() if name in slim_modules}, full: entries}


def write_api_description(target: Path) -> Path:
    """Write the API's description into the program, which has no sources to generate it from."""
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, str(ROOT / "scripts/openapi.py"), str(target)], check=True)
    return target


def run_pyinstaller(work: Path, edition: str) -> Path:
    print(f"collecting the {edition} program (about a minute) …", file=sys.stderr)
    command = [
        # -O is the level of the program, so that the bytecode of the import analysis is reused.
        sys.executable,
        "-O",
        "-m",
        "PyInstaller",
        "--noconfirm",
        "--log-level=WARN",
        f"--distpath={work / edition}",
        f"--workpath={work / f'{edition}-work'}",
        str(ROOT / "build" / "coder.spec"),
    ]
    work.mkdir(parents=True, exist_ok=True)
    # String hashes determine the order of names in code objects; the date is stored in archives.
    env = {**os.environ, "CODER_EDITION": edition, "PYTHONHASHSEED": "0", "SOURCE_DATE_EPOCH": "315532800"}
    if edition == "full":
        env["CODER_SLIM_LIST"] = str(work / "slim.json")
    subprocess.run(command, check=True, cwd=ROOT, env=env)
    return work / edition / "coder"


def compile_launcher(work: Path, flags: list[str]) -> Path:
    target = work / "launcher"
    sources = [str(ROOT / "build" / name) for name in LAUNCHER]
    command = [
        libc.tool("gcc"),
        "-O2",
        "-Wall",
        "-Wextra",
        "-static",
        "-s",
        *libc.wide(),
        *flags,
        "-o",
        str(target),
        *sources,
        "-lzstd",
    ]
    if subprocess.run(command, check=False).returncode != 0:
        raise SystemExit("build: the launcher did not compile; on Debian: apt-get install gcc libzstd-dev")
    return target


if __name__ == "__main__":
    raise SystemExit(main())
