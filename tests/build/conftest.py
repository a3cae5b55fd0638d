"""The launcher, compiled once, and a small program behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.programs.single_binary import Parts, compiled, packing, payloads


@pytest.fixture(scope="package")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    return Parts(compiled(tmp_path_factory.mktemp("launcher")), *payloads(tmp_path_factory.mktemp("parts"), 1 << 20))


@pytest.fixture
def program(tmp_path: Path, parts: Parts) -> Path:
    packing.write(tmp_path / "coder-full", parts.full_program())
    return tmp_path / "coder-full"
