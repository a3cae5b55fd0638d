"""Plays the tries of `local_tries.py`, read from standard input, as the user whose id is the argument."""

from __future__ import annotations

import ctypes
import fcntl  # noqa: F401 - names of tries
import json
import mmap  # noqa: F401
import os
import resource  # noqa: F401
import shutil  # noqa: F401
import signal  # noqa: F401
import socket
import sys
from typing import Any


def run(uid: int, tries: list[tuple[str, str, dict[str, Any]]]) -> list[str]:
    """Return the names of the tries that succeeded. Never comes back to the former user."""
    libc = ctypes.CDLL(None, use_errno=True)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)

    def check(status: int) -> None:
        if status < 0:
            raise OSError(ctypes.get_errno(), "refused")

    def connect(path: str) -> socket.socket:
        stream = socket.socket(socket.AF_UNIX)
        stream.settimeout(5)
        stream.connect(path)
        return stream

    def vm_read(pid: int) -> int:
        class Part(ctypes.Structure):
            _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))

        buffer = ctypes.create_string_buffer(8)
        here, there = Part(ctypes.addressof(buffer), 8), Part(0x400000, 8)
        return int(libc.process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0))

    names = {**globals(), "libc": libc, "check": check, "connect": connect, "vm_read": vm_read}
    succeeded = []
    for name, expression, values in tries:
        try:
            eval(expression, names | values)  # noqa: S307 - expressions of this folder's own tables
        except (OSError, ArithmeticError, ValueError):
            continue
        succeeded.append(name)
    return succeeded


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]), json.load(sys.stdin))))
