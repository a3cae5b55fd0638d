"""Platforms in documents: which tests of the agent run under Wine (`docs/windows-agent-tests.md`), and the tables."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from coder.domain.agents.init_scripts import PLATFORMS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/windows-agent-tests.md"
UNDER_WINE = tuple(f"tests/system/test_windows_{part}.py" for part in ("program", "client", "files"))
ROW = re.compile(r"^\| `(tests/[\w/]+\.py)::(\w+)` \| (.+) \|$", re.MULTILINE)
COUNTERPART = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
WITHOUT_AGENT = re.compile(r"^- `(tests/[\w/]+\.py)`$", re.MULTILINE)


def names_of_tests(text: str) -> set[str]:
    return {
        node.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


def parts() -> tuple[str, str]:
    """The page's rows with counterparts, and the rest."""
    before, _, after = PAGE.read_text().partition("\n## Without a meaning there\n")
    assert after
    return before, after


def problems(page: str, files: dict[str, set[str]]) -> list[str]:
    """Tests that a page does not place once, or that are gone."""
    rows = [(file, name) for file, name, _ in ROW.findall(page)]
    without = WITHOUT_AGENT.findall(page)
    expected = [(file, name) for file, names in files.items() if file not in without for name in names]
    places = [*rows, *((file, "") for file in without)]
    found = [f"{file}::{name} is placed twice" for file, name in {each for each in places if places.count(each) > 1}]
    found += [f"{file}::{name} is in no table" for file, name in {*expected} - {*rows}]
    found += [f"{file}::{name} is gone, or its file is listed below" for file, name in {*rows} - {*expected}]
    return found + [f"{file} is gone" for file in without if file not in files]


def test_new_test_is_noticed() -> None:
    page = "| `tests/a.py::test_b` | reason |\n- `tests/c.py`\n"
    assert problems(page, {"tests/a.py": {"test_b"}, "tests/c.py": {"test_d"}}) == []
    assert problems(page, {"tests/a.py": {"test_b", "test_x"}, "tests/c.py": set()}) == [
        "tests/a.py::test_x is in no table"
    ]
    assert problems(page * 2, {"tests/a.py": {"test_b"}, "tests/c.py": set()})[0].endswith("placed twice")
    assert problems(page, {"tests/a.py": set()}) == [
        "tests/a.py::test_b is gone, or its file is listed below",
        "tests/c.py is gone",
    ]


def test_every_agent_test_is_placed() -> None:
    files = {
        path.relative_to(ROOT).as_posix(): names_of_tests(path.read_text())
        for folder in ("system", "interop")
        for path in (ROOT / "tests" / folder).glob("test_*.py")
    }
    assert not problems(PAGE.read_text(), {file: names for file, names in files.items() if file not in UNDER_WINE})


def test_counterparts_run_under_wine() -> None:
    cells = [cell for _, _, cell in ROW.findall(parts()[0])]
    named = [COUNTERPART.fullmatch(cell) for cell in cells]
    assert named and all(match and match[1] in UNDER_WINE for match in named), cells
    tests = {(file, name) for file in UNDER_WINE for name in names_of_tests((ROOT / file).read_text())}
    assert {(match[1], match[2]) for match in named if match} <= tests


def test_absent_ones_have_reasons() -> None:
    """ "the same" repeats the reason of the row above, of the same file."""
    before = ""
    for file, _, reason in ROW.findall(parts()[1]):
        assert len(reason.split()) > 2 or (reason == "the same" and file == before), (file, reason)
        before = file


def test_bad_input_has_tests() -> None:
    """Every row names at least one, and each exists."""
    _, _, rest = (ROOT / "docs/decisions/desktop-programs.md").read_text().partition("\n## Bad input\n")
    table = rest.partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][2:]
    named = [COUNTERPART.findall(row) for row in rows]
    assert len(rows) >= 10 and all(named), rows
    for file, name in {each for row in named for each in row}:
        assert name in names_of_tests((ROOT / file).read_text()), f"{file}::{name}"


LINK = re.compile(r"\]\([^)]*\)")


def platform_rows(document: str) -> list[list[str]]:
    """The table of platforms without link targets, which differ between folders."""
    lines = [LINK.sub("]", line) for line in (ROOT / document).read_text().splitlines()]
    start = next(number for number, line in enumerate(lines) if line.startswith("| platform | built |"))
    end = next(number for number in range(start, len(lines)) if not lines[number].startswith("|"))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[start:end]]


def test_platform_tables_cover_every_platform() -> None:
    """README and status say the same of each machine that an agent can be attached from."""
    head, _, *rows = platform_rows("README.md")
    assert head == ["platform", "built", "run where", "by whom", "known limits"]
    assert [row[0] for row in rows] == [
        "-".join(platform)
        for platform in sorted(PLATFORMS, key=lambda each: ("linux", "windows", "darwin").index(each[0]))
    ]
    assert all(built and where and who for _, built, where, who, _ in rows)
    assert platform_rows("docs/status.md") == [head, _, *rows]
    assert all(row[2] == "built and inspected, not run on a Mac" for row in rows if row[0].startswith("darwin"))
