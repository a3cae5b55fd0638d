"""The steps of every regular expression grow linearly with the text, never quadratically or worse.

Patterns are found in the modules and in calls of `re` with a literal pattern. Each is tried with the methods it is used
with, on texts of its own pieces: one repeated, several in sequence, after the required prefix.
tests/kit/regex_step_counter.py counts steps, because seconds depend on the machine. Patterns of users go through RE2
and are not covered.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import gcd
from pathlib import Path
from typing import Any

import pytest

import coder
from tests.kit.regex_step_counter import Steps, TooManyError, samples

ROOT = Path(coder.__file__).parent
ROOMS = sorted(path.name for path in ROOT.iterdir() if (path / "__init__.py").exists())
TIMES = 48
"Repetitions of a piece in a text."
PER_LETTER = 12
"Steps for each letter that no linear pattern needs; a quadratic one takes half as many as the text has letters."
PIECES = ("9", "a", "A", "-", ".", "/", "//", "?", "&", "=", " ", "a.", "a-", "a=", "\t", '"', "\\", "\n", "\r\n", "@")
ENOUGH = 200_000
"Steps at which counting stops, for such a short text."
FEW = 7
"Pieces of the pattern that are combined in sequence; the shortest ones."
MOST = 400
"Texts for one pattern; of more, an even sample."
MOST_IN_SOAK = 1500
"The same with `--soak`."
TAILS = ("", "!", "\x00")
_METHODS = ("fullmatch", "match", "search", "findall", "finditer", "sub", "subn", "split")
_ANYWHERE = dict.fromkeys(("findall", "finditer", "subn", "split"), "sub")
BEHIND = {
    ("coder.coderd.http.server.middleware", "_ROUTE_ARGUMENT"): "asked of our own routes",
    ("coder.cli.program.completion_names", "_WORD"): "asked of how our own commands are used",
    ("coder.base.duration", "_PART"): "asked of what _WHOLE has matched",
    ("coder.coderd.http.site.page_values", "_META"): "asked of the dashboard's own page",
    ("coder.domain.notifications.notification_texts", "_CONDITION"): "asked of our own messages",
}
"""Patterns that no external text reaches unchanged."""


def _module_of(path: Path) -> str:
    return ".".join(("coder", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


def _members(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, tuple | list | set | frozenset):
        for item in value:
            yield from _members(item)
    else:
        yield value


@cache
def patterns(room: str) -> list[tuple[str, str, re.Pattern[Any], str]]:
    """Return (module, name or line, pattern, method)."""
    result: dict[tuple[str, str, re.Pattern[Any], str], None] = {}
    for path in sorted((ROOT / room).rglob("*.py")):
        text = path.read_text()
        if not re.search(r"\bre\.[a-z]+\(", text) or "migrations" in path.parts or "node_modules" in path.parts:
            continue
        module = _module_of(path)
        for name, value in vars(importlib.import_module(module)).items():
            if not re.search(rf"^(\w+, )*{name}\b.*=", text, re.MULTILINE):
                continue  # imported from another module
            uses = re.findall(rf"\b{name}\.({'|'.join(_METHODS)})\(", text) or ["sub"]
            ours = [item for item in _members(value) if isinstance(item, re.Pattern)]
            result |= dict.fromkeys((module, name, item, _ANYWHERE.get(use, use)) for item in ours for use in uses)
        for line, pattern, use in _inline(ast.parse(text)):
            result[module, f"line {line}", pattern, _ANYWHERE.get(use, use)] = None
    return list(result)


def _inline(tree: ast.Module) -> Iterator[tuple[int, re.Pattern[Any], str]]:
    """Return `re.sub("...", ...)` and similar calls. A pattern built at run time, or compiled in a function, needs a
    human reader.
    """
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.Constant):
            continue
        if ast.unparse(node.func) in {f"re.{method}" for method in _METHODS}:
            flags = [ast.unparse(word.value) for word in node.keywords if word.arg == "flags"]
            flags += [text for item in node.args[1:] if (text := ast.unparse(item)).startswith("re.")]
            number = sum(int(getattr(re, item.removeprefix("re."))) for text in flags for item in text.split(" | "))
            yield node.lineno, re.compile(node.args[0].value, number), ast.unparse(node.func).removeprefix("re.")


@dataclass(frozen=True, slots=True)
class _Parts:
    """A text of any length: a start, repeated pieces, a tail."""

    start: str
    pieces: tuple[str, ...]
    tail: str

    def text(self, times: int) -> str:
        return self.start + "".join(piece * times for piece in self.pieces) + self.tail


def _texts(tree: Any) -> Iterator[_Parts]:
    own, starts = samples(tree)
    few = sorted(own, key=len)[:FEW]
    every = dict.fromkeys((*own, *PIECES))
    for start, piece, tail in (*product(("",), every, TAILS), *product(starts[1:], own, TAILS[:2])):
        yield _Parts(start, (piece,), tail)
    for start, item, two, tail in product(starts[:2], few, few, TAILS[:2]):
        if item != two:
            yield _Parts(start, (item, two), tail)


def _sample(texts: list[_Parts], most: int) -> list[_Parts]:
    """Return at most `most` of the texts, evenly, with every tail and every second piece among them."""
    step = -(-len(texts) // most)
    while step > 1 and gcd(step, 2 * len(TAILS) * FEW) > 1:
        step += 1
    return texts[::step]


def _too_many(pattern: re.Pattern[Any], use: str, most: int = MOST) -> str:
    """Return the parts of a text for which steps grow faster than the text, or an empty text."""
    steps = Steps(pattern)
    for parts in _sample(list(_texts(steps.tree)), most):
        long = parts.text(TIMES)
        try:
            steps.of(use, long, PER_LETTER * len(long) + 200)
        except TooManyError:
            if _grows(steps, use, parts.text(TIMES // 2), long):
                return repr(parts)
    return ""


def _grows(steps: Steps, use: str, short: str, long: str) -> bool:
    try:
        return steps.of(use, long, ENOUGH) > 3 * steps.of(use, short, ENOUGH)
    except TooManyError:
        return True


@pytest.mark.parametrize("most", [MOST, pytest.param(MOST_IN_SOAK, marks=pytest.mark.soak)])
@pytest.mark.parametrize("room", ROOMS)
def test_no_pattern_is_quadratic(room: str, most: int) -> None:
    wrong = [
        f"{module} {name} .{use}: {pattern.pattern!r} at {text}"
        for module, name, pattern, use in patterns(room)
        if (module, name) not in BEHIND and (text := _too_many(pattern, use, most))
    ]
    assert not wrong, "\n".join(wrong)


def test_patterns_are_found() -> None:
    assert sum(len(patterns(room)) for room in ROOMS) > 100
    named = {(module, name) for room in ROOMS for module, name, _, _ in patterns(room)}
    assert set(BEHIND) <= named


@pytest.mark.parametrize(
    ("pattern", "use", "is_bad"),
    [
        ("a+", "fullmatch", False),
        ("a+b", "search", True),
        ("a+b", "fullmatch", False),
        ("a++b", "match", False),
        (r"(?<!a)a+b", "search", False),
        ("(a+)+", "fullmatch", True),
        ("(?:a|b)*c", "fullmatch", False),
        (r"\s+$", "search", True),
        ("(a*)(a*)b", "match", True),
        ("<i>.*?</i>", "sub", True),
        ("[?&][^=&]*(?:key|code)[^=&]*=", "sub", True),
        (r'"(?:[^"\\]|\\.)*"', "fullmatch", False),
        (r"([a-z]+)-\1", "fullmatch", False),
    ],
)
def test_pattern_matches(pattern: str, use: str, is_bad: bool) -> None:
    assert bool(_too_many(re.compile(pattern), use)) is is_bad


@pytest.mark.parametrize(
    "pattern", ["a+b", "(a|b)*c", "x{2,3}?y", r"\bab\b", r"(?i)K[^=&]*=", "(a)?b", "^a$", "(?=ab)a"]
)
@pytest.mark.parametrize("text", ["", "aab", "ababc", "xxxy", "ab ab", "key=", "b", "a", "KEY=k=&"])
def test_counter_follows_library(pattern: str, text: str) -> None:
    """It ends where the library does."""
    compiled = re.compile(pattern)
    steps, ends = Steps(compiled), []
    steps._text, steps._most = text, 10_000
    result = steps._whole(0, lambda end: ends.append(end) is None)
    expected = compiled.match(text)
    assert (ends[0] if result else None) == (expected.end() if expected else None)
