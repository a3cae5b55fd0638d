"""Whoever follows a citation arrives: it names a path in this repository or a public standard that is listed.

Read are the comments and docstrings of all Python, and the pages. A path may be shortened from the left
(`tunnel/timers.py`), its end has to exist; behind `#` stands a heading of a page. RFCs are listed in
`docs/protocol/standards.md`; "section 4" alone is no citation unless the file says of what.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [
    path
    for room in ("coder", "tests", "scripts", "build")
    for path in sorted((ROOT / room).rglob("*.py"))
    if "_pb2" not in path.name and "node_modules" not in path.parts
]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
STANDARDS = ROOT / "docs/protocol/standards.md"

PATH = re.compile(
    r"(?<![\w./:@{$%-])((?:[\w-]+/)+[\w.-]+\.(?:py|md|json|jsonl|ts|tsx|c|proto|tsv|toml))(?:#([\w-]+))?(?![\w/*<])"
)
RFC = re.compile(r"\bRFC ?(\d+)")
SECTION = re.compile(r"\b[Ss]ections? \d|§ ?\d")
PUBLIC = re.compile(r"RFC ?\d+|WireGuard paper|Noise|\bdraft\b|docs/[\w/-]+\.md")
INSIDE = re.compile(r"`((?:\w+/)+\w+)\.(\w+)`")
"A name in a file: `services/access/keys.find`."
ROOMS = re.compile(r"`(?:domain|store|services|http|loops|apps)\.[a-z_]+\.\w+`")
"A dotted module is no path: nobody can open it."
NEIGHBOUR = re.compile(r"(?<![\w./-])([a-z_]\w*\.py)\b")
"A bare file name in a module's docstring: it stands in the same folder, or nobody knows which one is meant."
RETIRED = re.compile(
    r"rpc-framing|agent-proto|tailnet-proto|product[\s#]+map|(?:agent|protocol|services) document|derp-disco", re.I
)
"Names of notes that are not in the repository; what they said is in docs/protocol."

MADE_AT_RUN_TIME = re.compile(r"^(?:files/|\.terraform/|dist/|\.git/)|settings\.json$|modules\.json$")
"What looks like a path and is one in a workspace, an archive or a build."


@cache
def tracked() -> frozenset[str]:
    """Every file of the repository, and each with its path cut from the left."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names: set[str] = set()
    for line in listed.splitlines():
        parts = line.split("/")
        names.update("/".join(parts[start:]) for start in range(len(parts)))
    return frozenset(names)


@cache
def headings(page: Path) -> frozenset[str]:
    """Anchors as forges make them: lower case, blanks to hyphens, everything else gone."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    return frozenset(re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles)


def prose_of(path: Path) -> str:
    """Docstrings and comments of Python, all of a page."""
    text = path.read_text()
    if path.suffix != ".py":
        return text
    strings = [
        node.value.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    return "\n".join([*strings, *_comments(text)])


def _comments(text: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def wrong_in(path: Path) -> list[str]:
    if not any(rule.search(path.read_text()) for rule in (PATH, INSIDE, ROOMS, RFC, SECTION, RETIRED, NEIGHBOUR)):
        return []  # most files: nothing to parse
    prose = prose_of(path)
    wrong = []
    for name, anchor in PATH.findall(prose):
        if MADE_AT_RUN_TIME.search(name):
            continue
        if name not in tracked() or (anchor and anchor not in headings(ROOT / name)):
            wrong.append(f"{name}#{anchor}")
    inside = [found for found in INSIDE.findall(prose) if ".".join(found) not in tracked()]
    wrong += [f"{name}.{word}" for name, word in inside if f"{name}.py" not in tracked()]
    wrong += ROOMS.findall(prose) if path != Path(__file__) else []
    wrong += [f"RFC {number}" for number in RFC.findall(prose) if number not in listed()]
    wrong += RETIRED.findall(prose) if path != Path(__file__) else []
    wrong += neighbours_missing(path)
    if path.suffix == ".py" and SECTION.search(prose) and not PUBLIC.search(prose):
        wrong.append("a section of nothing that is named")
    return wrong


def neighbours_missing(path: Path) -> list[str]:
    others = [ROOT / room for room in ("tests", "scripts", "build")]
    if path.suffix != ".py" or any(path.is_relative_to(room) for room in others):
        return []
    said = ast.get_docstring(ast.parse(path.read_text())) or ""
    return [name for name in NEIGHBOUR.findall(said) if not (path.parent / name).exists()]


@cache
def listed() -> frozenset[str]:
    return frozenset(re.findall(r"^\| (\d+) \|", STANDARDS.read_text(), re.M))


def test_dead_ends_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.py"
    page.write_text(
        '"""See rooms/of_nobody.py, docs/protocol/rpc.md#nothing, RFC 1 and the product map; section 3."""\n'
    )
    assert wrong_in(page) == ["rooms/of_nobody.py#", "docs/protocol/rpc.md#nothing", "RFC 1", "product map"]
    page.write_text('"""As `rooms/nobody.does` and `store.jobs.take` say (product\nmap)."""\n')
    assert wrong_in(page) == ["rooms/nobody.does", "`store.jobs.take`", "product\nmap"]
    page.write_text('"""What page.py does not say is in nowhere.py."""\n')
    assert wrong_in(page) == ["nowhere.py"]
    page.write_text("# as in section 3\n")
    assert wrong_in(page) == ["a section of nothing that is named"]


@pytest.mark.parametrize("room", ["coder", "tests", "scripts", "build", "docs", "."])
def test_citations_lead_somewhere(room: str) -> None:
    texts = [
        path
        for path in (*SOURCES, *PAGES)
        if room in (path.relative_to(ROOT).parts[0], str(path.parent.relative_to(ROOT)))
    ]
    assert texts
    wrong = {str(path.relative_to(ROOT)): found for path in texts if (found := wrong_in(path))}
    assert not wrong


def test_listed_standards_are_cited() -> None:
    texts = [path for path in (*SOURCES, *PAGES) if path != STANDARDS and RFC.search(path.read_text())]
    assert listed() <= {number for path in texts for number in RFC.findall(prose_of(path))}
