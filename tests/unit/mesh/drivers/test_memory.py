"""Freed memory is reused without page faults, and returned on request: counted, in processes of their own."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from coder.mesh.drivers.memory import keep_freed_memory, release_freed_memory

PROGRAM = """
import resource, sys
from coder.mesh.drivers.memory import keep_freed_memory
if "keep" in sys.argv:
    assert keep_freed_memory()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def work():
    for size in (70_000, 300_000, 1_000_000):
        pieces = [bytes(bytearray(size)) for _ in range(4)]
        del pieces
work()
before = faults()
for _ in range(50):
    work()
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's switch")
def test_freed_memory_is_reused() -> None:
    results = [
        int(subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, check=True).stdout)
        for words in ([], ["keep"])
    ]
    assert results[1] < 2000, f"of {results[0]} by default"


def test_settings_apply_anywhere_and_repeatedly() -> None:
    assert keep_freed_memory() == keep_freed_memory()


HOLES = """
from pathlib import Path
from coder.mesh.drivers.memory import release_freed_memory, keep_freed_memory
def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 >> 20
assert keep_freed_memory()
pieces = [bytearray(100_000) for _ in range(640)]
full = resident_bytes()
del pieces[::2], pieces[:-1]  # what is above all of it stays
kept = resident_bytes()
assert release_freed_memory()
print(full - resident_bytes(), full - kept)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's function")
def test_freed_memory_returned_on_request() -> None:
    done = subprocess.run([sys.executable, "-c", HOLES], capture_output=True, check=True, text=True)
    given, by_itself = map(int, done.stdout.split())
    assert given > 50 and by_itself < 10, "MiB of 64"


def test_other_systems_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not keep_freed_memory() and not release_freed_memory()
