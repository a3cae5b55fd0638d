"""The fault table of docs/reliability.md: no cell is empty, and each names existing tests or a reason."""

from __future__ import annotations

import re

import pytest

from tests.kit.paths import ROOT
from tests.system.faults.test_faults import FAULTS

TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)(?:\[([\w-]+)\])?`")
REASON = re.compile(r"Does not apply: [^|]{10,}\.")
MATRIX = "test_flows_survive"


def _table() -> dict[str, list[str]]:
    """The cells of each row, by its fault; the first row has the processes."""
    lines = (ROOT / "docs/reliability.md").read_text().partition("## Faults")[2].partition("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {row[0]: row[1:] for row in rows if not set(row[0]) <= set("- ")}


TABLE = _table()


@pytest.mark.parametrize("fault", [name for name in TABLE if name != "fault"])
def test_every_cell_names_tests(fault: str) -> None:
    assert len(TABLE[fault]) == len(TABLE["fault"])
    for process, cell in zip(TABLE["fault"], TABLE[fault], strict=True):
        named = TEST.findall(cell)
        rest = re.sub(r"[,\s]", "", TEST.sub("", cell))
        assert (named and not rest) or REASON.fullmatch(cell), f"{fault}, {process}: {cell!r}"
        for path, name, case in named:
            text = (ROOT / path).read_text() if (ROOT / path).exists() else ""
            assert f"def {name}(" in text, f"{fault}, {process}: {path}::{name} does not exist"
            assert not case or (name == MATRIX and case in {known.id for known in FAULTS}), f"{name}[{case}]"


def test_every_injected_fault_is_listed() -> None:
    named = {case for cells in TABLE.values() for cell in cells for _, _, case in TEST.findall(cell)} - {""}
    assert named == {fault.id for fault in FAULTS}
