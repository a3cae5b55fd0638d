"""Google's protobuf without its second implementation.

Messages are made and read by the compiled one. The package loads the one in plain Python beside it all the same, with
text formats and pickle: a dozen modules that every command with a tunnel and every agent would pay for and keep. Where
the compiled one is missing nothing is changed.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

from google.protobuf.internal import api_implementation

SECOND = "google.protobuf.internal.python_message"


class _WhenAsked(ModuleType):
    """Stands where the module is imported; loads it at the first look inside."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(importlib.import_module(self.__name__), name)


def load() -> None:
    """Imports what generated code imports."""
    if api_implementation.Type() == "upb" and SECOND not in sys.modules:
        sys.modules[SECOND] = _WhenAsked(SECOND)
        try:
            importlib.import_module("google.protobuf.internal.builder")
        finally:
            del sys.modules[SECOND]  # whoever imports it from now on gets it


load()
