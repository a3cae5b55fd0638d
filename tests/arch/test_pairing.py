"""Every product file has a test file of its own, or a written reason why it needs none.

A file has its own at the same place below `tests/unit`, with `test_` before its name. The others stand in
`without_own_test.tsv`: the folder (`**`: those below it too), the files (`*`: all of them, only where they declare or
pass on), what holds them (test_holders.py looks whether it meets them), and why.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("without_own_test.tsv")
WHOLE_FOLDERS = {"coder/api/**", "coder/cli/**", "coder/coderd/config", "coder/coderd/http/**", "coder/coderd/store/**"}


@dataclass(frozen=True)
class Reason:
    folder: str
    files: frozenset[str]
    held_by: str
    why: str

    def covers(self, path: Path) -> bool:
        inside = self.folder.removesuffix("/**")
        parents = [str(parent.relative_to(ROOT)) for parent in path.parents if parent.is_relative_to(ROOT)]
        near = inside in parents if self.folder.endswith("/**") else inside == parents[0]
        return near and (path.stem in self.files or self.files == {"*"})


def reasons() -> list[Reason]:
    with TABLE.open() as file:
        rows = csv.DictReader(file, delimiter="\t")
        return [Reason(row["folder"], frozenset(row["files"].split()), row["held by"], row["why"]) for row in rows]


def product() -> list[Path]:
    return [
        path
        for path in sorted((ROOT / "coder").rglob("*.py"))
        if "_pb2" not in path.name
        and not {"node_modules", "migrations"} & set(path.parts)
        and path.name not in {"__init__.py", "__main__.py"}
    ]


def own_test(path: Path) -> Path:
    return ROOT / "tests/unit" / path.parent.relative_to(ROOT / "coder") / f"test_{path.stem}.py"


ALONE = [path for path in product() if not own_test(path).exists()]


def test_a_file_without_a_test_of_its_own_has_a_reason() -> None:
    known = reasons()
    unexplained = [str(path.relative_to(ROOT)) for path in ALONE if not any(one.covers(path) for one in known)]
    assert not unexplained, f"write tests/unit/…/test_NAME.py, or a reason into {TABLE.name}"


@pytest.mark.parametrize("reason", reasons(), ids=lambda reason: f"{reason.folder}:{min(reason.files)}")
def test_reasons_are_needed_and_true(reason: Reason) -> None:
    assert reason.held_by and all((ROOT / name).exists() for name in reason.held_by.split()) and reason.why
    assert "*" not in reason.files or reason.folder in WHOLE_FOLDERS
    alone = {path.stem for path in ALONE if reason.covers(path)}
    assert alone
    assert not reason.files - alone - {"*"}, "they have tests of their own by now, or are gone"
