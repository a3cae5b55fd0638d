"""Every pattern of the server takes time that grows with its text, not with the square of it.

Found in the modules, asked by the methods they are used with. What people write in patterns of their own goes through
RE2 and is not here. Patterns that only the sandbox uses are bounded there as well; they are asked all the same.
"""

from __future__ import annotations

import importlib
import re
import time
from collections.abc import Iterator
from pathlib import Path

import coder

ROOT = Path(coder.__file__).parent
ROOMS = ("api", "base", "coderd", "domain", "net", "rpc")
LENGTH = 4000
MOST = 0.05
"Seconds of computing. What is quadratic takes ten times that, what is linear a hundredth."
PIECES = (
    "9", "0", "a", "A", "-", ".", "_", " ", "/", "a.", "a-", "9.", "1h", "a=", "a:", "\t", "(", '"', "\\", "%", "a ",
    "{", "${", "/a", "<", "a,", ", ", "aA9", "\n", "a\n", "@", "#", ";", "a;", "0:", "0_", "0x",
)  # fmt: skip
TAILS = ("", "!", "\x00")
_USES = "fullmatch|match|search|findall|finditer|sub|subn|split"
BEHIND = {
    ("coder.coderd.http.server.middleware", "_ROUTE_ARGUMENT"): "asked of our own routes",
    ("coder.base.duration", "_PART"): "asked of what _WHOLE has matched",
}
"""What no text of others reaches as it is."""


def patterns() -> Iterator[tuple[str, str, re.Pattern[str] | re.Pattern[bytes], set[str]]]:
    """(module, name, pattern, methods that are called on it there)."""
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            text = path.read_text()
            if "re.compile(" not in text or "migrations" in path.parts:
                continue
            module = ".".join(("coder", *path.relative_to(ROOT).with_suffix("").parts))
            for name, value in vars(importlib.import_module(module)).items():
                if isinstance(value, re.Pattern) and re.search(rf"^{name}\b.*re\.compile\(", text, re.MULTILINE):
                    yield module, name, value, set(re.findall(rf"\b{name}\.({_USES})\(", text)) or {"fullmatch"}


def _slowest(pattern: re.Pattern[str] | re.Pattern[bytes], use: str) -> tuple[float, str]:
    worst = (0.0, "")
    for piece in PIECES:
        for tail in TAILS:
            text = piece * (LENGTH // len(piece)) + tail
            given = text.encode() if isinstance(pattern.pattern, bytes) else text
            arguments = (given[:0], given) if use in {"sub", "subn"} else (given,)
            began = time.thread_time()
            found = getattr(pattern, use)(*arguments)
            if use == "finditer":
                list(found)
            worst = max(worst, (time.thread_time() - began, f"{piece!r} and {tail!r}"))
    return worst


def test_no_pattern_is_quadratic() -> None:
    wrong, seen = [], 0
    for module, name, pattern, uses in patterns():
        seen += 1
        for use in uses if (module, name) not in BEHIND else ():
            took, text = _slowest(pattern, use)
            if took > MOST and _slowest(pattern, use)[0] > MOST:  # once may be the collector
                wrong.append(f"{module}.{name}.{use}: {took:.2f} s for {text}: {pattern.pattern!r}")
    assert seen > 60
    assert not wrong, "\n".join(wrong)
