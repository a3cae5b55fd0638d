"""Modules that the supervisor of several server processes loads before it forks them."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module

_LATE = (
    "asyncpg",
    "bcrypt",
    "coder.provisionerd.daemon",
    "cryptography.hazmat.primitives.serialization.ssh",
    "google.protobuf.descriptor_pb2",
    "nacl.bindings",
    "sqlalchemy.dialects.postgresql.asyncpg",
    "uvloop",
)
"""Modules that a process would import after its start: imported before, their memory is shared."""


def load_late_modules() -> None:
    """Import the modules that processes need, as far as they are installed."""
    for name in _LATE:
        with suppress(ImportError):
            import_module(name)
