"""asyncssh without what we never use: `from coder.net.ssh_library import asyncssh`.

Importing it plainly costs a third of a short command's time on X.509 certificates, on umac, and on looking for liboqs
with programs of the compiler. Each is optional to asyncssh and missing on most machines anyway; we say so up front.
"""

from __future__ import annotations

import ctypes.util
import sys
from typing import Any

_UNUSED = ("asyncssh.crypto.x509", "asyncssh.crypto.umac")


def _nothing(name: str) -> str | None:  # noqa: ARG001 - the signature of what it stands for
    return None


def _load() -> Any:
    if "asyncssh" in sys.modules:
        return sys.modules["asyncssh"]
    for name in _UNUSED:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]  # None makes the import fail, as documented
    find = ctypes.util.find_library
    ctypes.util.find_library = _nothing
    try:
        import asyncssh as loaded
    finally:
        ctypes.util.find_library = find
    return loaded


_load()

import asyncssh  # noqa: E402 - loaded above; here for its types

__all__ = ["asyncssh"]
