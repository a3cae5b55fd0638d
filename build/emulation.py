"""Emulation of other processors: qemu-user, registered at the kernel by binfmt_misc.

A root of another processor then works like a native one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

BINFMT = Path("/proc/sys/fs/binfmt_misc")
QEMU = {"arm64": "aarch64", "armv7": "arm"}
"""Architecture name -> qemu's name."""
_CLASS_AND_MACHINE = {"aarch64": (2, 0xB7), "arm": (1, 0x28)}
"""Start of an ELF file: 64 or 32 bits, and the number of the processor."""


def why_not(architecture: str) -> str:
    """Return why programs for an architecture cannot run here; empty if they can. Register qemu at the kernel if
    required."""
    name = QEMU.get(architecture, "")
    if not name:
        return ""
    if os.geteuid() != 0:
        return "only root enters a root"
    program = emulator(architecture)
    if not program:
        return f"qemu-{name}-static is not installed (Debian: qemu-user-static)"
    if not (BINFMT / "register").exists():
        mounted = subprocess.run(["mount", "-t", "binfmt_misc", "none", str(BINFMT)], capture_output=True, check=False)
        if mounted.returncode:
            return "this kernel has no binfmt_misc, or we may not mount it"
    if not (BINFMT / f"qemu-{name}").exists():
        try:
            (BINFMT / "register").write_bytes(registration(name, program))
        except OSError as error:
            return f"the kernel takes no interpreter for foreign programs: {error.strerror}"
    return ""


def emulator(architecture: str) -> str:
    """Return the emulator of an architecture, if it is installed."""
    name = QEMU[architecture]
    return shutil.which(f"qemu-{name}-static") or shutil.which(f"qemu-{name}") or ""


def registration(name: str, program: str) -> bytes:
    """Return the line for binfmt_misc (Linux, Documentation/admin-guide/binfmt-misc.rst): it matches the first twenty
    bytes of a program or shared object, of any operating system. F: the kernel opens the interpreter now, so that it
    works in every root."""
    bits, machine = _CLASS_AND_MACHINE[name]
    magic = b"\x7fELF" + bytes([bits, 1, 1]) + bytes(9) + b"\x02\x00" + machine.to_bytes(2, "little")
    mask = b"\xff" * 7 + b"\x00" + b"\xff" * 8 + b"\xfe\xff\xff\xff"
    written = ["".join(f"\\x{byte:02x}" for byte in part) for part in (magic, mask)]
    return f":qemu-{name}:M::{written[0]}:{written[1]}:{program}:F".encode()
