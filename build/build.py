"""Builds the single binary for this platform: PyInstaller's folder behind the unpack-once launcher.

    python build/build.py [--out DIR] [--work DIR] [--pure]

The mesh's hot modules are compiled (compiled.py) unless --pure says otherwise or mypy is not installed. The result is
`coder-<os>-<arch>`, the name under which a server offers it at /bin. A stamp of the sources beside it lets a second run
return at once. Needs gcc and zlib's static library (Debian: gcc zlib1g-dev binutils).
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import importlib.util
import io
import os
import platform
import shutil
import struct
import subprocess
import sys
import tarfile
from pathlib import Path

import compiled

ROOT = Path(__file__).resolve().parent.parent
MAGIC = b"CODERPK1"
KEY_LENGTH = 32
ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64", "armv7l": "armv7"}
DEFAULT_OUT = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "coder" / "bin"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="where the binary goes")
    parser.add_argument("--work", type=Path, default=None, help="PyInstaller's work folder (default: below --out)")
    parser.add_argument("--force", action="store_true", help="build even if nothing changed")
    parser.add_argument("--pure", action="store_true", help="do not compile the mesh's hot modules: quicker to build")
    args = parser.parse_args()
    name = f"coder-{sys.platform}-{ARCHITECTURES.get(platform.machine().lower(), platform.machine())}"
    binary, stamp = args.out / name, args.out / f"{name}.stamp"
    sources = source_hash()
    # A compiled program serves whoever would be content with a plain one.
    wanted = [f"{sources} compiled"] + [f"{sources} pure"] * (args.pure or not can_compile())
    if not args.force and binary.exists() and stamp.exists() and stamp.read_text() in wanted:
        print(f"{binary} is up to date", file=sys.stderr)
        return 0
    check_tools()
    work = args.work or args.out / "work"
    root = ROOT if wanted[-1].endswith("pure") else compiled_copy(work)
    folder = run_pyinstaller(root, work)
    launcher = compile_launcher(work)
    args.out.mkdir(parents=True, exist_ok=True)
    assemble(launcher, folder, binary)
    stamp.write_text(wanted[-1])
    shutil.rmtree(work, ignore_errors=True)
    print(f"{binary} ({binary.stat().st_size >> 20} MiB)", file=sys.stderr)
    return 0


def source_hash() -> str:
    """Changes when anything that goes into the binary does."""
    digest = hashlib.sha256(sys.version.encode())
    files = [path for path in (ROOT / "coder").rglob("*") if path.is_file() and not _ignored(path)]
    for path in sorted([*files, *(ROOT / "build").glob("*.*"), ROOT / "pyproject.toml"]):
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _ignored(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    return "__pycache__" in parts or "node_modules" in parts or path.suffix == ".pyc"


def check_tools() -> None:
    missing = [tool for tool in ("gcc", "strip", "objdump") if shutil.which(tool) is None]
    if missing:
        raise SystemExit(f"build: {', '.join(missing)} not found; on Debian: apt-get install gcc binutils zlib1g-dev")


def can_compile() -> bool:
    return importlib.util.find_spec("mypyc") is not None and importlib.util.find_spec("setuptools") is not None


def compiled_copy(work: Path) -> Path:
    """A copy of the sources with the hot modules compiled beside them, which import prefers."""
    print("compiling the mesh (a minute or two) …", file=sys.stderr)
    target = work / "compiled"
    compiled.copy_tree(target, whole=False)
    compiled.compile_tree(target)
    return target


def run_pyinstaller(root: Path, work: Path) -> Path:
    print("collecting the program (about a minute) …", file=sys.stderr)
    command = [
        sys.executable, "-m", "PyInstaller", "--noconfirm", "--log-level=WARN",
        f"--distpath={work / 'dist'}", f"--workpath={work / 'pyinstaller'}", str(root / "build" / "coder.spec"),
    ]  # fmt: skip
    # The program has no sources to read its own API's description from: it brings it along.
    description = work.resolve() / "openapi.json"
    work.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, str(ROOT / "scripts" / "generate-openapi"), str(description)], check=True)
    subprocess.run(command, check=True, cwd=root, env={**os.environ, "CODER_OPENAPI": str(description)})
    return work / "dist" / "coder"


def compile_launcher(work: Path) -> Path:
    target = work / "launcher"
    command = [
        "gcc",
        "-O2",
        "-Wall",
        "-Wextra",
        "-static",
        "-s",
        "-o",
        str(target),
        str(ROOT / "build/launcher.c"),
        "-lz",
    ]
    if subprocess.run(command, check=False).returncode != 0:
        raise SystemExit("build: the launcher did not compile; on Debian: apt-get install gcc zlib1g-dev")
    return target


def assemble(launcher: Path, folder: Path, binary: Path) -> None:
    """[launcher][payload][offset][key][magic], written beside and renamed, so that a server never serves half of it."""
    payload = pack(folder)
    head = launcher.read_bytes()
    key = hashlib.sha256(payload).hexdigest()[:KEY_LENGTH].encode()
    temporary = binary.with_suffix(".tmp")
    temporary.write_bytes(head + payload + struct.pack("<Q", len(head)) + key + MAGIC)
    temporary.chmod(0o755)
    temporary.replace(binary)


def pack(folder: Path) -> bytes:
    """A gzip'd GNU tar of the folder's content with nothing of this machine in it (times, owners)."""
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=6, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar,
    ):
        for path in sorted(folder.rglob("*")):
            info = tar.gettarinfo(path, str(path.relative_to(folder)))
            info.uid = info.gid = info.mtime = 0
            info.uname = info.gname = ""
            if info.isreg():
                info.type = tarfile.REGTYPE  # a hard link would need its partner unpacked first
                info.size = path.stat().st_size
                with path.open("rb") as file:
                    tar.addfile(info, file)
            else:
                tar.addfile(info)
    return buffer.getvalue()


if __name__ == "__main__":
    raise SystemExit(main())
