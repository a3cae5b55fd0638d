"""Every parser of untrusted bytes returns or raises its documented error; and none is left out."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kit.harnesses import HARNESSES, Harness

SOURCE = Path(__file__).resolve().parents[2] / "coder"
MARK = "_untrusted"


def parsers() -> set[str]:
    """Return `path:name` of every function whose name marks it as a parser of untrusted bytes."""
    parsers_found = set()

    def visit(node: ast.AST, inside: list[str], location: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                visit(child, [*inside, child.name], location)
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and child.name.endswith(MARK):
                parsers_found.add(f"{location}:{'.'.join([*inside, child.name])}")

    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        if MARK in text:
            visit(ast.parse(text), [], path.relative_to(SOURCE).as_posix())
    return parsers_found


def test_parsers_and_harnesses_match() -> None:
    missing, stale = parsers() - HARNESSES.keys(), HARNESSES.keys() - parsers()
    assert not missing, f"add them to tests/kit/harnesses: {sorted(missing)}"
    assert not stale, f"gone, or moved: {sorted(stale)}"


def feed(harness: Harness, data: bytes) -> None:
    try:
        harness.call(data)
    except harness.errors:
        pass


@st.composite
def damaged(draw: st.DrawFn, seeds: tuple[bytes, ...]) -> bytes:
    """Return a genuine input with bytes changed, truncated, repeated or inserted."""
    data = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        change = draw(st.integers(0, 3))
        if change == 0 and at < len(data):
            data[at] = draw(st.integers(0, 255))
        elif change == 1:
            del data[at:]
        elif change == 2:
            data[at:at] = draw(st.binary(max_size=8))
        else:
            data[at:at] = data[: draw(st.integers(0, 64))]
    return bytes(data)


def fuzz(name: str, examples: int) -> None:
    harness = HARNESSES[name]
    inputs = st.binary(max_size=200) | damaged(tuple(harness.seeds))

    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(inputs)
    def run(data: bytes) -> None:
        feed(harness, data)

    for seed in harness.seeds:
        feed(harness, seed)
    run()


@pytest.mark.parametrize("name", sorted(HARNESSES))
def test_returns_or_raises_its_error(name: str) -> None:
    fuzz(name, 25)


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted(HARNESSES))
def test_returns_or_raises_soak(name: str) -> None:
    fuzz(name, 20_000)
