"""`coder stat` on systems without /proc, by psutil, which this system has as well."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coder.base import without_proc
from tests.kit.programs.command_line import run_cli


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(without_proc, "is_needed", lambda: True)


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(("words", "unit"), [(("cpu", "--host"), "cores"), (("mem", "--host"), "B"), (("disk",), "B")])
async def test_stat_measures_without_proc(words: tuple[str, ...], unit: str, tmp_path: Path) -> None:
    done = await run_cli(["stat", *words, "-o", "json"], home=tmp_path)
    assert done.code == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["unit"] == unit and 0 <= shown["used"] <= shown["total"]


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("words", ["cpu", "mem"])
async def test_stat_names_missing_measure(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(without_proc, "_psutil", lambda: None)
    done = await run_cli(["stat", words, "--host"], home=tmp_path)
    assert done.code == 1 and "cannot be measured on this system" in done.stderr
