"""Bundled C library, and the required version of the machine's own to use that instead (`host_libc.c`)."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from pathlib import Path

LOADERS = {
    "x86_64": "/lib64/ld-linux-x86-64.so.2",
    "aarch64": "/lib/ld-linux-aarch64.so.1",
    "armv7l": "/lib/ld-linux-armhf.so.3",
}
TRIPLES = {"x86_64": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu", "armv7l": "arm-linux-gnueabihf"}
LIBRARIES = (
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "libutil.so.1",
    "libresolv.so.2",
    "libnss_files.so.2",
    "libnss_dns.so.2",
)
CROSS = ""
"""Target machine, if it differs from this one (foreign.py)."""
_VERSION = re.compile(rb"GLIBC_(\d+)\.(\d+)(?:\.\d+)?\b")


def machine() -> str:
    """Return the kernel's name of the processor; for a 32 bit program under a 64 bit kernel, by its pointer size."""
    if CROSS:
        return CROSS
    name = platform.machine().lower()
    return "armv7l" if name.startswith(("armv7", "armv8")) or (name == "aarch64" and _is_32_bit()) else name


def tool(name: str) -> str:
    """Return the name of a compiler tool for the target machine."""
    return f"{TRIPLES[CROSS]}-{name}" if CROSS else name


def wide() -> list[str]:
    """Return the flags for C on a 32 bit processor: without them, stat fails for large inode numbers, and time ends in
    2038. On others the calls keep their names."""
    return ["-D_FILE_OFFSET_BITS=64", "-D_TIME_BITS=64"] if machine() == "armv7l" else []


def _is_32_bit() -> bool:
    return platform.architecture()[0] == "32bit"


def has_glibc() -> bool:
    return platform.libc_ver()[0] == "glibc" and machine() in LOADERS


def places() -> list[str]:
    """Return the possible paths of a distribution's libc.so.6."""
    lib = "lib64" if machine() in {"x86_64", "aarch64"} else "lib"
    triple = TRIPLES[machine()]
    folders = [f"/lib/{triple}", f"/{lib}", f"/usr/{lib}", f"/usr/lib/{triple}", "/lib", "/usr/lib"]
    return [f"{folder}/libc.so.6" for folder in dict.fromkeys(folders)]


def bundle(folder: Path) -> None:
    """Copy loader and libraries of this machine into the folder's `_internal/glibc`."""
    target = folder / "_internal" / "glibc"
    target.mkdir(parents=True, exist_ok=True)
    loader = Path(LOADERS[machine()]).resolve()
    # PyInstaller's start-up code recognises a loader by its name, and then finds its own path in the arguments.
    named = target / Path(LOADERS[machine()]).name
    shutil.copyfile(loader, named)
    named.chmod(0o755)
    found = next(Path(path).resolve().parent for path in places() if Path(path).exists())
    for name in LIBRARIES:
        shutil.copyfile(found / name, target / name)
        (target / name).chmod(0o755)


def needed(folders: list[Path]) -> tuple[int, int]:
    """Return the newest glibc symbol version that any file in the folders requires."""
    newest = (2, 17)
    for path in {path for folder in folders for path in folder.rglob("*") if path.is_file() and not path.is_symlink()}:
        if path.parent.name == "glibc" or path.open("rb").read(4) != b"\x7fELF":
            continue
        text = subprocess.run([tool("objdump"), "-p", str(path)], capture_output=True, check=False).stdout
        references = text.partition(b"Version References:")[2]
        newest = max([newest, *((int(a), int(b)) for a, b in _VERSION.findall(references))])
    return newest


def launcher_flags(folders: list[Path]) -> list[str]:
    """Return the definitions for host_libc.c; none on a machine without glibc."""
    if not has_glibc():
        return []
    major, minor = needed(folders)
    listed = ", ".join(f'"{path}"' for path in places())
    return [
        f"-DGLIBC_NEEDED={major * 1000 + minor}",
        f'-DGLIBC_LOADER="{LOADERS[machine()]}"',
        f"-DGLIBC_PLACES={listed}",
    ]
