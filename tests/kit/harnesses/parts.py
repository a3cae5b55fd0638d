"""What a harness is, and what several rooms' harnesses are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from coder.mesh.core.crypto.keys import PrivateKey

Call = Callable[[bytes], object]


@dataclass(frozen=True)
class Harness:
    """How to feed one function."""

    call: Call
    errors: tuple[type[Exception], ...] = ()
    """What it may raise; nothing else, and nothing at all when empty."""
    seeds: Sequence[bytes] = (b"",)
    """Genuine inputs, from which the fuzzer makes damaged ones."""


OURS, THEIRS = PrivateKey(bytes(range(32))), PrivateKey(bytes(range(32, 64)))


def _text(parse: Callable[[str], object]) -> Call:
    return lambda data: parse(data.decode("utf-8", "surrogateescape"))


@cache
def _tar() -> bytes:
    import io
    import tarfile

    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        entry = tarfile.TarInfo("main.tf")
        entry.size = 5
        tar.addfile(entry, io.BytesIO(b"a = 1"))
    return out.getvalue()[:2048]
