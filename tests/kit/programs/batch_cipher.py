"""The compiled batch cipher, for tests that run with it and without."""

from __future__ import annotations

import atexit
import functools
import importlib.util
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parents[3] / "coder/mesh/core/crypto/_batch_cipher.c"
INCLUDE = sysconfig.get_path("include")
MISSING = "" if shutil.which("gcc") and Path(INCLUDE, "Python.h").is_file() else "gcc and Python's headers needed"
WAYS = ("packets", "batches")
"""Packet by packet with `cryptography`, as a wheel does; in batches, as the program does."""


@functools.cache
def load() -> Any:
    """Compile the module, once a process, with warnings as errors; return it."""
    folder = tempfile.mkdtemp(prefix="coder-batch-cipher-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = Path(folder, f"_batch_cipher{sysconfig.get_config_var('EXT_SUFFIX')}")
    flags = ("-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{INCLUDE}")
    subprocess.run(["gcc", *flags, "-o", target, SOURCE, "-ldl"], check=True)
    spec = importlib.util.spec_from_file_location("_batch_cipher", target)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
