"""Memory that is freed and wanted again costs no page faults: counted, in a process of its own."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from coder.mesh.drivers.memory import keep_freed_memory

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
def test_freed_memory_is_found_again() -> None:
    found = [
        int(subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, check=True).stdout)
        for words in ([], ["keep"])
    ]
    assert found[1] < 2000, f"of {found[0]} by default"


def test_it_may_be_called_anywhere_and_twice() -> None:
    assert keep_freed_memory() == keep_freed_memory()
