"""Google's protobuf without its second implementation.

The compiled implementation creates and parses messages. The package still imports the pure-Python one, with text
formats and pickle: a dozen modules that every command with a tunnel and every agent would load and keep. Without the
compiled implementation nothing is changed.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

from google.protobuf.internal import api_implementation

PYTHON_IMPLEMENTATION = "google.protobuf.internal.python_message"


class _LazyModule(ModuleType):
    """Placeholder for the module during the import; loads it at the first attribute access."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        value: object = getattr(importlib.import_module(self.__name__), name)
        return value


def load() -> None:
    """Import the modules that generated code imports."""
    if api_implementation.Type() == "upb" and PYTHON_IMPLEMENTATION not in sys.modules:
        sys.modules[PYTHON_IMPLEMENTATION] = _LazyModule(PYTHON_IMPLEMENTATION)
        try:
            importlib.import_module("google.protobuf.internal.builder")
        finally:
            del sys.modules[PYTHON_IMPLEMENTATION]  # later imports get the real module


load()
